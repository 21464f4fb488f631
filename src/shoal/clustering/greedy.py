"""The greedy k-member clustering of Byun, Kamra, Bertino and Li (2007), with squared Euclidean distortion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_WORK_PER_CALL = 1e9  # multiplications between two progress reports, and two chances to be interrupted


def greedy(
    X: NDArray[np.float64],
    k: int,
    weight: NDArray[np.float64],
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.int64]:
    """Cluster the rows of X into floor(n / k) groups of at least k.

    Every cluster starts from the free record farthest from the previous cluster's first record (the very first:
    farthest from the mean of all) and takes, k - 1 times, the free record nearest to its centroid. The n mod k
    records left over then go, in row order, where they raise the squared error least. The lowest row index wins
    every tie.
    """
    from shoal.clustering._greedy import grow_clusters, place_leftovers

    n, d = X.shape
    n_clusters = n // k
    labels = np.full(n, -1, dtype=np.int64)
    free, row = np.ascontiguousarray(X.T).copy(), np.arange(n)
    left, taken, seed = weight.copy(), np.zeros(n), np.average(X, axis=0, weights=weight)
    m, done = n, 0
    while done < n_clusters:
        step = max(1, int(_WORK_PER_CALL / (m * k * max(d, 1))))
        until = min(done + step, n_clusters)
        m = grow_clusters(free, row, left, taken, m, seed, k, done, until, labels)
        done = until
        if progress is not None:
            progress(1 - (m / n) ** 2)
    if m:
        total = np.zeros((n_clusters, d))
        placed = labels >= 0
        np.add.at(total, labels[placed], weight[placed, None] * X[placed])
        mass = np.bincount(labels[placed], weights=weight[placed], minlength=n_clusters)
        place_leftovers(X, weight, labels, total, mass)
    return labels
