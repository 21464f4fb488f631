"""Find released columns that give a quasi-identifier away.

A column that travels with its record undoes the protection if the quasi-identifier can be read off it: an age group
beside the age, an exact income beside the income bracket. We measure how well it predicts, record by record, from the
other people only, so that a column of unique values (a cost to the cent) is not blamed for being unique, and where it
has a value, so that a column which speaks of few is not excused by its silence on the rest; the silence is read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom, rankdata

from shoal.encoding import EncodedColumn, encode, find_missing
from shoal.errors import InputError, LeakError, suggest
from shoal.schema import Column, infer_kind

Codes = NDArray[np.int64]
GIVEN_AWAY = 0.9  # of the way from guessing to knowing
_FEWEST_ROWS = 8  # below this two columns can agree by chance
_CHANCE = 1e-4
_SAMPLE = 5_000
_NOTABLE = 0.2  # share of the rows: a few coincidences are not yet a leak
_DATE_FORMS = ("%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d", "%d-%b-%Y", "%d%b%Y", "%b-%d-%Y", "%d-%B-%Y", "%B-%d-%Y")


def refuse_leaks(
    frame: nw.DataFrame[Any],
    released: Sequence[str],
    quasi_identifiers: Sequence[EncodedColumn],
    person: Codes,
    allowed: Sequence[str] = (),
) -> dict[str, list[str]]:
    """Raise LeakError if a released column gives a quasi-identifier away.

    Return what leaks and is allowed: the quasi-identifiers that each of these columns gives away. person: of every
    row.
    """
    if not isinstance(allowed, Sequence) or isinstance(allowed, str):
        raise InputError(f"allow_leaks must be a list of column names; write [{allowed!r}].")
    for name in allowed:
        if name not in released:
            raise InputError(f"allow_leaks names {name!r}, which is not a released column{suggest(name, released)}")
    leaking: dict[str, list[str]] = {}
    for name in released:
        known = np.flatnonzero(~find_missing(frame[name]))
        sample = known[np.linspace(0, len(known) - 1, min(len(known), _SAMPLE)).astype(np.int64)]  # enough for a copy
        said, predictors = _texts_of(frame[name][sample]), [Predictor(key, person) for key in _keys_of(frame[name])]
        for column in quasi_identifiers:
            skill = max(predictor.skill(column) for predictor in predictors)
            if skill < GIVEN_AWAY and not _is_copy(said, _texts_of(frame[column.name][sample])):
                continue
            if name not in allowed:
                raise LeakError(
                    f"Column {name!r} would be released and gives the quasi-identifier {column.name!r} away. Drop it, "
                    f"make it a quasi-identifier too, or accept this with allow_leaks=[{name!r}]."
                )
            leaking.setdefault(name, []).append(column.name)
    return leaking


def _keys_of(series: nw.Series[Any]) -> list[NDArray[np.float64]]:
    """Return the column as numbers that follow its order, NaN where missing, in every way in which it may be read.

    Besides its own order: of text the order of the numbers or dates it spells, and whether there is a value at all.
    """
    missing = find_missing(series)
    silence = [missing.astype(np.float64)] if missing.any() else []
    if missing.all():
        return silence
    kind, levels = infer_kind(series)
    if series.dtype.is_float():  # infinities are nothing to complain about in a column that is only passed on
        values = series.fill_null(0).to_numpy().astype(np.float64)
        return [_rank(np.clip(values, -np.finfo(float).max, np.finfo(float).max), missing), *silence]
    if kind in ("numeric", "datetime") or levels is not None:
        try:
            return [_rank(encode(series, Column(series.name, "kept", kind, levels)).codes, missing), *silence]
        except InputError:  # odd numbers, in a column that is only passed on: its text will do
            return [*_keys_of_text(series, missing), *silence]
    return [*_keys_of_text(series, missing), *silence]


def _keys_of_text(series: nw.Series[Any], missing: NDArray[np.bool_]) -> list[NDArray[np.float64]]:
    texts = _texts_of(series)
    keys = [_rank(texts, missing)]
    return keys + [_rank(np.where(np.isnan(said), 0, said), missing | np.isnan(said)) for said in _read_texts(texts)]


def _texts_of(series: nw.Series[Any]) -> NDArray[Any]:
    """Return the column as texts, of whatever dtype; None where missing, a list of one as what is in it."""
    try:
        values = zip(series.to_list(), find_missing(series), strict=True)
        texts = [None if gone else _text_of(value) for value, gone in values]
        "".join(text for text in texts if text is not None).encode()
    except (ValueError, OverflowError):  # whose own words quote the value
        raise InputError(
            f"Column {series.name!r} has dates beyond the year 9999, or texts that are not Unicode; mend or drop them."
        ) from None
    return np.array(texts, dtype=object)


def _text_of(value: Any) -> str:
    if isinstance(value, list | tuple | set | np.ndarray) and len(value) == 1:
        value = next(iter(value))
    return str(value).strip().casefold()


def _read_texts(texts: NDArray[Any]) -> list[NDArray[np.float64]]:
    """Return texts as numbers and as dates, in each way in which most of them can be read."""
    series = pl.Series(texts.tolist(), dtype=pl.String)
    figures = (
        series.str.replace_all(r"[^0-9.,+\-]", "")
        .str.replace_all(r",([0-9]{3})", "$1")
        .str.replace(",", ".", literal=True)
    )
    days = series.str.replace(r"[t ][0-9]{1,2}:[0-9]{2}.*$", "").str.replace_all(r"[-./, ]+", "-")
    ways = [figures.cast(pl.Float64, strict=False)]
    ways += [days.str.to_date(form, strict=False).cast(pl.Float64) for form in _DATE_FORMS]
    missing, known = series.null_count(), series.count()
    return [way.fill_null(np.nan).to_numpy() for way in ways if way.null_count() - missing < 0.1 * known]


def _rank(values: NDArray[Any], missing: NDArray[np.bool_]) -> NDArray[np.float64]:
    ranks = np.full(len(values), np.nan)
    ranks[~missing] = np.unique(values[~missing], return_inverse=True)[1]
    return ranks


def _is_copy(said: NDArray[Any], hidden: NDArray[Any]) -> bool:
    """Return whether two columns say nearly everywhere the same, beyond what their frequencies explain (kappa)."""
    both = [(a, b) for a, b in zip(said, hidden, strict=True) if a is not None and b is not None]
    if len(both) < _FEWEST_ROWS:
        return False
    left, right = Counter(a for a, _ in both), Counter(b for _, b in both)
    expected = sum(count * right[text] for text, count in left.items()) / len(both) ** 2
    agreed = sum(a == b for a, b in both) / len(both)
    return expected < 1 and (agreed - expected) / (1 - expected) >= GIVEN_AWAY


class Predictor:
    """How well a quasi-identifier can be told from a key, record by record, from other people's records only.

    A record is predicted from those with the same key, or else from its two neighbours in key order: levels by the
    most frequent one (skill = (hits - base) / (1 - base), base the share of the most frequent level of all), columns
    with an order also by the mean rank (skill = R^2). Rows whose key is missing (NaN) are left out, and keys that
    occur once are also judged apart from those that recur: neither may tell, if it is a fifth of the rows.
    """

    def __init__(self, key: NDArray[np.float64], person: Codes) -> None:
        order = np.lexsort((person, key))
        order = order[~np.isnan(key[order])]
        new = np.ones(len(order), dtype=bool)  # one row for every key of a person
        new[1:] = (key[order][1:] != key[order][:-1]) | (person[order][1:] != person[order][:-1])
        self.rows = order[new]  # in the order of their keys
        changes = np.append(False, key[self.rows][1:] != key[self.rows][:-1])
        self.group = np.cumsum(changes)
        self.alone = np.bincount(self.group)[self.group] == 1 if len(self.rows) else changes
        self.before, self.after = _neighbours(person[self.rows])

    def skill(self, column: EncodedColumn) -> float:
        """Return the skill: 0 is guessing, 1 is knowing."""
        codes = column.codes[self.rows]
        if len(codes) < _FEWEST_ROWS or np.ptp(codes) == 0:
            return 0.0
        near = ((codes[self.before] == codes).astype(float) + (codes[self.after] == codes)) / 2
        hits = np.where(self.alone, near, _majority_hits(self.group, codes))
        ranks = rankdata(codes)
        errors = self._rank_errors(ranks)
        skills = [0.0]
        for rows in (slice(None), self.alone, ~self.alone):
            if len(codes[rows]) < max(_FEWEST_ROWS, _NOTABLE * len(codes)) or np.ptp(codes[rows]) == 0:
                continue
            skills.append(_level_skill(hits[rows], codes[rows]))
            if column.numbers is not None and (codes[rows] != np.bincount(codes[rows]).argmax()).sum() >= _FEWEST_ROWS:
                skills.append(float(1 - (errors[rows] ** 2).mean() / ranks[rows].var()))
        return max(skills)

    def _rank_errors(self, rank: NDArray[np.float64]) -> NDArray[np.float64]:
        sizes, sums = np.bincount(self.group), np.bincount(self.group, weights=rank)
        others = (sums[self.group] - rank) / np.maximum(sizes[self.group] - 1, 1)
        return rank - np.where(self.alone, (rank[self.before] + rank[self.after]) / 2, others)


def _level_skill(hits: NDArray[np.float64], codes: Codes) -> float:
    """Return the skill of predicting levels, 0 where chance explains it.

    Chance: so many hits by always guessing the commonest level, or so many hits among the others (Fisher's test).
    """
    counts = np.bincount(codes)
    common, n = codes == counts.argmax(), len(codes)
    base = float(counts.max() / n)
    other_hits = float(np.ceil(hits[~common].sum()))
    guessed_other = float(np.ceil(other_hits + (1 - hits[common]).sum()))
    by_chance = min(
        binom.sf(np.ceil(hits.sum()) - 1, n, base), hypergeom.sf(other_hits - 1, n, n - common.sum(), guessed_other)
    )
    return float((hits.mean() - base) / (1 - base)) if by_chance < _CHANCE else 0.0


def _neighbours(person: Codes) -> tuple[Codes, Codes]:
    """Return for every row, in key order, the nearest rows before and after it that belong to somebody else."""
    n = len(person)
    opens = np.append(np.ones(min(n, 1), dtype=bool), person[1:] != person[:-1])
    run = np.cumsum(opens) - 1
    starts = np.flatnonzero(opens)
    before, after = starts[run] - 1, np.append(starts[1:], n)[run]
    before, after = np.where(before < 0, after, before), np.where(after >= n, before, after)
    return np.clip(before, 0, max(n - 1, 0)), np.clip(after, 0, max(n - 1, 0))


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
