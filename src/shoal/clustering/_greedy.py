"""Kernels of the greedy k-member clustering: brute force over the free records, vectorised, exact in every tie."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import inlined, kernel

_BLOCK = 256


@inlined
def _distances(
    free: NDArray[Any], start: int, stop: int, point: NDArray[Any], taken: NDArray[Any], buffer: NDArray[Any]
) -> NDArray[Any]:
    """Return the squared distances of the free records start .. stop - 1 to the point; infinite where taken."""
    out = buffer[: stop - start]
    out[:] = taken[start:stop]
    for j in range(free.shape[0]):
        column = free[j, start:stop]  # slices let the compiler see that no index wraps around
        centre = point[j]
        for p in range(out.shape[0]):
            difference = column[p] - centre
            out[p] += difference * difference
    return out


@inlined
def _nearest(free: NDArray[Any], m: int, point: NDArray[Any], taken: NDArray[Any], buffer: NDArray[Any]) -> int:
    """Return the first of the free records nearest to the point."""
    best, at = np.inf, -1
    for start in range(0, m, _BLOCK):
        out = _distances(free, start, min(start + _BLOCK, m), point, taken, buffer)
        smallest = np.inf
        for p in range(out.shape[0]):
            smallest = min(smallest, out[p])
        if smallest < best:
            best = smallest
            for p in range(out.shape[0]):
                if out[p] == smallest:
                    at = start + p
                    break
    return at


@inlined
def _farthest(free: NDArray[Any], m: int, point: NDArray[Any], taken: NDArray[Any], buffer: NDArray[Any]) -> int:
    """Return the first of the free records farthest from the point."""
    best, at = -1.0, -1
    for start in range(0, m, _BLOCK):
        out = _distances(free, start, min(start + _BLOCK, m), point, taken, buffer)
        largest = -1.0
        for p in range(out.shape[0]):
            largest = max(largest, out[p] if out[p] < np.inf else -1.0)
        if largest > best:
            best = largest
            for p in range(out.shape[0]):
                if out[p] == largest:
                    at = start + p
                    break
    return at


@kernel()
def grow_clusters(
    free: NDArray[Any],
    row: NDArray[Any],
    weight: NDArray[Any],
    taken: NDArray[Any],
    m: int,
    seed: NDArray[Any],
    k: int,
    first: int,
    last: int,
    labels: NDArray[Any],
) -> int:
    """Form the clusters first .. last - 1, and return how many entries of `free` are still in use.

    free: (d, n), the free records in row order; row, weight, taken (0, or infinite once used): (n,); seed: (d,), the
    previous seed, replaced. All of them are packed in place when an eighth of the records has been used.
    """
    d = free.shape[0]
    buffer = np.empty(_BLOCK)
    total = np.empty(d)
    centroid = np.empty(d)
    used = 0
    for cluster in range(first, last):
        at = _farthest(free, m, seed, taken, buffer)
        for j in range(d):
            seed[j] = free[j, at]
            total[j] = weight[at] * free[j, at]
        mass = weight[at]
        taken[at] = np.inf
        labels[row[at]] = cluster
        for _ in range(k - 1):
            for j in range(d):
                centroid[j] = total[j] / mass
            at = _nearest(free, m, centroid, taken, buffer)
            for j in range(d):
                total[j] += weight[at] * free[j, at]
            mass += weight[at]
            taken[at] = np.inf
            labels[row[at]] = cluster
        used += k
        if used * 8 > m or cluster == last - 1:
            kept = 0
            for p in range(m):
                if taken[p] == 0.0:
                    for j in range(d):
                        free[j, kept] = free[j, p]
                    row[kept], weight[kept], taken[kept] = row[p], weight[p], 0.0
                    kept += 1
            m, used = kept, 0
    return m


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
