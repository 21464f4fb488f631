"""People, not rows: who owns which rows, and how much a person weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, find_missing
from shoal.errors import InputError
from shoal.schema import Schema, dtype_name

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class People:
    """The persons of a table: the person of every row, everybody's first row, and the survey weights."""

    of_row: Index
    first: Index
    weight: Floats | None = None

    @classmethod
    def one_row_each(cls, n: int, weight: Floats | None = None) -> Self:
        """Return the people of a table in which every row is a person."""
        return cls(np.arange(n), np.arange(n), weight)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.first)

    def average(self, numbers: Floats) -> Floats:
        """Return the mean over every person's rows, NaN where all are missing."""
        known = ~np.isnan(numbers)
        counts = np.bincount(self.of_row, weights=known)
        sums = np.bincount(self.of_row, weights=np.where(known, numbers, 0.0))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def log_weight(self) -> Floats:
        """Return log weights, a weight of 0 counting as half of the smallest other one."""
        assert self.weight is not None
        logs = np.log(np.where(self.weight > 0, self.weight, 1.0))
        return np.where(self.weight > 0, logs, logs[self.weight > 0].min() - np.log(2))


def find_people(frame: nw.DataFrame[Any], schema: Schema, columns: list[EncodedColumn]) -> People:
    """Return the people of a table, having checked that identifiers, unit and weight make sense together."""
    unit, weight_name = schema.name("unit"), schema.name("weight")
    weight = None
    if weight_name is not None:
        if not frame[weight_name].dtype.is_numeric():
            raise InputError(
                f"weight={weight_name!r} must be numbers, but its dtype is {dtype_name(frame[weight_name])}."
            )
        _refuse_missing(frame[weight_name], f"weight={weight_name!r}")
        weight = read_weight(frame[weight_name].to_numpy(), len(frame), f"weight={weight_name!r}")
    if unit is None:
        numbers = {name: _number(frame[name])[~find_missing(frame[name])] for name in schema.names("identifier")}
        distinct = {name: len(np.unique(known)) for name, known in numbers.items()}
        for name, known in numbers.items():
            if distinct[name] < len(known):
                single = next((other for other in numbers if distinct[other] == len(frame)), None)
                instead = "name a column that never repeats as unit" if single is None else f"say unit={single!r}"
                best = max((other for other in numbers if distinct[other] < len(frame)), key=lambda o: distinct[o])
                raise InputError(
                    f"Identifier {name!r} has repeated values. If a person has several rows, say which column tells "
                    f"people apart, such as unit={best!r}. If every row is another person, {instead}, or leave this "
                    "one out of the table."
                )
        return People.one_row_each(len(frame), weight)
    _refuse_missing(frame[unit], f"unit={unit!r}")
    of_row = _number(frame[unit])
    first = np.unique(of_row, return_index=True)[1]
    for column in columns:
        if (column.codes != column.codes[first][of_row]).any():
            raise InputError(
                f"Quasi-identifier {column.name!r} varies within a person (unit={unit!r}), who needs one value: "
                "take the first or the most frequent, or make the column sensitive."
            )
    if weight is not None and (weight != weight[first][of_row]).any():
        raise InputError(f"weight={weight_name!r} varies within a person (unit={unit!r}); a person has one weight.")
    return People(of_row, first, None if weight is None else weight[first])


def count_people(groups: Index, person: Index | None, n_groups: int) -> Index:
    """Return how many people have rows in each group; -1 is no group, person=None a person for every row."""
    there = groups >= 0
    if person is None:
        return np.bincount(groups[there], minlength=n_groups)
    width = int(person.max()) + 1
    return np.bincount(np.unique(groups[there] * width + person[there]) // width, minlength=n_groups)


def read_weight(values: NDArray[Any], n: int, what: str) -> Floats:
    """Return survey weights as numbers, refusing missing, infinite and negative ones."""
    weight = values.astype(np.float64)
    if weight.shape != (n,):
        raise InputError(f"{what} must be {n} numbers, but its shape is {weight.shape}.")
    if not np.isfinite(weight).all():
        raise InputError(f"{what} has missing or infinite values; every record needs a weight.")
    if (weight < 0).any() or weight.sum() == 0:
        raise InputError(f"{what} must not be negative, nor zero throughout.")
    if not np.isfinite(weight.sum()):
        raise InputError(f"{what} is so large that its sum is infinite; divide it by its largest value.")
    return weight


def _refuse_missing(series: nw.Series[Any], what: str) -> None:
    if find_missing(series).any():
        raise InputError(f"{what} has missing values; every row needs one.")


def _number(series: nw.Series[Any]) -> Index:
    """Return 0, 1, ... for the distinct values of a column, in order of their first row."""
    seen: dict[Any, int] = {}
    values = series.to_list()
    try:
        numbers = [seen.setdefault(value, len(seen)) for value in values]
    except TypeError:  # lists and the like
        numbers = [seen.setdefault(str(value), len(seen)) for value in values]
    return np.array(numbers, dtype=np.int64)
