"""Tables read alike: how the columns of some tables became numbers, remembered for the tables that follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import MANY_LEVELS, embed_levels, find_missing, level_key, read_numbers
from shoal.errors import InputError, suggest
from shoal.schema import Column, read_schema

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Kinds = Mapping[str, str | Sequence[Any]]

UNSEEN = -1  # the code of a level that occurs in none of the tables a coding was made from
MOST_LEVELS = 100  # a column has dummies for at most so many levels; rarer ones are the average person


@dataclass(frozen=True)
class CodedColumn:
    """One column: its kind, its levels or its scale, and the share of every code."""

    column: Column
    known: Mapping[Any, int]  # nominal: the code of every level
    distinct: Floats  # with an order: the numbers that occur, the first 33 of them
    cuts: Floats  # with an order and more than 32 numbers: where quantile bins begin
    centre: float = 0.0
    scale: float = 1.0
    shares: Floats = field(
        default_factory=lambda: np.zeros(1)
    )  # of every code, the last one being that of missing values

    @classmethod
    def learn(cls, parts: Sequence[nw.Series[Any]], masses: Sequence[Floats], column: Column, n_bins: int) -> Self:
        """Learn a column from the tables that have it; every table counts as much as every other."""
        mass = np.concatenate([part / part.sum() / len(masses) for part in masses])
        if column.kind == "nominal":
            levels = {key for part in parts for key in read_keys(part)} - {None}
            known = {level: i for i, level in enumerate(sorted(levels, key=lambda key: (str(type(key)), key)))}
            learnt = cls(column, known, np.empty(0), np.empty(0))
        else:
            numbers = np.concatenate([read_numbers(part, column) for part in parts])
            there = ~np.isnan(numbers)
            distinct, codes = np.unique(numbers[there], return_inverse=True)
            share = np.bincount(codes, weights=mass[there]) / mass[there].sum()
            centre = float(share @ distinct)
            scale = float(np.sqrt(share @ (distinct - centre) ** 2)) or 1.0
            bins = np.floor((np.cumsum(share) - share) * n_bins + 1e-9)  # equal sums may differ in their last digit
            cuts = distinct[1:][np.diff(bins) > 0] if len(distinct) > MANY_LEVELS else np.empty(0)
            learnt = cls(column, {}, distinct[: MANY_LEVELS + 1], cuts, centre, scale)
        codes = np.concatenate([learnt.codes(part) for part in parts])
        shares = np.bincount(codes, weights=mass, minlength=learnt.n_levels).astype(np.float64)
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
            codes = (gone if key is None else self.known.get(key, UNSEEN) for key in read_keys(series))
            return np.fromiter(codes, dtype=np.int64, count=len(series))
        numbers = read_numbers(series, self.column)
        missing = np.isnan(numbers)
        filled = np.where(missing, self.centre, numbers)
        if self.is_continuous:
            found = np.searchsorted(self.cuts, filled, side="right")
        else:
            found = np.minimum(np.searchsorted(self.distinct, filled), len(self.distinct) - 1)
            found = np.where(self.distinct[found] == filled, found, UNSEEN)
        return np.where(missing, gone, found).astype(np.int64)

    def numbers(self, series: nw.Series[Any]) -> list[Floats]:
        """Return standardised numbers, missing ones at the mean; before them, if any were, whether they are."""
        numbers = (read_numbers(series, self.column) - self.centre) / self.scale
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
        for other, table in others:
            given = {c.name: (kinds or {}).get(c.name, c.levels or "") for c in schema.columns}
            usable = {name: kind for name, kind in given.items() if kind != "" and name in table.columns}
            read = {c.name: c.kind for c in read_schema(table, quasi_identifiers=table.columns, kinds=usable).columns}
            _refuse_different_columns(first, {c.name: c.kind for c in schema.columns}, other, read)
        self.columns = [
            CodedColumn.learn([table[c.name] for table in tables.values()], weights, c, n_bins) for c in schema.columns
        ]

    def _take(self, frame: nw.DataFrame[Any]) -> list[tuple[CodedColumn, nw.Series[Any]]]:
        for name in self.names:
            if name not in frame.columns:
                raise InputError(f"X has no column {name!r}{suggest(name, frame.columns)}")
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
        blocks: list[Floats] = []
        for column, series in self._take(frame):
            coded = dummies or column.column.kind == "nominal"
            blocks += [column.dummies(series)] if coded else column.numbers(series)
        return np.hstack(blocks)


def read_keys(series: nw.Series[Any]) -> list[Any]:
    """Return what makes values the same in tables of any kind: a number, or a text; None where missing."""
    values = zip(series.to_list(), find_missing(series), strict=True)
    return [None if gone else level_key(value) for value, gone in values]


def _refuse_different_columns(
    first: str, kinds: Mapping[str, str | None], other: str, read: Mapping[str, str | None]
) -> None:
    """Refuse two tables that do not have the same columns, or a column that is a number in one and text in another."""
    for name in kinds:
        if name not in read:
            raise InputError(f"{other} has no column {name!r}, which {first} has{suggest(name, read)}")
    for name in read:
        if name not in kinds:
            raise InputError(f"{first} has no column {name!r}, which {other} has; drop it there, or add it here.")
    for name, kind in kinds.items():
        if kind != read[name] and {kind, read[name]} != {"nominal", "ordinal"}:  # texts either way
            raise InputError(
                f"Column {name!r} is {kind} in {first} but {read[name]} in {other}; convert one of them, or say in "
                "kinds what it is."
            )
