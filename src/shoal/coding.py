"""Tables read alike: how the columns of some tables became numbers, remembered for the tables that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import MANY_LEVELS, embed_levels, find_missing, level_key, read_numbers
from shoal.errors import InputError, suggest
from shoal.schema import Column, infer_kind, read_schema

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Kinds = Mapping[str, str | Sequence[Any]]

UNSEEN = -1  # the code of a level that occurs in none of the tables a coding was made from
MOST_LEVELS = 100  # a column has dummies for at most so many levels; rarer ones are the average person


@dataclass(frozen=True)
class CodedColumn:
    """One column: its kind, its levels or its scale, and the share of every code."""

    column: Column
    family: str  # what its values are: numbers, texts, times, ...
    known: Mapping[Any, int]  # nominal: the code of every level
    distinct: Floats  # with an order: the numbers that occur, the first 33 of them
    cuts: Floats  # with an order and more than 32 numbers: where quantile bins begin
    unit: float = 1.0  # numbers are read in it, so that their squares neither over- nor underflow
    centre: float = 0.0
    scale: float = 1.0
    shares: Floats = field(
        default_factory=lambda: np.zeros(1)
    )  # of every code, the last one being that of missing values

    @classmethod
    def learn(cls, parts: Sequence[nw.Series[Any]], masses: Sequence[Floats], column: Column, n_bins: int) -> Self:
        """Learn a column from the tables that have it; every table counts as much as every other.

        Records of weight 0 are not there.
        """
        mass = np.concatenate([part / part.sum() / len(masses) for part in masses])
        family = next((f for f in map(find_family, parts) if f != "nothing"), "nothing")
        if column.kind == "nominal":
            each = [read_keys(part) for part in parts]
            _refuse_other_types(column.name, [set(part) for part in each])
            keys = [key for part in each for key in part]
            levels = {key for key, here in zip(keys, mass > 0, strict=True) if here} - {None}
            known = {level: i for i, level in enumerate(sorted(levels, key=lambda key: (str(type(key)), key)))}
            learnt = cls(column, family, known, np.empty(0), np.empty(0))
        else:
            numbers = np.concatenate([read_numbers(part, column) for part in parts])
            there = ~np.isnan(numbers) & (mass > 0)
            if not there.any():
                raise InputError(f"Column {column.name!r} has no value at all; drop it.")
            distinct, codes = np.unique(numbers[there], return_inverse=True)
            share = np.bincount(codes, weights=mass[there]).astype(np.float64)
            share /= share.sum()
            unit = float(np.abs(distinct).max()) or 1.0
            centre = float(share @ (distinct / unit))
            scale = float(np.sqrt(share @ (distinct / unit - centre) ** 2)) if len(distinct) > 1 else 1.0
            bins = np.floor((np.cumsum(share) - share) * n_bins + 1e-9)  # equal sums may differ in their last digit
            cuts = distinct[1:][np.diff(bins) > 0] if len(distinct) > MANY_LEVELS else np.empty(0)
            learnt = cls(column, family, {}, distinct[: MANY_LEVELS + 1], cuts, unit, centre, scale)
        codes = np.concatenate([learnt.codes(part) for part in parts])
        shares = np.bincount(codes[mass > 0], weights=mass[mass > 0], minlength=learnt.n_levels).astype(np.float64)
        return replace(learnt, shares=shares)

    @property
    def is_continuous(self) -> bool:
        """Whether the column has an order and many distinct values."""
        return len(self.distinct) > MANY_LEVELS

    @property
    def has_missing(self) -> bool:
        """Whether values were missing where the column was learnt."""
        return bool(self.shares[-1] > 0)

    @property
    def n_levels(self) -> int:
        """How many codes there are, the one of missing values among them."""
        return (len(self.cuts) + 1 if self.is_continuous else len(self.known) + len(self.distinct)) + 1

    def codes(self, series: nw.Series[Any]) -> Codes:
        """Return 0, 1, ... for the levels or bins, the last code for missing values, -1 for a level never seen."""
        gone = self.n_levels - 1
        if self.column.kind == "nominal":
            keys = read_keys(series)
            _refuse_other_types(series.name, [set(self.known), set(keys)])
            codes = (gone if key is None else self.known.get(key, UNSEEN) for key in keys)
            return np.fromiter(codes, dtype=np.int64, count=len(series))
        numbers = read_numbers(series, self.column)
        missing = np.isnan(numbers)
        filled = np.where(missing, self.distinct[0], numbers)
        if self.is_continuous:
            found = np.searchsorted(self.cuts, filled, side="right")
        else:
            found = np.minimum(np.searchsorted(self.distinct, filled), len(self.distinct) - 1)
            found = np.where(self.distinct[found] == filled, found, UNSEEN)
        return np.where(missing, gone, found).astype(np.int64)

    def numbers(self, series: nw.Series[Any]) -> list[Floats]:
        """Return standardised numbers, missing ones at the mean; before them, if any were, whether they are."""
        numbers = (read_numbers(series, self.column) / self.unit - self.centre) / self.scale
        absent = [np.isnan(numbers).astype(np.float64)[:, None]] if self.has_missing else []
        return [*absent, np.nan_to_num(numbers)[:, None]]

    def points(self, series: nw.Series[Any]) -> Floats:
        """Return the levels as points at distance 1 of one another, one never seen at their centre."""
        embedding = embed_levels(self.n_levels)
        return np.vstack([embedding, embedding.mean(axis=0)])[self.codes(series)]

    def dummies(self, series: nw.Series[Any]) -> Floats:
        """Return a centred column per level but the most frequent one; rare and unseen levels stand at the centre."""
        by_share = np.argsort(-self.shares, kind="stable")
        own = np.sort(by_share[1 : MOST_LEVELS + 1])
        own = own[self.shares[own] > 0]
        table = np.zeros((self.n_levels + 1, len(own)))
        table[own, np.arange(len(own))] = 1.0
        table[:-1] -= self.shares[own]
        table[by_share[MOST_LEVELS + 1 :]] = 0.0
        table[:-1][self.shares == 0] = 0.0  # such as missing values, where none were
        return table[self.codes(series)]


class Coding:
    """How the columns of tables are read as numbers: learnt from some tables, applied to these and to others.

    Parameters
    ----------
    tables : mapping from the name of an argument to its table
        The first one says what kind a column is.
    weights : the records' weights in every table
    kinds : mapping, optional
        Kinds of columns, or levels in order, where the dtype does not say what is meant.
    n_bins : int
        Quantile bins of columns with more than 32 distinct numbers, where codes or dummies are asked for.
    """

    def __init__(
        self,
        tables: Mapping[str, nw.DataFrame[Any]],
        weights: Sequence[Floats],
        kinds: Kinds | None = None,
        n_bins: int = 10,
    ) -> None:
        (first, frame), *others = tables.items()
        self.names = frame.columns
        schema = read_schema(frame, quasi_identifiers=self.names, kinds=kinds)
        columns = {column.name: column for column in schema.columns}
        for other, table in others:
            _refuse_different_columns(first, frame, other, table)
            for name, column in columns.items():
                levels = infer_kind(table[name])[1] if column.levels is not None else None
                if levels is not None and name not in (kinds or {}):
                    columns[name] = replace(column, levels=_merge_levels(name, columns[name].levels or (), levels))
        self.columns = [
            CodedColumn.learn([table[name] for table in tables.values()], weights, column, n_bins)
            for name, column in columns.items()
        ]

    def _take(self, frame: nw.DataFrame[Any]) -> list[tuple[CodedColumn, nw.Series[Any]]]:
        for name in self.names:
            if name not in frame.columns:
                raise InputError(f"X has no column {name!r}{suggest(name, frame.columns)}")
        for column in self.columns:
            family = find_family(frame[column.column.name])
            if family not in (column.family, "nothing"):
                raise InputError(
                    f"Column {column.column.name!r} holds {family}, but {column.family} were learnt; convert it."
                )
        return [(column, frame[column.column.name]) for column in self.columns]

    def codes(self, frame: nw.DataFrame[Any]) -> Codes:
        """Return every column's levels or bins as codes, shape (n, d); -1 is a level never seen."""
        return np.column_stack([column.codes(series) for column, series in self._take(frame)])

    def positions(self, frame: nw.DataFrame[Any]) -> Floats:
        """Return points between which distances mean something, shape (n, p)."""
        blocks: list[Floats] = []
        for column, series in self._take(frame):
            blocks += [column.points(series)] if column.column.kind == "nominal" else column.numbers(series)
        return np.hstack(blocks)

    def design(self, frame: nw.DataFrame[Any], *, dummies: bool = False) -> Floats:
        """Return a design matrix without intercept, shape (n, p): numbers as such, dummies for nominal columns.

        dummies=True gives columns with an order dummies too, one per level or quantile bin.
        """
        return np.hstack([block for blocks in self._blocks(frame, dummies=dummies) for block in blocks])

    def _blocks(self, frame: nw.DataFrame[Any], *, dummies: bool) -> list[list[Floats]]:
        return [
            [column.dummies(series)] if dummies or column.column.kind == "nominal" else column.numbers(series)
            for column, series in self._take(frame)
        ]

    def find_products(self, frame: nw.DataFrame[Any]) -> tuple[Codes, Codes]:
        """Return the pairs of design columns whose products tell anything new.

        Those of two columns of the table, and the square of a number; dummies of one column exclude one another.
        """
        blocks = self._blocks(frame, dummies=False)
        owner = np.repeat(np.arange(len(blocks)), [sum(block.shape[1] for block in parts) for parts in blocks])
        numeric = [column.column.kind != "nominal" for column in self.columns]
        last = np.append(owner[1:] != owner[:-1], True) & np.array(numeric)[owner]  # the number, after its missing flag
        i, j = np.triu_indices(len(owner))
        fresh = (owner[i] != owner[j]) | ((i == j) & last[i])
        return i[fresh], j[fresh]


