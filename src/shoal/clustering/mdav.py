"""MDAV, maximum distance to average vector (Domingo-Ferrer and Torra 2005): the standard of microaggregation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.clustering.growing import grow


def mdav(
    X: NDArray[np.float64], weight: NDArray[np.float64], k: int, progress: Callable[[float], None]
) -> NDArray[np.int64]:
    """Cluster the rows of X into floor(n / k) groups of at least k, all but the last of exactly k.

    While 3k records are free: a cluster of the record r farthest from the mean of the free ones and the k - 1 nearest
    to r, then one of the record farthest from r and the k - 1 nearest to that. With 2k or more left one such cluster
    more; the rest is the last. The lowest row index wins every tie.
    """
    from shoal.clustering._mdav import grow_by_scanning, grow_from_tree, start

    n_clusters = len(X) // k
    state = np.empty((3, X.shape[1] + 1))
    start(X, weight, state)
    labels = grow(X, weight, k, n_clusters - 1, state, grow_from_tree, grow_by_scanning, 2, progress)
    labels[labels < 0] = n_clusters - 1
    return labels
