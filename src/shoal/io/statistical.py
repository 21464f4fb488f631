"""Files of SAS, Stata and SPSS, with what their columns and codes mean."""

from __future__ import annotations

import datetime
import io
import os
import re
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import FileError, InputError
from shoal.io.excel import narrow
from shoal.io.formats import Format, need_extra
from shoal.io.guarding import in_our_words
from shoal.io.labels import Code, Labels, apply_labels
from shoal.io.memory import check_room

_NAMES = {"stata": "Stata", "spss": "SPSS", "por": "SPSS portable", "sas": "SAS", "xport": "SAS transport"}
_STATA_NAME = re.compile(r"[^\W\d]\w{0,31}")
_RESERVED = frozenset(
    ("_all", "_b", "_coef", "_cons", "_n", "_N", "_pi", "_pred", "_rc", "_skip", "_weight", "byte", "double", "float",
     "if", "in", "int", "long", "str", "strL", "using", "with")
)  # fmt: skip
_LONGEST_TEXT = 2045  # bytes of a Stata string
_LONGEST_LABEL, _LARGEST_INT = 80, 2_147_483_620
_EXACT = 2**53
_PER_CELL = 160.0  # bytes of memory that reading takes: measured, rounded up
_DATES = {pl.Date: "%td", pl.Datetime: "%tc"}


def read_statistical(data: bytes, form: Format, catalog: bytes | None = None) -> tuple[pl.DataFrame, Labels]:
    """Return the table of a statistical package's file, and its labels; SAS keeps those of codes in a catalog."""
    try:
        import pyreadstat
    except ImportError:
        raise need_extra("files", "pyreadstat") from None
    readers: dict[str, Any] = {
        "stata": pyreadstat.read_dta,
        "spss": pyreadstat.read_sav,
        "por": pyreadstat.read_por,
        "sas": pyreadstat.read_sas7bdat,
        "xport": pyreadstat.read_xport,
    }
    with in_our_words(f"It is not a complete {_NAMES[form]} file."):
        if form in ("spss", "sas"):  # which may be compressed
            held = readers[form](io.BytesIO(data), metadataonly=True, output_format="polars")[1]
            if (held.number_rows or 0) < 0:
                raise FileError("It does not say how many rows it has; save it again, not compressed.")
            check_room(_PER_CELL * (held.number_rows or 0) * held.number_columns, "It")
        table, about = readers[form](io.BytesIO(data), output_format="polars")
        named = {}
        if catalog is not None:
            named = pyreadstat.read_sas7bcat(io.BytesIO(catalog), output_format="polars")[1].value_labels
    if not table.width or table.is_empty():
        raise FileError("The file has no rows.")
    columns, values = {}, {}
    shown = []
    for column in table:
        name = column.name
        if label := about.column_names_to_labels.get(name):
            columns[name] = label
        series = narrow(column)
        if own := about.variable_value_labels.get(name) or named.get(about.original_variable_types.get(name)):
            values[name] = _clean(own)
            series = apply_labels(series, values[name], ordered=about.variable_measure.get(name) != "nominal")
        shown.append(series)
    return pl.DataFrame(shown), Labels(columns, values)


def _clean(labels: Mapping[Any, str]) -> dict[Code, str]:
    return {code if isinstance(code, str) else float(code): str(label) for code, label in labels.items()}


def write_stata(table: pl.DataFrame, labels: Labels) -> bytes:
    """Return a table as a file of Stata 14 or later, with its labels; categories become labelled codes."""
    try:
        import pyreadstat
    except ImportError:
        raise need_extra("files", "pyreadstat") from None
    for name in table.columns:
        if not _STATA_NAME.fullmatch(name) or name in _RESERVED:
            raise InputError(
                f"Stata cannot name a column {name!r}: at most 32 letters, digits and underscores, not a digit first, "
                "and no word of its own; rename it, or choose another format."
            )
    columns: list[pl.Series] = []
    values: dict[str, dict[float, str]] = {}
    formats: dict[str, str] = {}
    for column in table:
        series, own = _with_codes(column, labels)
        if own:
            values[column.name] = own
        if (style := _DATES.get(series.dtype.base_type())) is not None:
            formats[column.name] = style
        columns.append(_for_stata(series))
    told: dict[str, str | None] = {name: label[:_LONGEST_LABEL] for name, label in labels.columns.items()}
    with tempfile.TemporaryDirectory() as folder:  # readable by its owner only
        path = os.path.join(folder, "release.dta")
        try:
            pyreadstat.write_dta(
                pl.DataFrame(columns), path, column_labels=told, variable_value_labels=values, variable_format=formats
            )
        except Exception:  # noqa: BLE001, its words may quote cells
            raise InputError("Stata cannot hold this table; choose another format.") from None
        with open(path, "rb") as file:
            return file.read()


def _with_codes(column: pl.Series, labels: Labels) -> tuple[pl.Series, dict[float, str]]:
    """Return a column with codes for categories and truths, and what they stand for; codes that it came with first."""
    if column.dtype == pl.Boolean:
        return column.cast(pl.Int32), {0: "false", 1: "true"}
    given = labels.code_of(column)
    if given is not None and all(code == int(code) for code in given.values()):
        codes = {label: int(code) for label, code in given.items()}
    elif column.dtype == pl.Enum:
        codes = {str(level): i for i, level in enumerate(column.dtype.categories, start=1)}  # type: ignore[attr-defined]
    else:
        kept = labels.values.get(column.name, {}) if column.dtype.is_integer() else {}
        return column, {
            int(code): label for code, label in kept.items() if isinstance(code, float) and code == int(code)
        }
    text = column.cast(pl.String)
    return text.replace_strict(codes, return_dtype=pl.Int32), {code: label for label, code in codes.items()}


def _for_stata(column: pl.Series) -> pl.Series:
    """Return a column as Stata can hold it; refuse one that it would change."""
    dtype = column.dtype
    if dtype in (pl.Categorical, pl.Null):
        column = column.cast(pl.String)
    elif dtype.is_decimal() or dtype == pl.Float32:
        column = column.cast(pl.Float64)
    known = column.drop_nulls()
    problem = None
    if column.dtype == pl.String:
        problem = "texts of more than 2,045 bytes" if (known.str.len_bytes() > _LONGEST_TEXT).any() else None
        problem = "texts with a NUL character" if known.str.contains("\0", literal=True).any() else problem
    elif column.dtype.is_integer():
        largest = int(np.abs(known.cast(pl.Int128).to_list()).max()) if len(known) else 0
        problem = "whole numbers of more than 15 digits" if largest > _EXACT else None
        column = column.cast(pl.Int32 if largest <= _LARGEST_INT else pl.Float64) if problem is None else column
    elif column.dtype == pl.Float64:
        column = column.fill_nan(None)
        problem = "numbers that are infinite or above 8.9e307" if (column.abs() > 8.9e307).any() else None
    elif column.dtype == pl.Date:
        problem = "dates before the year 100" if (known < datetime.date(100, 1, 1)).any() else None
    elif not isinstance(column.dtype, pl.Datetime) or column.dtype.time_zone is not None:
        problem = "values of a kind that it does not have"
    if problem is not None:
        raise InputError(f"Stata cannot hold column {column.name!r}, which has {problem}; choose .parquet or .csv.")
    return column
