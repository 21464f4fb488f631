"""The data dictionary: what every released column is, and what was done to it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import polars as pl

from shoal.bundle.names import disarm
from shoal.io import Labels

if TYPE_CHECKING:
    from shoal.release import Release
    from shoal.schema import Column

_MOST_LEVELS = 40  # of a column that the dictionary spells out
_DONE = {
    "quasi_identifier": "decided by a group of at least {k} people: it need not be this record's own",
    "weight": "travels with the quasi-identifiers, not with the record",
    "sensitive": "the record's own{protected}",
    "kept": "the record's own",
}
_HEAD = ("column", "role", "kind", "type", "label", "values", "what was done")


def describe_columns(release: Release, table: pl.DataFrame, labels: Labels) -> bytes:
    """Return the data dictionary as CSV: what every released column is, and what was done to it."""
    about = {column.name: column for column in release.schema.columns}
    protected = {step["column"]: step["done"] for step in release.certificate["protected"]}
    k = release.certificate["k"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(_HEAD)
    for series in table:
        column = about[series.name]
        done = f", after {protected[series.name]}" if series.name in protected else ""
        writer.writerow(
            disarm(cell)
            for cell in (
                series.name,
                column.role.replace("_", "-"),
                column.kind or "",
                _type_of(series),
                labels.columns.get(series.name, ""),
                _values_of(series, column, labels, k),
                _DONE[column.role].format(k=k, protected=done),
            )
        )
    return text.getvalue().encode()


def _type_of(series: pl.Series) -> str:
    dtype = series.dtype
    if dtype.is_integer():
        return "whole number"
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        names = {pl.Date: "date", pl.Time: "time of day", pl.Duration: "duration"}
        return next((name for kind, name in names.items() if dtype == kind), "date and time")
    return "true or false" if dtype == pl.Boolean else "text"


def _values_of(series: pl.Series, column: Column, labels: Labels, k: int) -> str:
    """Return the codes with their labels, or the levels in order; no level that fewer than k records have."""
    if series.name in labels.values:
        codes = labels.values[series.name].items()
        return "; ".join(
            f"{code:g} = {label}" if isinstance(code, float) else f"{code} = {label}" for code, label in codes
        )
    if column.kind not in ("ordinal", "nominal") or series.dtype.is_nested():
        return ""
    counts = series.drop_nulls().cast(pl.String).value_counts()
    if not 0 < len(counts) <= _MOST_LEVELS or (counts["count"] < k).any():
        return ""
    found = counts[series.name].to_list()
    levels = [str(level) for level in column.levels or sorted(found) if str(level) in set(found)]
    return " < ".join(levels) if column.kind == "ordinal" else "; ".join(levels)