def read_keys(series: nw.Series[Any]) -> list[Any]:
    """Return what makes values the same in tables of any kind: a number, or a text; None where missing."""
    values = zip(series.to_list(), find_missing(series), strict=True)
    return [None if gone else level_key(value) for value, gone in values]


def _refuse_other_types(name: str, samples: Sequence[set[Any]]) -> None:
    """Refuse levels that are numbers in one table and texts in another: none of them would be the same."""
    types = [found for keys in samples if (found := {type(key) for key in keys if key is not None})]
    if any(a.isdisjoint(b) for a, b in pairwise(types)):
        raise InputError(f"Column {name!r} holds numbers in one table and texts in another; convert one of them.")


def find_family(series: nw.Series[Any]) -> str:
    """Return what a column's values are, so that columns of two tables can be compared: numbers, texts, ..."""
    if series.dtype == nw.Time:
        return "times of day"
    if series.dtype == nw.Duration:
        return "durations"
    if find_missing(series).all():
        return "nothing"
    kind = infer_kind(series)[0]
    return {"numeric": "numbers", "datetime": "dates or times"}.get(kind or "", "texts or levels")


def _refuse_different_columns(first: str, frame: nw.DataFrame[Any], other: str, table: nw.DataFrame[Any]) -> None:
    """Refuse two tables that do not have the same columns, or a column that is a number in one and text in another."""
    for name in frame.columns:
        if name not in table.columns:
            raise InputError(f"{other} has no column {name!r}, which {first} has{suggest(name, table.columns)}")
    for name in table.columns:
        if name not in frame.columns:
            raise InputError(f"{first} has no column {name!r}, which {other} has; drop it there, or add it here.")
    for name in frame.columns:
        one, two = find_family(frame[name]), find_family(table[name])
        if one != two and "nothing" not in (one, two):
            raise InputError(f"Column {name!r} holds {one} in {first} but {two} in {other}; convert one of them.")


def _merge_levels(name: str, one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ordered levels of two tables as one order, where one extends the other."""
    longer, shorter = (one, two) if len(one) >= len(two) else (two, one)
    place = {str(level): i for i, level in enumerate(longer)}
    places = [place.get(str(level), -1) for level in shorter]
    if -1 in places or places != sorted(places):
        raise InputError(f"The ordered levels of column {name!r} differ between the tables; give them in kinds.")
    return longer
