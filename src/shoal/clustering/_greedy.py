"""Kernels of the greedy k-member clustering, from a tree and by scanning, with the same result label for label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.clustering._rim import Rim, find_on_rim, take_from_rim
from shoal.clustering._scan import Free, pack, scan_farthest, scan_nearest, take
from shoal.clustering._tree import LEAF, NONE, Search, Tree, find_farthest, find_nearest, mark, remove
from shoal.compilation import kernel, subroutine

_VANISHING = 1e-280  # squared distances below this may have lost digits


@kernel()
def grow_by_scanning(free: Free, state: NDArray[Any], k: int, first: int, last: int, labels: NDArray[Any]) -> None:
    """Form the clusters first .. last - 1; state: (1, d), the previous seed, replaced."""
    points, seed = free.points, state[0]
    d = points.shape[0]
    total, centroid = np.empty(d), np.empty(d)
    for cluster in range(first, last):
        at = scan_farthest(free, seed)
        mass = free.weight[at]
        for j in range(d):
            seed[j] = points[j, at]
            total[j] = mass * points[j, at]
        take(free, at)
        labels[free.row[at]] = cluster
        for _ in range(k - 1):
            for j in range(d):
                centroid[j] = total[j] / mass
            at = scan_nearest(free, centroid)
            for j in range(d):
                total[j] += free.weight[at] * points[j, at]
            mass += free.weight[at]
            take(free, at)
            labels[free.row[at]] = cluster
        pack(free)


@subroutine()
def _find_known(tree: Tree, found: Search, number: int, centroid: NDArray[Any]) -> tuple[int, float]:
    """Return which of the rows found and not marked is nearest to the centroid, and its squared distance."""
    best, pick = np.inf, NONE
    for t in range(number):
        row = int(found.row[t])
        leaf, p = divmod(found.place[t], LEAF)
        if tree.rows[leaf, p] < 0:
            continue
        distance = 0.0
        for j in range(centroid.shape[0]):
            difference = tree.points[leaf, j, p] - centroid[j]
            distance += difference * difference
        if distance < best or (distance == best and row < pick):
            best, pick = distance, row
    return pick, best


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
    """Form the clusters first .. last - 1 from the points of the tree, as scanning would.

    One query finds more than k points around the seed. While the cluster grows, the nearest of them to its centroid is
    the nearest of all as long as it is nearer than any point outside the query can be; else the query is repeated
    around the centroid. state: (1, d), the previous seed, replaced.
    """
    d, seed = X.shape[1], state[0]
    total, centroid, centre = np.empty(d), np.empty(d), np.empty(d)
    picked, leaves = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64)
    for cluster in range(first, last):
        row = find_on_rim(rim, seed)
        if row < 0:
            row = find_farthest(tree, seed, found)
        picked[0] = row
        labels[row] = cluster
        mark(tree, row)
        mass = weight[row]
        for j in range(d):
            seed[j] = X[row, j]
            total[j] = mass * X[row, j]
        number, reach = 0, -1.0  # nothing is known yet, so the first step asks
        for step in range(1, k):
            shift, same = 0.0, number > 0
            for j in range(d):
                centroid[j] = total[j] / mass
                difference = centroid[j] - centre[j]
                shift += difference * difference
                same &= difference == 0.0
            pick, best = _find_known(tree, found, number, centroid)
            # Rounding moves neither side by a part in 1e12, unless squares are so small that they vanish.
            sure = reach > _VANISHING and (np.sqrt(best) + np.sqrt(shift)) * (1 + 1e-12) < np.sqrt(reach)
            if pick == NONE or not (sure or same):
                room = 2 * (k - step) + 2
                number = find_nearest(tree, centroid, found, room)
                reach = np.inf if number < room else found.distance[number - 1]
                pick = found.row[0]
                for j in range(d):
                    centre[j] = centroid[j]
            picked[step] = pick
            labels[pick] = cluster
            mark(tree, pick)
            mass += weight[pick]
            for j in range(d):
                total[j] += weight[pick] * X[pick, j]
        remove(tree, picked, leaves)
        for step in range(k):
            take_from_rim(rim, X, picked[step], labels)


@kernel()
def place_leftovers(
    X: NDArray[Any], weight: NDArray[Any], labels: NDArray[Any], total: NDArray[Any], mass: NDArray[Any]
) -> None:
    """Give every record without a label to the cluster whose squared error it raises least, in row order.

    X: (n, d). total: (c, d) and mass: (c,), the clusters' weighted sums and weights, updated after each record.
    """
    for i in range(X.shape[0]):
        if labels[i] >= 0:
            continue
        best, at = np.inf, 0
        for cluster in range(mass.shape[0]):
            distance = 0.0
            for j in range(X.shape[1]):
                difference = X[i, j] - total[cluster, j] / mass[cluster]
                distance += difference * difference
            raised = mass[cluster] / (mass[cluster] + weight[i]) * distance
            if raised < best:
                best, at = raised, cluster
        labels[i] = at
        mass[at] += weight[i]
        for j in range(X.shape[1]):
            total[at, j] += weight[i] * X[i, j]
