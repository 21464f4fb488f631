"""The greedy k-member clustering of Byun, Kamra, Bertino and Li (2007), with squared Euclidean distortion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.clustering.distortion import weighted_mean, weighted_sums
from shoal.clustering.growing import grow


def greedy(
    X: NDArray[np.float64], weight: NDArray[np.float64], k: int, progress: Callable[[float], None]
) -> NDArray[np.int64]:
    """Cluster the rows of X into floor(n / k) groups of at least k.

    Every cluster starts from the free record farthest from the previous cluster's first record (the very first:
    farthest from the mean of all) and takes, k - 1 times, the free record nearest to its centroid. The n mod k
    records left over then go, in row order, where they raise the squared error least. The lowest row index wins
    every tie.
    """
    from shoal.clustering._greedy import grow_by_scanning, grow_from_tree, place_leftovers

    n_clusters = len(X) // k
    seed = weighted_mean(X, weight)[None, :]
    labels = grow(X, weight, k, n_clusters, seed, grow_from_tree, grow_by_scanning, k, progress)
    if n_clusters * k < len(X):
        total, mass = weighted_sums(X, weight, labels + 1, n_clusters + 1)  # those without a label come first
        place_leftovers(X, weight, labels, total[1:], mass[1:])
    return labels
