"""SQLite, by Python's own package. It has no types of dates: ISO texts are read as dates and times."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from shoal.errors import FileError, InputError
from shoal.io.databases.addresses import existing_file, path_of, quote, refuse_odd_names
from shoal.io.databases.engine import Engine
from shoal.io.dialect import infer_times
from shoal.io.memory import check_room

_ROWS_AT_ONCE = 1_000
_PER_CELL = 150  # bytes of memory, as Python objects and as a table
_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_REASONS = {
    "authorization": "it would change the database, and only reading is allowed",
    "not authorized": "it would change the database, and only reading is allowed",
    "no such table": "a table that it names does not exist",
    "no such column": "a column that it names does not exist",
    "syntax error": "it is not valid SQL",
    "readonly": "it would change the database, and only reading is allowed",
    "locked": "somebody else is writing to the database",
    "not a database": "the file is not a database, or damaged",
    "full": "the disk is full",
}


class SQLite(Engine):
    """A connection to SQLite."""

    name = "SQLite"
    _failure = sqlite3.Error

    def __init__(self, database: Any, *, writing: bool) -> None:
        super().__init__(database, writing=writing)
        if writing and self._connection.in_transaction:
            raise InputError("The connection is inside a transaction; commit it first, or roll it back.")

    def _connect(self, address: str, *, writing: bool) -> Any:
        path = path_of(address) if writing else existing_file(address)
        where = f"{Path(path).resolve().as_uri()}?mode={'rwc' if writing else 'ro'}"
        try:
            connection = sqlite3.connect(where, uri=True, isolation_level=None)
            connection.execute("PRAGMA schema_version")
        except sqlite3.Error:
            raise FileError(f"Cannot open {path!r} as a SQLite database: damaged, or in use.") from None
        if not writing:
            connection.set_authorizer(
                lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
            )
        return connection

    def _read(self, query: str) -> pl.DataFrame:
        cursor = self._connection.execute(query)
        if cursor.description is None:
            raise FileError("The query gives no rows.")
        names = [column[0] for column in cursor.description]
        refuse_odd_names(names)
        rows: list[tuple[Any, ...]] = []
        while more := cursor.fetchmany(_ROWS_AT_ONCE):
            rows += more
            large = sum(len(value) for row in more for value in row if isinstance(value, str | bytes))
            check_room(_PER_CELL * len(more) * len(names) + 2 * large, "What the query gives next")
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return pl.DataFrame([_column_of(name, values) for name, values in zip(names, columns, strict=True)])

    def _exists(self, name: Sequence[str]) -> bool:
        if len(name) == 2 and name[0].lower() != "main":
            raise FileError(f"SQLite has no schema {name[0]!r}; name the table alone.")
        found = self._connection.execute("SELECT count(*) FROM sqlite_master WHERE lower(name) = lower(?)", (name[-1],))
        return bool(found.fetchone()[0])

    def _begin(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def _create(self, frame: pl.DataFrame, name: Sequence[str]) -> None:
        columns = ", ".join(f"{quote(column)} {_sqlite_type(dtype)}" for column, dtype in frame.schema.items())
        self._execute(f"CREATE TABLE {quote(*name)} ({columns})")
        marks = ", ".join("?" * frame.width)
        self._connection.executemany(f"INSERT INTO {quote(*name)} VALUES ({marks})", _plain(frame).iter_rows())  # noqa: S608, quoted

    def _explain(self, error: Exception) -> str:
        return next((reason for word, reason in _REASONS.items() if word in str(error)), type(error).__name__)


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table of what SQLite can hold: categories, dates and times as texts."""
    for name, dtype in frame.schema.items():
        large = dtype == pl.UInt64 and (frame[name] >= 2**63).any()
        if large or dtype.is_nested() or dtype in (pl.Duration, pl.Object, pl.Int128, pl.UInt128):
            raise InputError(f"SQLite cannot hold column {name!r}; convert it, or drop it.")
    return frame.with_columns(
        pl.col(pl.Categorical, pl.Enum, pl.Null).cast(pl.String),
        cs.datetime(time_zone=None).dt.to_string("%Y-%m-%d %H:%M:%S%.f"),
        cs.datetime(time_zone="*").dt.to_string("%Y-%m-%d %H:%M:%S%.f%:z"),
        pl.col(pl.Date, pl.Time).dt.to_string("iso"),
        pl.col(pl.Decimal).cast(pl.Float64),
    )


def _sqlite_type(dtype: pl.DataType) -> str:
    if dtype.is_integer() or dtype == pl.Boolean:
        return "BOOLEAN" if dtype == pl.Boolean else "INTEGER"
    if dtype.is_float():
        return "REAL"
    times = {pl.Date: "DATE", pl.Datetime: "TIMESTAMP", pl.Time: "TIME", pl.Binary: "BLOB"}
    return times.get(dtype.base_type(), "TEXT")


def _column_of(name: str, values: Sequence[Any]) -> pl.Series:
    """Return SQLite's values, which may be of any type in any row, as a column of one."""
    types = {type(value) for value in values} - {type(None)}
    if types <= {int}:
        return pl.Series(name, values, dtype=pl.Int64)
    if types <= {int, float}:
        return pl.Series(name, [None if value is None else float(value) for value in values], dtype=pl.Float64)
    if types <= {bytes}:
        return pl.Series(name, values, dtype=pl.Binary)
    if bytes in types:
        raise FileError(f"Column {name!r} has texts and bytes; cast it in the query.")
    text = pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)
    times = infer_times(text)
    return text if times is None else times
