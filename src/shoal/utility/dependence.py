"""How columns hang together, in two samples: rank correlation and mutual information of every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, bin_codes
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]
_LEVELS = 12  # bins, or most frequent levels and the rest, between which information is measured
_WORK = 4e8  # counts of pairs of columns in one table


def correlation_difference(a: Any, b: Any) -> Floats:
    """Return how rank correlations differ, b minus a, shape (d, d); NaN for columns without an order.

    Examples
    --------
    >>> a, b = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], [[1.0, 3.0], [2.0, 2.0], [3.0, 1.0]]
    >>> correlation_difference(a, b).round(6).tolist()
    [[0.0, -2.0], [-2.0, 0.0]]
    """
    pair = Pair.read(a, b)
    return correlations(pair.of(1)) - correlations(pair.of(0))


def information_difference(a: Any, b: Any) -> Floats:
    """Return how much mutual information differs, b minus a, in bits, shape (d, d).

    Columns of more than 12 values are taken in bins, or by their most frequent levels.

    Examples
    --------
    >>> a, b = [[0.0, 0.0], [1.0, 1.0]] * 2, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> information_difference(a, b).round(6).tolist()
    [[0.0, -1.0], [-1.0, 0.0]]
    """
    first, second = both_informations(Pair.read(a, b))
    return second - first


def correlations(columns: list[EncodedColumn]) -> Floats:
    """Return the rank correlation of every pair of columns, missing values at the mean rank."""
    d = len(columns)
    ranked = [column.numbers is not None for column in columns]
    result = np.full((d, d), np.nan)
    if any(ranked):
        ranks = np.column_stack([_ranks(column) for column in columns if column.numbers is not None])
        result[np.ix_(ranked, ranked)] = np.clip(ranks.T @ ranks / len(ranks), -1.0, 1.0)
    return result


def _ranks(column: EncodedColumn) -> Floats:
    """Return standardised middle ranks, 0 where missing and where all are equal."""
    known = ~column.missing
    counts = np.bincount(column.codes[known], minlength=column.n_levels)
    middle = np.cumsum(counts) - (counts + 1) / 2
    ranks = np.where(known, middle[column.codes] - (known.sum() - 1) / 2, 0.0)
    spread = float(np.sqrt((ranks**2).mean()))
    return ranks / spread if spread > 0 else ranks


def both_informations(pair: Pair) -> tuple[Floats, Floats]:
    """Return the mutual information in bits of every pair of columns, of the original and of the release."""
    coded = [_few_levels(column) for column in pair.columns]
    return informations([c[: pair.n] for c in coded]), informations([c[pair.n :] for c in coded])


def rows_for(d: int) -> int:
    """Return on how many rows d columns can be compared pair by pair in reasonable time."""
    return int(np.clip(_WORK / max(d * (d - 1) / 2, 1), 5_000, 2**62))


def informations(coded: list[NDArray[np.int64]]) -> Floats:
    """Return the mutual information in bits of every pair of coded columns, shape (d, d)."""
    d, n = len(coded), len(coded[0])
    shares = [np.bincount(codes, minlength=_LEVELS + 1) / n for codes in coded]
    result = np.zeros((d, d))
    for i in range(d):
        result[i, i] = -_sum_logs(shares[i])
        wide = coded[i] * (_LEVELS + 1)
        for j in range(i):
            joint = np.bincount(wide + coded[j], minlength=(_LEVELS + 1) ** 2) / n
            both = _sum_logs(joint) - _sum_logs(shares[i]) - _sum_logs(shares[j])
            result[i, j] = result[j, i] = max(both, 0.0)
    return result / np.log(2)


def _sum_logs(shares: Floats) -> float:
    there = shares[shares > 0]
    return float(there @ np.log(there))


def _few_levels(column: EncodedColumn) -> NDArray[np.int64]:
    """Return the column as at most 12 codes, and one more for missing values."""
    codes = column.codes
    if column.n_levels <= _LEVELS:
        return codes
    if column.numbers is not None:
        codes = bin_codes(codes, _LEVELS)
    else:
        rank = np.empty(column.n_levels, dtype=np.int64)
        rank[np.argsort(-np.bincount(codes, minlength=column.n_levels), kind="stable")] = np.arange(column.n_levels)
        codes = np.minimum(rank[codes], _LEVELS - 1)
    return np.where(column.missing, _LEVELS, codes)


def correlation_of(pair: Pair) -> Floats:
    """Return how much rank correlations differ, absolutely, shape (d, d)."""
    return np.abs(correlations(pair.of(1)) - correlations(pair.of(0)))


def information_of(pair: Pair) -> Floats:
    """Return how much mutual information differs, absolutely, in bits, shape (d, d)."""
    first, second = both_informations(pair)
    return np.abs(second - first)
