"""A column before and after, in bars that none but k or more people stand behind.

Bars are the same in every edition of a report: a level that fewer than k people have is pooled with others and not
named, numbers are cut at quantiles rounded to a coarse grid, the first and the last bar are open.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn
from shoal.people import count_people

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
MOST_BARS = 20
_LONGEST = 40  # letters of a label
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Bar:
    """A group of values, and its share of the rows of original and release."""

    label: str
    original: float
    release: float


@dataclass(frozen=True)
class Crowd:
    """Whose rows they are, in original and release, so that people are counted and not rows."""

    n: int
    person: Index | None
    person_released: Index | None
    k: int

    def count(self, groups: Index, n_groups: int) -> Index:
        """Return how many people stand behind each group, in the table where they are fewer; -1 is no group."""
        parts = (groups[: self.n], self.person), (groups[self.n :], self.person_released)
        return np.minimum(*(count_people(rows, owners, n_groups) for rows, owners in parts))


def make_bars(column: EncodedColumn, series: nw.Series[Any], crowd: Crowd) -> list[Bar]:
    """Return the bars of a column; none if fewer than k people have a value.

    series: the original's values, to name levels that at least k people have.
    """
    missing = np.where(column.missing, 0, -1)
    if column.numbers is None:
        groups, labels = _nominal(column, series, crowd)
    elif column.kind == "ordinal":
        groups, labels = _ordinal(column, series, crowd)
    else:
        groups, labels = _numeric(column, series, crowd)
    if crowd.count(missing, 1)[0] >= crowd.k:
        groups, labels = np.where(column.missing, len(labels), groups), [*labels, "missing"]
    if not labels:
        return []
    shares = []
    for rows in (groups[: crowd.n], groups[crowd.n :]):
        counts = np.bincount(rows[rows >= 0], minlength=len(labels))
        shares.append(counts / max(counts.sum(), 1))
    return [Bar(label, float(a), float(b)) for label, a, b in zip(_distinct(labels), *shares, strict=True)]


def name_levels(column: EncodedColumn, series: nw.Series[Any], crowd: Crowd) -> dict[int, str]:
    """Return the names of the levels that at least k people have, by code."""
    rows = np.arange(crowd.n)
    known = rows[~column.missing[: crowd.n]]
    codes, first = np.unique(column.codes[known], return_index=True)
    common = crowd.count(np.where(column.missing, -1, column.codes), column.n_levels) >= crowd.k
    named = codes[common[codes]]
    values = [_shorten(value) for value in series[known[first[common[codes]]]].to_list()]
    return {int(code): name for code, name in zip(named, _distinct(values), strict=True)}


def _distinct(labels: list[str]) -> list[str]:
    """Return labels with a number added to those that occurred before, as cut ones may."""
    seen: dict[str, int] = {}
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
    again: dict[str, int] = {}
    found = []
    for label in labels:
        again[label] = again.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({again[label]})")
    return found


def _shorten(value: object) -> str:
    text = f"{value:.12g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _nominal(column: EncodedColumn, series: nw.Series[Any], crowd: Crowd) -> tuple[Index, list[str]]:
    """Return the most frequent levels, and all others together."""
    codes = np.where(column.missing, -1, column.codes)
    names = name_levels(column, series, crowd)
    counts = np.bincount(codes[codes >= 0], minlength=column.n_levels)
    named = sorted(names, key=lambda code: (-counts[code], code))
    for shown in range(min(len(named), MOST_BARS - 1), -1, -1):
        place = np.full(column.n_levels + 1, shown)
        place[named[:shown]] = np.arange(shown)
        place[-1] = -1
        groups = place[codes]
        rest = crowd.count(np.where(groups == shown, 0, -1), 1)[0]
        if rest >= crowd.k:
            return groups, [*(names[code] for code in named[:shown]), "all other levels"]
        if not (groups == shown).any():
            return groups, [names[code] for code in named[:shown]]
    return np.full(len(codes), -1), []


def _ordinal(column: EncodedColumn, series: nw.Series[Any], crowd: Crowd) -> tuple[Index, list[str]]:
    """Return the levels in order, rare ones together with their neighbours."""
    names = name_levels(column, series, crowd)
    codes = np.where(column.missing, -1, column.codes)
    groups = codes if column.n_levels <= MOST_BARS else np.where(codes < 0, -1, codes * MOST_BARS // column.n_levels)
    merged = _merge(groups, crowd)
    labels = []
    for group in range(int(merged.max()) + 1):
        members = np.unique(codes[merged == group])
        known = [names[int(code)] for code in members if int(code) in names]
        label = " to ".join(dict.fromkeys((known[0], known[-1]))) if known else "several levels"
        labels.append(label if len(known) == len(members) or not known else f"{label} and rarer ones")
    return merged, labels


def _numeric(column: EncodedColumn, series: nw.Series[Any], crowd: Crowd) -> tuple[Index, list[str]]:
    """Return the values where each has k people or more; else groups between rounded cuts."""
    assert column.numbers is not None
    codes = np.where(column.missing, -1, column.codes)
    levels = np.unique(codes[codes >= 0])
    names = name_levels(column, series, crowd)
    if len(levels) <= MOST_BARS and len(names) == len(levels):
        return np.where(codes < 0, -1, np.searchsorted(levels, codes)), [names[int(code)] for code in levels]
    numbers = np.where(column.missing, 0.0, column.numbers)
    known = np.sort(numbers[: crowd.n][~column.missing[: crowd.n]])
    cuts, write = _cuts(known, column, series)
    merged = _merge(np.where(column.missing, -1, np.searchsorted(cuts, numbers, side="right")), crowd)
    if merged.max() < 0:
        return merged, []
    original = np.where(column.missing, -1, np.searchsorted(cuts, numbers, side="right"))
    starts = [int(original[merged == group].min()) for group in range(int(merged.max()) + 1)]
    bounds = [cuts[start - 1] for start in starts[1:]]
    if not bounds:
        return merged, ["all values"]
    inner = [write(a, b) for a, b in pairwise(bounds)]
    return merged, [f"under {write(bounds[0], None)}", *inner, f"{write(bounds[-1], None)} or more"]


def _merge(groups: Index, crowd: Crowd) -> Index:
    """Return ordered groups, each joined with the next until k people stand behind it; -1 throughout if none do."""
    n_groups = int(groups.max()) + 1
    place, current = np.zeros(n_groups + 1, dtype=np.int64), 0
    place[-1] = -1
    if n_groups == 0:
        return groups
    start = 0
    for group in range(n_groups):
        place[group] = current
        inside = np.where((groups >= start) & (groups <= group), 0, -1)
        if crowd.count(inside, 1)[0] >= crowd.k:
            current, start = current + 1, group + 1
    if start < n_groups:  # what is left joins the last group that is complete
        place[start:n_groups] = current - 1
    return place[groups]


def _cuts(known: Floats, column: EncodedColumn, series: nw.Series[Any]) -> tuple[Floats, Callable[..., str]]:
    """Return where groups may begin, and how to write a group.

    Cuts lie on a grid that is about as coarse as the bars, or as every half of a leading digit: a cut there tells how
    many are on its sides, and of nobody's value.
    """
    wanted = np.unique(known[np.linspace(0, len(known) - 1, MOST_BARS + 1).astype(np.int64)[1:-1]])
    if column.kind == "datetime" and series.dtype not in (nw.Time, nw.Duration):
        return _date_cuts(wanted)
    unit, suffix = (3.6e9, " h") if column.kind == "datetime" else (1.0, "")
    wanted = wanted / unit
    whole = not suffix and bool((known == np.rint(known)).all())
    even = _round_step((wanted[-1] - wanted[0]) / MOST_BARS)
    own = 0.5 * 10.0 ** np.floor(np.log10(np.maximum(np.abs(wanted), 1e-300)))  # 1, 1.5, 2, ... of every power of ten
    step = np.where((wanted == 0) | ((even > 0) & (even < own)), even, own)
    step = np.maximum(step, 1.0) if whole else np.where(step > 0, step, 1.0)
    cuts = np.unique(np.rint(wanted / step) * step)

    def write(low: float, high: float | None) -> str:
        one = f"{low / unit:,.6g}{suffix}"
        if high is None or (whole and high - low == 1):
            return one
        return f"{one} to {high - 1:,.6g}" if whole else f"{one} to {high / unit:,.6g}{suffix}"

    return cuts * unit, write


def _monday(day: datetime.datetime) -> datetime.datetime:
    start = day - datetime.timedelta(days=day.weekday())
    return datetime.datetime(start.year, start.month, start.day, tzinfo=datetime.UTC)


def _round_step(least: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least so large; 0 for 0."""
    if least <= 0:
        return 0.0
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= least))


def _date_cuts(wanted: Floats) -> tuple[Floats, Callable[..., str]]:
    days = [_EPOCH + float(w) * _MICRO for w in wanted]
    forms: list[tuple[str, Callable[[datetime.datetime], datetime.datetime]]] = [
        ("%Y", lambda day: datetime.datetime(day.year, 1, 1, tzinfo=datetime.UTC)),
        ("%Y-%m", lambda day: datetime.datetime(day.year, day.month, 1, tzinfo=datetime.UTC)),
        ("%Y-%m-%d", _monday),
        ("%Y-%m-%d", lambda day: datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC)),
    ]
    ways = [(form, sorted({floor(day) for day in days})) for form, floor in forms]
    form, rounded = next((way for way in ways if len(way[1]) >= min(4, len(days))), ways[-1])

    def write(low: float, high: float | None) -> str:
        one = (_EPOCH + float(low) * _MICRO).strftime(form)
        return one if high is None else f"{one} to {(_EPOCH + float(high) * _MICRO).strftime(form)}"

    return np.array([(day - _EPOCH) / _MICRO for day in rounded]), write
