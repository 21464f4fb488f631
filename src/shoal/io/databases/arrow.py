"""Arrow tables between databases and polars."""

from __future__ import annotations

from typing import Any

import polars as pl

from shoal.errors import FileError, InputError
from shoal.io.databases.addresses import refuse_odd_names
from shoal.io.memory import check_room
from shoal.io.reading import refuse_odd_times

_LONG = r"^-?[0-9]{16,}(\.0*)?$"  # whole numbers that floating point cannot hold stay text
_PER_BYTE = 2.5  # bytes of memory per byte of Arrow data


def from_batches(batches: Any) -> pl.DataFrame:
    """Return Arrow batches as one table, as long as memory lasts."""
    refuse_odd_names(batches.schema.names)
    frames, size = [], 0
    for batch in batches:
        size += batch.nbytes
        check_room(_PER_BYTE * size - size, "What the query gives, so far,")
        frames.append(pl.DataFrame(_plain(batch)))
    table = pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame()
    refuse_odd_times(table)
    return table


def _plain(batch: Any) -> Any:
    """Return an Arrow batch with types that are spelt out: numerics as numbers, UUIDs as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        plain = column
        if isinstance(column.type, pa.BaseExtensionType):
            plain = column.storage
            if (
                getattr(column.type, "type_name", "") == "numeric"
                and not pc.any(pc.match_substring_regex(plain, _LONG)).as_py()
            ):
                plain = pc.cast(plain, pa.float64())
            elif isinstance(column.type, pa.UuidType):
                texts = (None if value is None else str(value) for value in column.to_pylist())
                plain = pa.array(texts, pa.string())
        note = batch.schema.field(name).metadata or {}
        binary = pa.types.is_binary(plain.type) and isinstance(column.type, pa.BaseExtensionType)
        if binary or note.get(b"POSTGRESQL:type") == b"money" or pa.types.is_interval(plain.type):
            raise FileError(
                f"Column {name!r} has a type of the database's own; cast it in the query, to text or numeric."
            )
        columns.append(plain)
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def to_arrow(frame: pl.DataFrame) -> Any:
    """Return a table for a database: categories as texts."""
    odd = [name for name, dtype in frame.schema.items() if "\0" in name or dtype in (pl.Int128, pl.UInt128, pl.Object)]
    if odd:
        raise InputError(f"A database cannot hold column {odd[0]!r}: convert it, or rename it.")
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum, pl.Null).cast(pl.String)).to_arrow(
        compat_level=pl.CompatLevel.oldest()
    )
