"""What columns and codes mean, in words: the variable and value labels of statistical packages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

Code = float | str


@dataclass(frozen=True)
class Labels:
    """Labels of a table.

    Attributes
    ----------
    columns : dict
        What a column is about, by column.
    values : dict of dict
        What codes stand for, by column. In the table itself a column whose every code has a label holds the labels.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[Code, str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.columns or self.values)

    def only(self, names: Sequence[str]) -> Labels:
        """Return the labels of these columns: those of columns that stay at home do not leave."""
        return Labels(
            {name: self.columns[name] for name in names if name in self.columns},
            {name: self.values[name] for name in names if name in self.values},
        )

    def code_of(self, column: pl.Series) -> dict[str, float] | None:
        """Return the numbers that stood for the labels a column holds; None if there are none for all of them."""
        given = self.values.get(column.name)
        if given is None or column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            return None
        codes = {label: code for code, label in given.items() if not isinstance(code, str)}
        held = column.cast(pl.String).drop_nulls().unique()
        return codes if len(codes) == len(given) and held.is_in(list(codes)).all() else None

    def to_text(self) -> str:
        """Return the labels as JSON."""
        values = {name: [[code, label] for code, label in own.items()] for name, own in self.values.items()}
        return json.dumps({"columns": dict(self.columns), "values": values}, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Labels:
        """Read labels as `to_text` writes them; none where it is something else."""
        try:
            found: Any = json.loads(text)
            values = {str(name): {code: str(label) for code, label in own} for name, own in found["values"].items()}
            return cls({str(name): str(label) for name, label in found["columns"].items()}, values)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return cls()


def apply_labels(column: pl.Series, labels: Mapping[Code, str], *, ordered: bool) -> pl.Series:
    """Return a column with labels for codes if each of its codes has one of its own, else as it is.

    In the order of the codes, if they have one: then the column is ordinal. No and yes make true and false.
    """
    known = column.drop_nulls().unique()
    if len(set(labels.values())) < len(labels) or not len(known):
        return column
    codes = list(labels)
    if column.dtype == pl.String:
        if not known.is_in([str(code) for code in codes]).all():
            return column
        return column.replace_strict({str(code): label for code, label in labels.items()}, return_dtype=pl.String)
    if not column.dtype.is_numeric() or any(isinstance(code, str) for code in codes):
        return column
    numbers = {float(code): label for code, label in labels.items()}
    if not known.cast(pl.Float64).is_in(list(numbers)).all():
        return column
    if numbers == {0.0: "false", 1.0: "true"}:
        return column.cast(pl.Boolean)
    named = column.cast(pl.Float64).replace_strict(numbers, return_dtype=pl.String)
    return named.cast(pl.Enum([numbers[code] for code in sorted(numbers)])) if ordered else named
