"""Read tables from files, whatever their format, with what people should know of how they were read."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import hashlib
import io
import json
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from shoal.errors import FileError
from shoal.io.dialect import Dialect, read_csv
from shoal.io.excel import read_excel
from shoal.io.formats import STANDARD, Format, find_format, need_extra
from shoal.io.guarding import in_our_words
from shoal.io.labels import Labels
from shoal.io.memory import check_room
from shoal.io.statistical import read_statistical

LABELS_KEY = "shoal.labels"  # of the metadata of Parquet files
# Bytes of memory that reading takes per byte of a file (benchmarks/results/files.md), rounded up; what Parquet, Excel
# and the files of statistical packages need follows from what they hold.
_PER_BYTE: dict[Format, float] = {"csv": 9.0, "arrow": 3.0, "stata": 12.0, "spss": 15.0, "por": 15.0, "xport": 15.0}
_PER_CELL = 24.0
_CHUNK = 1 << 20
_FIRST_DAY, _LAST_DAY = (
    day.toordinal() - datetime.date(1970, 1, 1).toordinal() for day in (datetime.date.min, datetime.date.max)
)
_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


@dataclass(frozen=True)
class Reading:
    """How a file is to be read; what is None is found out.

    Attributes
    ----------
    form : str
        A format, as `find_format` knows them.
    separator, encoding, decimal : str
        Of CSV.
    sheet : str
        Of a workbook.
    """

    form: str | None = None
    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class Source:
    """A table from a file or a database.

    Attributes
    ----------
    table : polars.DataFrame
    labels : Labels
        What columns and codes mean, where the file says so.
    notes : list of str
        How it was read, where that was guessed or may surprise.
    """

    table: pl.DataFrame
    labels: Labels = field(default_factory=Labels)
    notes: list[str] = field(default_factory=list)


def read_table(path: str, fmt: str | None = None) -> pl.DataFrame:
    """Read a table from a file, or from standard input if path is "-"; `read_source` tells how it was read."""
    return read_source(path, Reading(fmt)).table


def read_source(path: str, how: Reading | None = None) -> Source:
    r"""Read a table from a file, or from standard input if path is "-".

    CSV (also .gz, .zst), Parquet, Arrow, Excel, Stata, SPSS, SAS. CSV types are inferred from all rows: whole numbers,
    decimal numbers, true/false, ISO dates and times; everything else, codes with leading zeros or of more digits than a
    number can hold among it, stays text. An empty cell is missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("zip;cost\n007;1,5\n")
    >>> source = read_source(str(path))
    >>> source.table.row(0), source.notes
    (('007', 1.5), ['semicolons, decimal commas, UTF-8'])
    """
    how = Reading() if how is None else how
    form = find_format(path, how.form)
    dialect = Dialect(how.separator, how.encoding, how.decimal)
    dialect.check()
    with _naming(path, form):
        data = _decompress(_read_bytes(path, form), form)
        check_room(_PER_BYTE.get(form, 1.0) * len(data), "It")
        catalog = Path(path).with_suffix(".sas7bcat") if form == "sas" and path != STANDARD else None
        if catalog is not None and catalog.is_file():
            table, labels = read_statistical(data, form, _read_bytes(os.fspath(catalog), form))
            found = Source(table, labels, [f"labels of codes from {catalog.name}"])
        else:
            found = _read(data, form, dialect, how.sheet)
        refuse_odd_times(found.table)
    return found


@contextlib.contextmanager
def _naming(path: str, form: Format) -> Iterator[None]:
    """Say in an error which file it is about; the reader's own words may quote cells, so they are not passed on."""
    odd = "Its rows do not all fit the header" if form == "csv" else f"It is not a complete {form} file"
    try:
        with in_our_words(lambda error: f"{odd} ({type(error).__name__})."):
            yield
    except FileError as error:
        raise FileError(f"Cannot read {path!r} as {form}. {error}") from None


def _read_bytes(path: str, form: Format) -> bytes:
    try:
        size = 0 if path == STANDARD else Path(path).stat().st_size
        check_room(_PER_BYTE.get(form, 1.0) * size, "It")
        data = sys.stdin.buffer.read() if path == STANDARD else Path(path).read_bytes()
    except FileError:
        raise
    except (OSError, ValueError, AttributeError) as error:
        raise FileError(f"{getattr(error, 'strerror', None) or type(error).__name__}.") from None
    if not data:
        raise FileError("It is empty.")
    return data


def _read(data: bytes, form: Format, dialect: Dialect, sheet: str | None) -> Source:
    if form == "csv":
        table, notes = read_csv(data, dialect)
        return Source(table, notes=notes)
    if form == "excel":
        table, notes = read_excel(data, sheet)
        return Source(table, notes=notes)
    if form in ("parquet", "arrow"):
        return _read_binary(data, form)
    table, labels = read_statistical(data, form)
    return Source(table, labels)


def _read_binary(data: bytes, form: Format) -> Source:
    if form == "parquet":
        _check_cells(pl.scan_parquet(io.BytesIO(data)))
        note = pl.read_parquet_metadata(io.BytesIO(data)).get(LABELS_KEY)
        return Source(pl.read_parquet(io.BytesIO(data)), Labels() if note is None else Labels.from_text(note))
    if data.startswith(b"ARROW1"):
        _check_cells(pl.scan_ipc(io.BytesIO(data)))
        return Source(pl.read_ipc(io.BytesIO(data)))
    return Source(pl.read_ipc_stream(io.BytesIO(data)))


def _check_cells(scanned: pl.LazyFrame) -> None:
    """Refuse a table of more cells than memory holds, however little of the file they take."""
    rows = scanned.select(pl.len()).collect().item()
    check_room(_PER_CELL * rows * len(scanned.collect_schema()), "It")


def refuse_odd_times(table: pl.DataFrame) -> None:
    """Refuse days and times of the years before 1 and after 9999, among them infinity, which Python does not have."""
    for column in table.select(cs.date() | cs.datetime()):
        unit = column.dtype.time_unit if isinstance(column.dtype, pl.Datetime) else None
        days = column.cast(pl.Int64) // (1 if unit is None else _PER_DAY[unit])
        if ((days < _FIRST_DAY) | (days > _LAST_DAY)).any():
            raise FileError(f"Column {column.name!r} has days before the year 1 or after 9999, or infinity; mend them.")


def _decompress(data: bytes, form: Format) -> bytes:
    """Return what is in a gzip or zstd file, as much as memory holds; anything else as it is."""
    zstd_errors: tuple[type[Exception], ...] = ()
    if data.startswith(b"\x1f\x8b"):
        stream: Any = gzip.GzipFile(fileobj=io.BytesIO(data))
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            import zstandard
        except ImportError:
            raise need_extra("files", "zstandard") from None
        zstd_errors = (zstandard.ZstdError,)
        stream = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True)
    else:
        return data
    found = io.BytesIO()
    try:
        while piece := stream.read(_CHUNK):
            found.write(piece)
            check_room(_PER_BYTE.get(form, 1.0) * found.tell() - found.tell(), "What is packed in it")
    except FileError:
        raise
    except (OSError, EOFError, zlib.error):
        raise FileError("It is not a complete gzip file.") from None
    except zstd_errors:
        raise FileError("It is not a complete zstd file.") from None
    return found.getvalue()


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
