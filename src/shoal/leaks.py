"""Find released columns that give a quasi-identifier away.

A column that travels with its record undoes the protection if the quasi-identifier can be read off it: an age group
beside the age, an exact income beside the income bracket. We measure how well it predicts, record by record, from the
other people only, so that a column of unique values (a cost to the cent) is not blamed for being unique, and only where
it has a value, so that a column which speaks of few is not excused by its silence on the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from shoal.encoding import EncodedColumn, encode, find_missing
from shoal.errors import InputError, LeakError, suggest
from shoal.schema import Column, infer_kind

Codes = NDArray[np.int64]
GIVEN_AWAY = 0.9  # of the way from guessing to knowing
_FEWEST_ROWS = 8  # below this any two columns can agree by chance
_CHANCE = 1e-3


def refuse_leaks(
    frame: nw.DataFrame[Any],
    released: Sequence[str],
    quasi_identifiers: Sequence[EncodedColumn],
    person: Codes,
    allowed: Sequence[str] = (),
) -> dict[str, str]:
    """Raise LeakError if a released column gives a quasi-identifier away.

    Return what leaks and is allowed: the quasi-identifier that each of these columns gives away. person: of every row.
    """
    if isinstance(allowed, str):
        raise InputError(f"allow_leaks must be a list of column names; write [{allowed!r}].")
    for name in allowed:
        if name not in released:
            raise InputError(f"allow_leaks names {name!r}, which is not a released column{suggest(name, released)}")
    leaking = {}
    for name in released:
        key, known = _order_of(frame[name])
        for column in quasi_identifiers:
            skill = prediction_skill(key[known], column.take(np.flatnonzero(known)), person[known])
            if skill < GIVEN_AWAY:
                continue
            if name not in allowed:
                raise LeakError(
                    f"Column {name!r} would be released and gives the quasi-identifier {column.name!r} away (it tells "
                    f"it with a skill of {skill:.2f}; 0 is guessing, 1 is knowing). Drop it, make it a "
                    f"quasi-identifier too, or accept this with allow_leaks=[{name!r}]."
                )
            leaking[name] = column.name
            break
    return leaking


def _order_of(series: nw.Series[Any]) -> tuple[Codes, NDArray[np.bool_]]:
    """Return codes in the order of the column's values, of whatever dtype, and where there is a value."""
    kind, levels = infer_kind(series)
    missing = find_missing(series)
    if missing.all():
        return np.zeros(len(missing), dtype=np.int64), ~missing
    if series.dtype.is_float():  # infinities are nothing to complain about in a column that is only passed on
        values = np.where(missing, 0.0, series.fill_null(0).to_numpy().astype(np.float64))
        return np.unique(values, return_inverse=True)[1].astype(np.int64), ~missing
    if kind is None:
        texts = ["" if gone else str(value) for value, gone in zip(series.to_list(), missing, strict=True)]
        return np.unique(np.array(texts, dtype=object), return_inverse=True)[1].astype(np.int64), ~missing
    return encode(series, Column(series.name, "kept", kind, levels)).codes, ~missing


def prediction_skill(key: Codes, column: EncodedColumn, person: Codes) -> float:
    """Return how well a column can be told from another one, by its keys: 0 is guessing, 1 is knowing.

    Every record is predicted from other people's: those with the same key, or else the two neighbours in key order.
    Discrete columns by the most frequent level (skill = (hits - base) / (1 - base), base the share of the most
    frequent level of all), continuous ones by the mean rank (skill = R^2). Rows without a key are to be left out.
    """
    once = np.unique(np.stack([key, person]), axis=1, return_index=True)[1] if len(key) else key
    key, codes, person = key[once], column.codes[once], person[once]
    n = len(key)
    if n < _FEWEST_ROWS or codes.min() == codes.max():
        return 0.0
    key = np.unique(key, return_inverse=True)[1]
    alone = np.bincount(key)[key] == 1
    before, after = _neighbours(key, person)
    if column.is_continuous:
        return _rank_skill(key, rankdata(codes), alone, before, after)
    base = float(np.bincount(codes).max() / n)
    near = ((codes[before] == codes).astype(float) + (codes[after] == codes)) / 2
    hits = np.where(alone, near, _majority_hits(key, codes))
    skill = float((hits.mean() - base) / (1 - base))
    by_chance = binom.sf(np.ceil(hits.sum()) - 1, n, base)
    return skill if by_chance < _CHANCE else 0.0


def _neighbours(key: Codes, person: Codes) -> tuple[Codes, Codes]:
    """Return for every row the nearest ones before and after it in key order that belong to somebody else."""
    order = np.argsort(key, kind="stable")
    ordered = person[order]
    opens = np.append(True, ordered[1:] != ordered[:-1])
    run = np.cumsum(opens) - 1
    starts = np.flatnonzero(opens)
    ends = np.append(starts[1:], len(key))
    low, high = starts[run] - 1, ends[run]
    low, high = np.where(low < 0, high, low), np.where(high >= len(key), low, high)
    low, high = np.clip(low, 0, len(key) - 1), np.clip(high, 0, len(key) - 1)
    before, after = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    before[order], after[order] = order[low], order[high]
    return before, after


def _rank_skill(key: Codes, rank: NDArray[np.float64], alone: NDArray[np.bool_], before: Codes, after: Codes) -> float:
    sizes, sums = np.bincount(key), np.bincount(key, weights=rank)
    others = (sums[key] - rank) / np.maximum(sizes[key] - 1, 1)
    near = (rank[before] + rank[after]) / 2
    error = rank - np.where(alone, near, others)
    return float(1 - (error**2).mean() / rank.var())


def _majority_hits(key: Codes, codes: Codes) -> NDArray[np.float64]:
    """Return 1 where most of the other records with the same key have the record's level, 1/2 on a tie, else 0."""
    n_levels = int(codes.max()) + 1
    pairs, pair_of, counts = np.unique(key * n_levels + codes, return_inverse=True, return_counts=True)
    group = pairs // n_levels
    order = np.lexsort((-counts, group))
    first = np.searchsorted(group[order], np.arange(int(key.max()) + 1))
    best = order[first]
    has_second = (first + 1 < len(order)) & (group[order[np.minimum(first + 1, len(order) - 1)]] == group[best])
    second = np.where(has_second, counts[order[np.minimum(first + 1, len(order) - 1)]], 0)
    rival = np.where(best[group] == np.arange(len(pairs)), second[group], counts[best[group]])
    hit = np.where(counts - 1 > rival, 1.0, np.where((counts - 1 == rival) & (rival > 0), 0.5, 0.0))
    return hit[pair_of]
