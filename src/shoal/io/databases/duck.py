"""DuckDB, by its own package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from shoal.errors import FileError
from shoal.io.databases.addresses import existing_file, path_of, quote
from shoal.io.databases.arrow import from_batches, to_arrow
from shoal.io.databases.engine import Engine
from shoal.io.formats import need_extra

_ROWS_AT_ONCE = 50_000
_VIEW = "shoal_release"
_REASONS = {
    "CatalogException": "a table or function that it names does not exist",
    "BinderException": "a column that it names does not exist, or does not fit",
    "ParserException": "it is not valid SQL",
    "InvalidInputException": "it would change the database, and only reading is allowed",
    "PermissionException": "it would read or write other files, and only reading the database is allowed",
    "ConversionException": "a value cannot be converted as it says",
}


class DuckDB(Engine):
    """A connection to DuckDB."""

    name = "DuckDB"

    def __init__(self, database: Any, *, writing: bool) -> None:
        try:
            import duckdb
            import pyarrow as pa  # noqa: F401, DuckDB hands over its tables
        except ImportError:
            raise need_extra("databases", "duckdb") from None
        self._failure = duckdb.Error
        super().__init__(database, writing=writing)

    def _connect(self, address: str, *, writing: bool) -> Any:
        import duckdb

        path = path_of(address) if writing else existing_file(address)
        try:
            if writing:
                return duckdb.connect(path)
            return duckdb.connect(
                path, read_only=True, config={"enable_external_access": "false"}
            )  # no COPY, no ATTACH
        except duckdb.Error:
            raise FileError(f"Cannot open {path!r} as a DuckDB database: damaged, or in use.") from None

    def _read(self, query: str) -> pl.DataFrame:
        found = self._connection.sql(query)
        if found is None:
            raise FileError("The query gives no rows.")
        return from_batches(found.to_arrow_reader(_ROWS_AT_ONCE))

    def _exists(self, name: Sequence[str]) -> bool:
        query = "SELECT count(*) FROM information_schema.tables WHERE table_name = ?"
        query += " AND table_schema = ?" if len(name) == 2 else " AND table_schema = current_schema()"
        return bool(self._connection.execute(query, list(reversed(name))).fetchone()[0])

    def _create(self, frame: pl.DataFrame, name: Sequence[str]) -> None:
        self._connection.register(_VIEW, to_arrow(frame))
        try:
            self._execute(f"CREATE TABLE {quote(*name)} AS SELECT * FROM {_VIEW}")  # noqa: S608, quoted
        finally:
            self._connection.unregister(_VIEW)

    def _explain(self, error: Exception) -> str:
        kind = type(error).__name__
        return _REASONS.get(kind, f"its error is {kind}")
