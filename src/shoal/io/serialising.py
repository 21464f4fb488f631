"""Tables as the bytes of files."""

from __future__ import annotations

import gzip
import io
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl
import polars.selectors as cs

from shoal.errors import InputError
from shoal.io.dialect import FORMULA, Dialect
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
    dialect: Dialect | None = None,
) -> bytes:
    """Return the table as the bytes of a file; labels of columns that it does not have are left out."""
    frame = as_polars(table)
    kept = Labels() if labels is None else labels.only(frame.columns)
    if form in ("csv", "excel"):
        frame = _for_text(frame, form)
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
            separator, decimal = (",", ".") if dialect is None else (dialect.separator or ",", dialect.decimal or ".")
            plain = _escape(frame) if escape_formulas else frame
            plain.write_csv(buffer, separator=separator, decimal_comma=decimal == ",")
    except InputError:
        raise
    except _UNFIT:
        odd = [name for name, dtype in frame.schema.items() if not _fits_csv(dtype)]
        column = f"column {odd[0]!r}" if odd else "some column"
        raise InputError(f"{form} cannot hold {column} of this table; convert it, or choose another format.") from None
    return _compress(buffer.getvalue(), compression)


def _for_text(frame: pl.DataFrame, form: str) -> pl.DataFrame:
    """Return a table whose rows and cells come back from a file of text as they are; refuse one that would not."""
    empty = frame.select(pl.all_horizontal(pl.all().is_null()).sum()).item() if frame.width else 0
    if empty:
        raise InputError(
            f"{form} cannot hold the {empty:,} rows without any value, which would be read as blank lines; choose "
            ".parquet, or drop them."
        )
    if form == "excel":
        return frame
    for column in frame.select(cs.string()):
        if column.str.contains("\0", literal=True).any():
            raise InputError(f"csv cannot hold column {column.name!r}, which has NUL characters; choose .parquet.")
    nanoseconds = [
        name for name, dtype in frame.schema.items()
        if dtype == pl.Datetime("ns") and (frame[name].drop_nulls().cast(pl.Int64) % 1000 == 0).all()
    ]  # fmt: skip
    return frame.with_columns(
        pl.col(nanoseconds).cast(pl.Datetime("us")),
        # No number is a missing one, and -0.0, which would look like another number, is 0.0.
        pl.when(cs.float().is_nan()).then(None).when(cs.float() == 0).then(0.0).otherwise(cs.float()).name.keep(),
    )


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
