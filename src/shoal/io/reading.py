"""Read tables from files: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any, Literal

import polars as pl

from shoal.errors import FileError, InputError

Format = Literal["csv", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = ("csv", "parquet", "arrow")
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
STANDARD = "-"  # standard input or output

# A text cell that begins so would be run as a formula by a spreadsheet; the writer puts an apostrophe before it.
FORMULA = r"^'*[=+\-@\t\r]"
_ESCAPED = r"^'('*[=+\-@\t\r])"

_INTEGER = r"^(0|-?[1-9][0-9]*)$"
_FLOAT = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?$"


def find_format(path: str, fmt: str | None = None) -> Format:
    """Return the format of a file: the one given, or by its ending; CSV for standard input and output."""
    if fmt is not None:
        known = next((name for name in FORMATS if name == fmt), None)
        if known is None:
            raise InputError(f"Format {fmt!r} is not known; choose from {', '.join(FORMATS)}.")
        return known
    if path == STANDARD:
        return "csv"
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(
            f"{Path(path).name!r} has the ending {ending!r}, which is not known; use {', '.join(_ENDINGS)}, or say "
            "the format."
        )
    return _ENDINGS[ending]


def read_table(path: str, fmt: str | None = None) -> pl.DataFrame:
    """Read a table from a file, or from standard input if path is "-".

    CSV types are inferred from all rows: whole numbers, decimal numbers, true/false, ISO dates and times; everything
    else, codes with leading zeros or of more digits than a number can hold among it, stays text. An empty cell is
    missing.
    """
    form = find_format(path, fmt)
    try:
        data = sys.stdin.buffer.read() if path == STANDARD else Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise FileError(f"Cannot read {path!r}: {reason}.") from None
    if not data:
        raise FileError(f"{path!r} is empty.")
    try:
        return _read_csv(data) if form == "csv" else _read_binary(data, form)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError, pl.exceptions.PanicException) as error:
        # The reader's own words may quote cells, so they are not passed on.
        reason = "Its rows do not all fit the header" if form == "csv" else f"It is not a complete {form} file"
        raise FileError(f"Cannot read {path!r} as {form}. {reason} ({type(error).__name__}).") from None


def read_certificate(path: str, released: str | None = None) -> dict[str, Any]:
    """Read the certificate of a release; with released, refuse it if that file is not the one it was made for."""
    try:
        found = json.loads(Path(path).read_bytes())
        data = b"" if released in (None, STANDARD) else Path(str(released)).read_bytes()
    except OSError as error:
        raise FileError(f"Cannot read {path!r}: {error.strerror or type(error).__name__}.") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path!r} is not a certificate: it is not JSON.") from None
    if not isinstance(found, dict) or "guarantee" not in found:
        raise FileError(f"{path!r} is not a certificate of shoal: it has no guarantee.")
    digest = found["file"].get("sha256") if isinstance(found.get("file"), dict) else None
    if data and digest is not None and digest != hashlib.sha256(data).hexdigest():
        raise FileError(f"{path!r} is the certificate of another file than {released!r}, or that was changed.")
    return found


def _read_binary(data: bytes, form: Format) -> pl.DataFrame:
    if form == "parquet":
        return pl.read_parquet(io.BytesIO(data))
    if data.startswith(b"ARROW1"):
        return pl.read_ipc(io.BytesIO(data))
    return pl.read_ipc_stream(io.BytesIO(data))


def _read_csv(data: bytes) -> pl.DataFrame:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileError("The CSV file is not UTF-8; save it as UTF-8 (in Excel: CSV UTF-8).") from None
    header = pl.read_csv(io.BytesIO(data), has_header=False, n_rows=1, infer_schema=False, encoding="utf8")
    names = ["" if name is None else name for name in header.row(0)]
    names[0] = names[0].removeprefix("\ufeff")
    if len(set(names)) < len(names) or "" in names:
        raise FileError("The CSV header has empty or repeated names; every column needs a name of its own.")
    other = next((mark for mark in (";", "\t", "|") if mark in names[0]), None)
    if len(names) == 1 and other is not None:
        raise FileError(f"The CSV header has one name only; are its columns separated by {other!r}? Use commas.")
    table = pl.read_csv(io.BytesIO(data), new_columns=names, infer_schema=False, encoding="utf8")
    table = table.with_columns(pl.all().replace("", None))
    table = table.filter(~pl.all_horizontal(pl.all().is_null()))  # blank lines are nobody
    if table.is_empty():
        raise FileError("The CSV file has a header but no rows.")
    if table.width != len(names):
        raise FileError(f"The CSV header has {len(names)} names, but the rows have {table.width} cells.")
    if table[:, -1].null_count():
        _refuse_short_rows(data, len(names))
    table = table.rename({name: re.sub(_ESCAPED, r"\1", name) for name in names})
    return table.select(_infer(column) for column in table)


def _refuse_short_rows(data: bytes, width: int) -> None:
    """Refuse rows of too few cells, which the fast reader fills up: the sign of a file that was cut."""
    csv.field_size_limit(len(data) + 1)
    for number, row in enumerate(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")), start=1):
        if row and len(row) != width:
            raise FileError(f"CSV row {number} has {len(row)} cells, but the header has {width} names.")


def _infer(column: pl.Series) -> pl.Series:
    """Return a text column as what all of its cells are."""
    known = column.drop_nulls()
    if known.is_empty():
        return column
    if known.str.contains(_INTEGER).all() and (known.str.strip_prefix("-").str.len_chars() <= 18).all():
        return column.cast(pl.Int64)
    if known.str.contains(_FLOAT).all():
        digits = known.str.replace("[eE].*$", "").str.replace(r"^-?0*\.?0*", "").str.count_matches("[0-9]")
        numbers = column.cast(pl.Float64)
        # Codes look like numbers too: 250.0 beside 250.00, 8E5, or more digits than a number can hold.
        is_code = (digits > 17).any() or known.str.contains("^[0-9]+E").any() or numbers.is_infinite().any()
        return column if is_code or known.n_unique() > numbers.drop_nulls().n_unique() else numbers
    if known.is_in(["true", "false"]).all():
        return column == "true"
    if known.str.contains(_DATE).all():
        dates = column.str.to_date("%Y-%m-%d", strict=False)
        return dates if dates.null_count() == column.null_count() else column
    if known.str.contains(_DATETIME).all():
        times = column.str.replace(" ", "T", literal=True).str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False)
        return times if times.null_count() == column.null_count() else column
    return column.str.replace(_ESCAPED, "$1")
