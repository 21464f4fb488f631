"""PostgreSQL, by ADBC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.errors import FileError
from shoal.io.databases.addresses import quote
from shoal.io.databases.arrow import from_batches, to_arrow
from shoal.io.databases.engine import Engine
from shoal.io.formats import need_extra

_REASONS = {  # by SQLSTATE
    "42P01": "a table that it names does not exist",
    "42703": "a column that it names does not exist",
    "42601": "it is not valid SQL",
    "42883": "a function that it names does not exist",
    "42501": "this user may not do that",
    "25006": "it would change the database, and only reading is allowed",
    "57014": "it was cancelled",
    "57P01": "the server was shut down",
}
_NOT_CONNECTED = {
    "password": "user or password are refused, or missing (PGPASSWORD, ~/.pgpass)",
    r'database ".*" does not exist': "there is no database of this name",
    r'role ".*" does not exist': "there is no user of this name",
    "refused|No such file|could not translate|not known|timeout|timed out": "no server answers there",
}


class Postgres(Engine):
    """A connection to PostgreSQL."""

    name = "PostgreSQL"

    def __init__(self, database: Any, *, writing: bool) -> None:
        try:
            import adbc_driver_manager
            import pyarrow as pa  # noqa: F401, ADBC hands over its tables
        except ImportError:
            raise need_extra("databases", "adbc-driver-postgresql") from None
        self._failure = adbc_driver_manager.Error
        super().__init__(database, writing=writing)

    def _connect(self, address: str, *, writing: bool) -> Any:
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise need_extra("databases", "adbc-driver-postgresql") from None
        try:
            connection = dbapi.connect(address)
        except self._failure as error:  # its words may hold the password
            found = (reason for pattern, reason in _NOT_CONNECTED.items() if re.search(pattern, str(error)))
            raise FileError(
                f"Cannot connect to the database: {next(found, 'the address or the server is not right')}."
            ) from None
        if not writing:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION READ ONLY")
        return connection

    def _read(self, query: str) -> pl.DataFrame:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return from_batches(cursor.fetch_record_batch())

    def _exists(self, name: Sequence[str]) -> bool:
        if len(name) == 2 and not self._ask("SELECT to_regnamespace($1) IS NOT NULL", quote(name[0])):
            raise FileError(f"There is no schema {name[0]!r} in the database; make it first.")
        return self._ask("SELECT to_regclass($1) IS NOT NULL", quote(*name))

    def _ask(self, question: str, name: str) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(question, (name,))
            return bool(cursor.fetchone()[0])

    def _create(self, frame: pl.DataFrame, name: Sequence[str]) -> None:
        schema = {"db_schema_name": name[0]} if len(name) == 2 else {}
        with self._connection.cursor() as cursor:
            cursor.adbc_ingest(name[-1], to_arrow(frame), mode="create", **schema)

    def _begin(self) -> None:
        """Do nothing: every statement of ADBC is part of a transaction."""

    def _end(self, how: str) -> None:
        if how == "COMMIT":
            self._connection.commit()
        else:
            self._connection.rollback()

    def _execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def _explain(self, error: Exception) -> str:
        state = getattr(error, "sqlstate", None) or "unknown"
        return _REASONS.get(state, f"its error has the code {state}")
