"""Recovery by ranks: the paper's transformation with ranks for CDFs, exact in a finite sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError


def rank_recover(dithered: ArrayLike, X: ArrayLike, *, return_index: bool = False) -> NDArray[Any]:
    """Hand the original rows to the dithered points by rank, one column after the other.

    Sort the points by their first coordinate and hand them the sorted first column of X; inside every group of equal
    values received, sort by the second coordinate and hand out that group's own second column; and so on. The result
    is a permutation of the rows of X, so every joint count is equal, in O(d n log n).

    Parameters
    ----------
    dithered : array of shape (n, d)
    X : array of shape (n, d)
        Original rows; columns with few distinct values, or bins: once a group is a single row, the later columns
        are whatever that row has (`transport_recover` does not have this weakness).
    return_index : bool, default False
        Return for every point the index of its row instead of the row.

    Examples
    --------
    >>> rank_recover([[0.3, 9.0], [0.1, 0.0], [0.2, 1.0]], [[1, 5], [0, 7], [0, 6]]).tolist()
    [[1, 5], [0, 6], [0, 7]]
    """
    points, rows = check_pair(dithered, X)
    n, d = rows.shape
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    group = np.zeros(n, dtype=np.int64)  # of every point: the points with equal values so far
    opens = np.zeros(n, dtype=bool)
    place = group
    for j in range(d):
        place = np.empty(n, dtype=np.int64)
        place[np.lexsort((points[:, j], group))] = np.arange(n)
        opens[1:] |= ordered[1:, j] != ordered[:-1, j]
        group = np.cumsum(opens)[place]
    index = order[place]
    return index if return_index else rows[index]


def check_pair(dithered: ArrayLike, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Check that points and rows can be matched, and return them as arrays."""
    try:
        points, rows = np.asarray(dithered, dtype=np.float64), np.asarray(X)
        numbers = rows.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError("dithered and X must hold numbers, in rows of equal length.") from None
    if points.ndim != 2 or points.shape != rows.shape or 0 in points.shape:
        raise InputError(
            f"dithered and X must have the same shape (n, d), n, d >= 1, but they have {points.shape} and {rows.shape}."
        )
    if not (np.isfinite(points).all() and np.isfinite(numbers).all()):
        raise InputError("dithered and X must be finite, but they have missing or infinite values.")
    return points, rows
