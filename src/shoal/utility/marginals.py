"""How far two samples of a column are apart: shares in common, Kolmogorov-Smirnov, Wasserstein."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn
from shoal.utility.fidelity import intersect
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]


def ks_distance(a: Any, b: Any) -> Floats:
    """Return for every column the largest difference of the two cumulative shares, NaN where there is no order.

    0: equal distributions; 1: no value in common range. Missing values are left out.

    Parameters
    ----------
    a, b : tables with the same columns, or arrays of shape (n, d)

    Examples
    --------
    >>> ks_distance([[1.0], [2.0]], [[1.0], [3.0]]).tolist()
    [0.5]
    """
    return ks_of(Pair.read(a, b))


def wasserstein_distance(a: Any, b: Any) -> Floats:
    """Return for every column how far values must move, in standard deviations of a; NaN where there is no order.

    The mean distance when one sample is turned into the other with the least movement. Missing values are left out.

    Examples
    --------
    >>> wasserstein_distance([[-1.0], [1.0]], [[-1.0], [2.0]]).tolist()
    [0.5]
    """
    return wasserstein_of(Pair.read(a, b))


def joint_of(pair: Pair) -> Floats:
    """Return 1 - the histogram intersection of all columns together, exact values."""
    cells = pair.as_one().columns[0].codes
    return np.array([1 - intersect(cells[: pair.n], cells[pair.n :])])


def marginals_of(pair: Pair) -> Floats:
    """Return 1 - the histogram intersection of every column, continuous ones in 20 quantile bins."""
    binned = (column.binned() for column in pair.columns)
    return np.array([1 - intersect(codes[: pair.n], codes[pair.n :]) for codes in binned])


def ks_of(pair: Pair) -> Floats:
    """Return the Kolmogorov-Smirnov distance of every column."""
    return np.array([_gap(column, pair.n, wasserstein=False) for column in pair.columns])


def wasserstein_of(pair: Pair) -> Floats:
    """Return the Wasserstein distance of every column."""
    return np.array([_gap(column, pair.n, wasserstein=True) for column in pair.columns])


def _gap(column: EncodedColumn, n: int, *, wasserstein: bool) -> float:
    """Return the largest difference of the cumulative shares, or its integral over values."""
    if column.numbers is None:
        return float("nan")
    counts = []
    for rows in (slice(None, n), slice(n, None)):
        known = ~column.missing[rows]
        counts.append(np.bincount(column.codes[rows][known], minlength=column.n_levels).astype(np.float64))
    if not all(count.any() for count in counts):
        return float("nan")
    a, b = (np.cumsum(count) / count.sum() for count in counts)
    if not wasserstein:
        return float(np.abs(a - b).max())
    values = np.zeros(column.n_levels)
    values[column.codes] = column.numbers  # of the missing level NaN, which is the last
    there = np.isfinite(values)
    values, difference = values[there], (a - b)[there]
    scale = max(float(np.abs(values).max()), 1e-300)
    spread = float(np.nanstd(column.numbers[:n] / scale))
    moved = float(np.abs(difference[:-1]) @ np.diff(values / scale))
    return moved / spread if spread > 0 else (0.0 if moved == 0 else float("inf"))
