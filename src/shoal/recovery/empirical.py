"""The second half of Rosenblatt's transformation: conditional quantiles of the observed rows."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError


class EmpiricalRosenblatt:
    """Turn uniforms into observed rows, column after column, by conditional empirical quantiles.

    ::

        x^_j = min { v : F(v | x^_1, ..., x^_{j-1}) >= u_j }

    (Wei, Natesan Ramamurthy and Varshney, equations 6 to 8.) Every row returned is a row that was observed.

    Attributes
    ----------
    rows_ : array of shape (m, d)
        The distinct rows of positive weight, in lexicographic order.
    row_index_ : array of shape (n,)
        The position in `rows_` of every row of positive weight that was given.

    Examples
    --------
    >>> import numpy as np
    >>> target = EmpiricalRosenblatt().fit([[0, 5], [1, 6], [1, 7], [1, 7]])
    >>> target.inverse_transform([[0.25, 0.9], [0.3, 0.3], [1.0, 0.34]]).tolist()
    [[0, 5], [1, 6], [1, 7]]
    """

    def fit(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the conditional distributions of the rows of X, each counted with its weight."""
        rows = np.asarray(X)
        if rows.ndim != 2 or 0 in rows.shape:
            raise InputError(f"X must have shape (n, d) with n, d >= 1, but its shape is {rows.shape}.")
        weight = np.ones(len(rows)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight.shape != (len(rows),) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
            raise InputError(f"sample_weight must be {len(rows)} numbers, none negative or missing, not all 0.")
        rows, weight = rows[weight > 0], weight[weight > 0] / weight.max()
        self.rows_, inverse = np.unique(rows, axis=0, return_inverse=True)
        self.row_index_ = inverse.ravel()
        self._cumulative = np.concatenate([[0.0], np.cumsum(np.bincount(self.row_index_, weights=weight))])
        new = np.full(self.rows_.shape, fill_value=True)  # new[p, j]: row p opens a new group of equal rows[:, :j + 1]
        new[1:] = np.logical_or.accumulate(self.rows_[1:] != self.rows_[:-1], axis=1)
        m = len(self.rows_)
        self._first = np.maximum.accumulate(np.where(new, np.arange(m)[:, None], 0), axis=0)
        closes = np.roll(new, -1, axis=0)  # the first row opens every group, so the last one closes them
        ends = np.where(closes, np.arange(1, m + 1)[:, None], m)
        self._last = np.minimum.accumulate(ends[::-1], axis=0)[::-1]
        return self

    def inverse_transform(self, u: ArrayLike) -> NDArray[np.generic]:
        """Return the rows at the quantiles u, shape (n, d) with values in [0, 1]."""
        return self.rows_[self.inverse_index(u)]

    def inverse_index(self, u: ArrayLike) -> NDArray[np.int64]:
        """Return for every u the position of its row in `rows_`."""
        quantile = np.asarray(u, dtype=np.float64)
        d = self.rows_.shape[1]
        if quantile.ndim != 2 or quantile.shape[1] != d or not ((quantile >= 0) & (quantile <= 1)).all():
            raise InputError(f"u must have shape (n, {d}) with values in [0, 1], but its shape is {quantile.shape}.")
        low, high = np.zeros(len(quantile), dtype=np.int64), np.full(len(quantile), len(self.rows_))
        at = low
        for j in range(d):
            below = self._cumulative[low]
            mass = below + quantile[:, j] * (self._cumulative[high] - below)
            mass -= 8 * np.finfo(np.float64).eps * self._cumulative[high]  # F(v) may fall short of u by rounding only
            at = np.clip(np.searchsorted(self._cumulative[1:], mass, side="left"), low, high - 1)
            low, high = self._first[at, j], self._last[at, j]
        return at

    def transform(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return u for points spread uniformly over the cells of an integer-valued X.

        A point is `level + fraction`, 0 <= fraction < 1, and its levels must be an observed row. This is the first
        half of the transformation for the piecewise-uniform dither of the paper's Theorem 1.
        """
        points = np.asarray(x, dtype=np.float64)
        levels = np.floor(points).astype(np.int64)
        low, high = np.zeros(len(points), dtype=np.int64), np.full(len(points), len(self.rows_))
        u = np.empty_like(points)
        for j in range(points.shape[1]):
            at = _search_between(self.rows_[:, j], levels[:, j], low, high)
            if (at >= high).any() or (self.rows_[np.minimum(at, len(self.rows_) - 1), j] != levels[:, j]).any():
                raise InputError("x must lie in cells of observed rows.")
            total = self._cumulative[high] - self._cumulative[low]
            start = self._cumulative[self._first[at, j]]
            inside = self._cumulative[self._last[at, j]] - start
            u[:, j] = (start - self._cumulative[low] + inside * (points[:, j] - levels[:, j])) / total
            low, high = self._first[at, j], self._last[at, j]
        return u


def _search_between(
    column: NDArray[np.generic], value: NDArray[np.generic], low: NDArray[np.int64], high: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return for every i the first position p in [low_i, high_i) with column[p] >= value_i, by bisection."""
    low, high = low.copy(), high.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        smaller = open_ & (column[np.minimum(middle, len(column) - 1)] < value)
        low = np.where(smaller, middle + 1, low)
        high = np.where(open_ & ~smaller, middle, high)
    return low
