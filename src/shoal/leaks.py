"""Find released columns that give a quasi-identifier away.

A column that travels with its record undoes the protection if the quasi-identifier can be read off it: an age group
beside the age, an exact income beside the income bracket. We measure how well it predicts, record by record, from the
other records only, so that a column of unique values (a cost to the cent) is not blamed for being unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from shoal.encoding import EncodedColumn, encode
from shoal.errors import InputError, LeakError, suggest
from shoal.schema import Column, infer_kind

GIVEN_AWAY = 0.9  # of the way from guessing to knowing
_FEWEST_ROWS = 8  # below this any two columns can agree by chance
_CHANCE = 1e-3


def refuse_leaks(
    frame: nw.DataFrame[Any],
    released: Sequence[str],
    rows: NDArray[np.int64],
    quasi_identifiers: Iterable[EncodedColumn],
    allowed: Sequence[str] = (),
) -> list[str]:
    """Raise LeakError if a released column gives a quasi-identifier away; return those that do and are allowed.

    rows: one row of the frame for every person; quasi_identifiers: at these rows.
    """
    for name in allowed:
        if name not in released:
            raise InputError(f"allow_leaks names {name!r}, which is not a released column{suggest(name, released)}")
    hidden = list(quasi_identifiers)
    leaking = []
    for name in released:
        key = _order_of(frame[name][rows])
        for column in hidden:
            skill = prediction_skill(key, column)
            if skill < GIVEN_AWAY:
                continue
            if name not in allowed:
                raise LeakError(
                    f"Column {name!r} would be released and gives the quasi-identifier {column.name!r} away (it tells "
                    f"it with a skill of {skill:.2f}; 0 is guessing, 1 is knowing). Drop it, make it a "
                    f"quasi-identifier too, or accept this with allow_leaks=[{name!r}]."
                )
            leaking.append(name)
            break
    return leaking


def _order_of(series: nw.Series[Any]) -> NDArray[np.int64]:
    """Return codes in the order of the column's values, of whatever dtype, missing last."""
    kind, levels = infer_kind(series)
    missing = series.is_null().to_numpy().astype(bool)
    if missing.all():
        return np.zeros(len(missing), dtype=np.int64)
    if kind is None:
        texts = ["" if gone else str(value) for value, gone in zip(series.to_list(), missing, strict=True)]
        return np.unique(np.array(texts, dtype=object), return_inverse=True)[1].astype(np.int64)
    if series.dtype.is_float():  # infinities are nothing to complain about in a column that is only passed on
        values = np.nan_to_num(series.to_numpy().astype(np.float64), nan=np.inf)
        return np.unique(values, return_inverse=True)[1].astype(np.int64)
    return encode(series, Column(series.name, "kept", kind, levels)).codes


def prediction_skill(key: NDArray[np.int64], column: EncodedColumn) -> float:
    """Return how well a column can be told from the order of another one: 0 is guessing, 1 is knowing.

    Every record is predicted from the others with the same key, or else from its two neighbours in key order:
    discrete columns by the most frequent level (skill = (hits - base) / (1 - base), base the share of the most
    frequent level of all), continuous ones by the mean rank (skill = R^2).
    """
    n = len(key)
    if n < _FEWEST_ROWS or column.n_levels == 1:
        return 0.0
    order = np.argsort(key, kind="stable")
    alone = np.bincount(key)[key] == 1
    if column.is_continuous:
        return _rank_skill(key, rankdata(column.codes), order, alone)
    base = float(np.bincount(column.codes).max() / n)
    hits = np.where(alone, _neighbour_hits(column.codes, order), _majority_hits(key, column))
    skill = float((hits.mean() - base) / (1 - base))
    by_chance = binom.sf(np.ceil(hits.sum()) - 1, n, base)
    return skill if by_chance < _CHANCE else 0.0


def _rank_skill(
    key: NDArray[np.int64], rank: NDArray[np.float64], order: NDArray[np.int64], alone: NDArray[np.bool_]
) -> float:
    sizes, sums = np.bincount(key), np.bincount(key, weights=rank)
    others = (sums[key] - rank) / np.maximum(sizes[key] - 1, 1)
    ordered = np.pad(rank[order], 1, mode="reflect")
    near = np.empty(len(rank))
    near[order] = (ordered[:-2] + ordered[2:]) / 2
    error = rank - np.where(alone, near, others)
    return float(1 - (error**2).mean() / rank.var())


def _neighbour_hits(codes: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.float64]:
    ordered = np.pad(codes[order], 1, mode="reflect")
    hits = np.empty(len(codes))
    hits[order] = ((ordered[:-2] == ordered[1:-1]).astype(float) + (ordered[2:] == ordered[1:-1])) / 2
    return hits


def _majority_hits(key: NDArray[np.int64], column: EncodedColumn) -> NDArray[np.float64]:
    """Return 1 where most of the other records with the same key have the record's level, 1/2 on a tie, else 0."""
    pairs, pair_of, counts = np.unique(key * column.n_levels + column.codes, return_inverse=True, return_counts=True)
    group = pairs // column.n_levels
    order = np.lexsort((-counts, group))
    first = np.searchsorted(group[order], np.arange(int(key.max()) + 1))
    best = order[first]
    has_second = (first + 1 < len(order)) & (group[order[np.minimum(first + 1, len(order) - 1)]] == group[best])
    second = np.where(has_second, counts[order[np.minimum(first + 1, len(order) - 1)]], 0)
    rival = np.where(best[group] == np.arange(len(pairs)), second[group], counts[best[group]])
    hit = np.where(counts - 1 > rival, 1.0, np.where((counts - 1 == rival) & (rival > 0), 0.5, 0.0))
    return hit[pair_of]
