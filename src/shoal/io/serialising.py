"""Tables as the bytes of files."""

from __future__ import annotations

import gzip
import io
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from shoal.errors import InputError
from shoal.io.dialect import FORMULA
from shoal.io.excel import write_excel
from shoal.io.formats import Compression, Format, need_extra
from shoal.io.labels import Labels
from shoal.io.reading import LABELS_KEY
from shoal.io.statistical import write_stata

# What polars and Arrow raise for a column that a format cannot hold.
_UNFIT = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    TypeError,
    ValueError,
    OverflowError,
    NotImplementedError,
)


def as_polars(table: Any) -> pl.DataFrame:
    """Return a table of any kind as one of polars."""
    try:
        return table if isinstance(table, pl.DataFrame) else nw.from_native(table, eager_only=True).to_polars()
    except ImportError:
        raise InputError("Writing a pandas table needs pyarrow; install it, or convert the table to polars.") from None
    except _UNFIT as error:  # its text may quote a cell
        raise InputError(
            f"The table has a column that files cannot hold ({type(error).__name__}); convert it."
        ) from None


def table_to_bytes(
    table: Any,
    form: Format,
    *,
    escape_formulas: bool = True,
    labels: Labels | None = None,
    compression: Compression | None = None,
) -> bytes:
    """Return the table as the bytes of a file; labels of columns that it does not have are left out."""
    frame = as_polars(table)
    kept = Labels() if labels is None else labels.only(frame.columns)
    buffer = io.BytesIO()
    try:
        if form == "excel":
            return write_excel(frame, kept)
        if form == "stata":
            return write_stata(frame, kept)
        if form == "parquet":
            frame.write_parquet(buffer, metadata={LABELS_KEY: kept.to_text()} if kept else None)
        elif form == "arrow":
            frame.write_ipc(buffer)
        else:
            (_escape(frame) if escape_formulas else frame).write_csv(buffer)
    except InputError:
        raise
    except _UNFIT:
        odd = [name for name, dtype in frame.schema.items() if not _fits_csv(dtype)]
        column = f"column {odd[0]!r}" if odd else "some column"
        raise InputError(f"{form} cannot hold {column} of this table; convert it, or choose another format.") from None
    return _compress(buffer.getvalue(), compression)


def _compress(data: bytes, compression: Compression | None) -> bytes:
    if compression == "gzip":
        return gzip.compress(data, compresslevel=6, mtime=0)
    if compression == "zstd":
        try:
            import zstandard
        except ImportError:
            raise need_extra("files", "zstandard") from None
        return bytes(zstandard.ZstdCompressor().compress(data))
    return data


def _fits_csv(dtype: pl.DataType) -> bool:
    return not (dtype.is_nested() or dtype in (pl.Binary, pl.Duration, pl.Object))


def _escape(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text cells and column names that a spreadsheet would run."""
    columns = []
    for column in frame:
        if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            columns.append(column)
            continue
        text = column.cast(pl.String)
        columns.append(text.str.replace(f"({FORMULA})", "'$1"))
    escaped = pl.DataFrame(columns)
    names = pl.Series(frame.columns, dtype=pl.String)
    return escaped.rename({name: f"'{name}" for name in names.filter(names.str.contains(FORMULA))})
