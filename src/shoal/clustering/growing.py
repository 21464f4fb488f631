"""Grow clusters one after the other from the free records, from a tree or by scanning, whichever is faster.

An algorithm brings two kernels that do the same, label for label: one finds records in a kd-tree, the other by looking
at all of them. In many dimensions, or among few records, a tree looks at nearly everything and scanning wins.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

_FEW = 1500  # records that are scanned without trying a tree
_WORK_PER_CALL = 2e8  # nanoseconds, roughly, between two progress reports, and two chances to be interrupted


def cost_of_scanning(n: int, d: int) -> float:
    """Return how many nanoseconds it takes to look at n records, roughly: only which way is faster depends on it."""
    return n * (1.1 + 0.17 * d)


def cost_of_searching(nodes: int, d: int) -> float:
    """Return how many nanoseconds it takes to look at so many nodes of a tree, roughly."""
    return nodes * (30 + 4.5 * d)


def grow(
    X: NDArray[np.float64],
    weight: NDArray[np.float64],
    k: int,
    n_clusters: int,
    state: NDArray[np.float64],
    from_tree: Callable[..., None],
    by_scanning: Callable[..., None],
    passes: int,
    progress: Callable[[float], None],
) -> NDArray[np.int64]:
    """Return labels 0 .. n_clusters - 1 of k records each, and -1 for the records left over.

    from_tree(X, weight, tree, rim, search, state, k, first, last, labels) and by_scanning(free, state, k, first, last,
    labels) form the clusters first .. last - 1 and leave in `state` what the next ones need; its first row is the mean
    to begin with. passes: how often scanning looks at all records for one cluster.
    """
    from shoal.clustering._rim import make_rim
    from shoal.clustering._scan import make_free
    from shoal.clustering._tree import make_search, make_tree

    n, d = X.shape
    labels = np.full(n, -1, dtype=np.int64)
    rows, done = np.arange(n, dtype=np.int32), 0

    if n > _FEW:
        rim, search, place = make_rim(X, state[0, :d]), make_search(2 * k + 2), np.empty(n, dtype=np.int32)
        step, costs = 64, 0.0
        while done < n_clusters and costs <= passes * cost_of_scanning(len(rows), d):
            tree = make_tree(X, rows, place)
            until = min(n_clusters, done + max(1, len(rows) // (2 * k)))
            while done < until and costs <= passes * cost_of_scanning(len(rows), d):
                last, search.work[0] = min(done + step, until), 0
                from_tree(X, weight, tree, rim, search, state, k, done, last, labels)
                costs = cost_of_searching(int(search.work[0]), d) / (last - done)
                step = max(16, int(_WORK_PER_CALL / (costs + 100 * d * k)))
                done = last
                progress(done * k / n)
            del tree  # before the next one is built
            rows = rows[labels[rows] < 0]
        del rim, search, place
    free = make_free(X, weight, np.sort(rows))
    while done < n_clusters:
        last = min(n_clusters, done + max(1, int(_WORK_PER_CALL / (passes * cost_of_scanning(n - done * k, d) + 1))))
        by_scanning(free, state, k, done, last, labels)
        done = last
        progress(done * k / n)
    return labels
