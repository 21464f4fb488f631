"""The best clusters along one column, or along an order (Hansen and Mukherjee 2003)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InputError


def optimal(
    X: NDArray[np.float64], weight: NDArray[np.float64], k: int, order: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Cut the rows, in the order of their only column or in a given one, into runs of at least k, exactly.

    Dynamic programming over the last cut, in O(n k d). For one column of equal weights no clusters of any shape are
    better. With record weights, or with several columns along an order, these are the best *contiguous* clusters:
    others may be better.
    """
    from shoal.clustering._optimal import cut

    n, d = X.shape
    if order is None:
        if d != 1:
            raise InputError(
                f"algorithm='optimal' needs one column, but X has {d}; give fit an order of the rows, or use 'refined'."
            )
        order = np.argsort(X[:, 0], kind="stable")
    error, start = np.empty(n + 1), np.empty(n + 1, dtype=np.int64)
    cut(np.ascontiguousarray(X[order]), weight[order], k, error, start)
    labels = np.empty(n, dtype=np.int64)
    stop, runs = n, []
    while stop > 0:
        runs.append((int(start[stop]), stop))
        stop = int(start[stop])
    for label, (first, last) in enumerate(reversed(runs)):
        labels[order[first:last]] = label
    return labels
