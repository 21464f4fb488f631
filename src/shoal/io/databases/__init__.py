"""Tables from and to databases: PostgreSQL, DuckDB, SQLite; a query in, a new table out, in one transaction.

What a driver says may quote cells or passwords, so its words are never passed on.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from shoal.errors import FileError, InputError
from shoal.io.databases.addresses import is_address, path_of, read_name, scheme_of, without_password
from shoal.io.databases.duck import DuckDB
from shoal.io.databases.engine import Engine
from shoal.io.databases.lite import SQLite
from shoal.io.databases.postgres import Postgres
from shoal.io.reading import Source
from shoal.io.serialising import as_polars

__all__ = ["is_address", "read_database", "read_name", "scheme_of", "staged_table", "without_password"]


def read_database(database: Any, query: str) -> Source:
    """Read a table from a database. One given by its address is opened for reading only.

    Parameters
    ----------
    database : str or connection
        An address, such as "postgresql://user@host/name", "duckdb:///file.duckdb" or "sqlite:///file.db" (four slashes
        before an absolute path), or a connection of ADBC (PostgreSQL), duckdb or sqlite3. A password is best left to
        PGPASSWORD or ~/.pgpass.
    query : str

    Returns
    -------
    Source
    """
    if not isinstance(query, str) or not query.strip():
        raise InputError("query must be a text, such as 'select * from people'.")
    with _connect(database, writing=False) as connection:
        table = connection.read(query)
    if table.is_empty():
        raise FileError("The query gives no rows.")
    return Source(table)


@contextlib.contextmanager
def staged_table(table: Any, database: Any, name: str, *, replace: bool = False) -> Iterator[Callable[[], None]]:
    """Write a table into a new table of a database, and yield what commits it; without that, nothing was done."""
    frame, parts = as_polars(table), read_name(name)
    path = None
    if is_address(database) and scheme_of(database) != "postgresql":
        path = Path(path_of(database))
    is_new = path is not None and not path.exists()
    committed: list[bool] = []

    def commit() -> None:
        connection.commit()
        committed.append(True)

    try:
        with _owners_only(), _connect(database, writing=True) as connection:
            try:
                if connection.exists(parts) and not replace:
                    raise FileError(f"The table {name!r} is already there; choose another name, or say replace=True.")
                connection.create(frame, parts, replace=replace)
                yield commit
            finally:
                if not committed:
                    connection.rollback()
    finally:
        if is_new and not committed:
            assert path is not None
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _owners_only() -> Iterator[None]:
    """Let files of new databases be readable by their owner only."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def _connect(database: Any, *, writing: bool) -> Iterator[Engine]:
    kinds: dict[str, type[Engine]] = {"postgresql": Postgres, "duckdb": DuckDB, "sqlite": SQLite}
    connection = kinds[scheme_of(database)](database, writing=writing)
    try:
        yield connection
    finally:
        connection.close()
