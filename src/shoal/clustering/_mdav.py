"""Kernels of MDAV, from a tree and by scanning, with the same result label for label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.clustering._rim import Rim, find_on_rim, take_from_rim
from shoal.clustering._scan import Free, pack, scan_farthest, scan_several, take
from shoal.clustering._tree import Search, Tree, find_farthest, find_nearest, mark, remove
from shoal.compilation import kernel, subroutine


@subroutine()
def _subtract(state: NDArray[Any], j: int, value: float) -> None:
    """Subtract from a sum that is kept in two parts, so that nothing is lost when large values leave (TwoSum)."""
    before = state[1, j]
    after = before - value
    back = after - before
    state[2, j] += (before - (after - back)) - (value + back)
    state[1, j] = after


@subroutine()
def _centroid(state: NDArray[Any], out: NDArray[Any]) -> None:
    d = out.shape[0]
    mass = state[1, d] + state[2, d]
    for j in range(d):
        out[j] = (state[1, j] + state[2, j]) / mass


@kernel()
def start(X: NDArray[Any], weight: NDArray[Any], state: NDArray[Any]) -> None:
    """Add up all records."""
    d = X.shape[1]
    state[:] = 0.0
    for i in range(X.shape[0]):
        for j in range(d):
            _subtract(state, j, -weight[i] * X[i, j])
        _subtract(state, d, -weight[i])
    _centroid(state, state[0, :d])


@kernel()
def grow_by_scanning(free: Free, state: NDArray[Any], k: int, first: int, last: int, labels: NDArray[Any]) -> None:
    """Form the clusters first .. last - 1: even ones far from the centroid, odd ones far from the one before.

    state: (3, d + 1): the previous cluster's first record (to begin with, the mean); the weighted sums of the free
    records and their weight, in two parts.
    """
    points = free.points
    d = points.shape[0]
    point = state[0, :d]
    positions, distances = np.empty(k, dtype=np.int64), np.empty(k)
    for cluster in range(first, last):
        if cluster % 2 == 0:
            _centroid(state, point)
        at = scan_farthest(free, point)
        for j in range(d):
            point[j] = points[j, at]
        take(free, at)
        scan_several(free, point, positions[1:], distances[1:])
        positions[0] = at
        for i in range(k):
            at = positions[i]
            labels[free.row[at]] = cluster
            if i > 0:
                take(free, at)
            for j in range(d):
                _subtract(state, j, free.weight[at] * points[j, at])
            _subtract(state, d, free.weight[at])
        pack(free)


@kernel()
def grow_from_tree(
    X: NDArray[Any],
    weight: NDArray[Any],
    tree: Tree,
    rim: Rim,
    found: Search,
    state: NDArray[Any],
    k: int,
    first: int,
    last: int,
    labels: NDArray[Any],
) -> None:
    """Form the clusters first .. last - 1 from the points of the tree, as scanning would."""
    d = X.shape[1]
    point = state[0, :d]
    picked, leaves = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    for cluster in range(first, last):
        if cluster % 2 == 0:
            _centroid(state, point)
        row = find_on_rim(rim, point)
        if row < 0:
            row = find_farthest(tree, point, found)
        mark(tree, row)
        for j in range(d):
            point[j] = X[row, j]
        find_nearest(tree, point, found, k - 1)
        picked[0] = row
        picked[1:] = found.row[: k - 1]
        for i in range(k):
            row = picked[i]
            labels[row] = cluster
            mark(tree, row)
            for j in range(d):
                _subtract(state, j, weight[row] * X[row, j])
            _subtract(state, d, weight[row])
        remove(tree, picked, leaves)
        for i in range(k):
            take_from_rim(rim, X, picked[i], labels)
