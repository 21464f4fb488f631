"""What every database can do for us, and how it says that it cannot."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import polars as pl

from shoal.io.databases.addresses import is_address, quote
from shoal.io.guarding import in_our_words


class Engine(ABC):
    """A connection. Everything between `create` and `commit` happens, or nothing.

    Parameters
    ----------
    database : str or connection
        An address, or somebody's connection, which is left open.
    writing : bool
        Without it the database is opened for reading only.
    """

    name: ClassVar[str]
    _failure: type[Exception]  # what the driver raises
    _open = False  # whether a transaction of ours is

    def __init__(self, database: Any, *, writing: bool) -> None:
        self._ours = is_address(database)
        self._connection = self._connect(database, writing=writing) if self._ours else database

    def read(self, query: str) -> pl.DataFrame:
        """Return the rows of a query."""
        with self._in_our_words():
            return self._read(query)

    def exists(self, name: Sequence[str]) -> bool:
        """Return whether there is a table of this name, its schema first where one is named."""
        with self._in_our_words():
            return self._exists(name)

    def create(self, frame: pl.DataFrame, name: Sequence[str], *, replace: bool) -> None:
        """Make a table, not committed yet."""
        with self._in_our_words():
            self._begin()
            self._open = True
            if replace:
                self._execute(f"DROP TABLE IF EXISTS {quote(*name)}")
            self._create(frame, name)

    def commit(self) -> None:
        """Make what was done last."""
        with self._in_our_words():
            self._end("COMMIT")
            self._open = False

    def rollback(self) -> None:
        """Undo what was not committed."""
        if self._open:
            self._open = False
            with contextlib.suppress(self._failure):
                self._end("ROLLBACK")

    def close(self) -> None:
        """End the connection, if it is ours."""
        if self._ours:
            with contextlib.suppress(self._failure):
                self._connection.close()

    @contextlib.contextmanager
    def _in_our_words(self) -> Iterator[None]:
        with in_our_words(lambda error: f"{self.name} refuses: {self._explain_any(error)}."):
            yield

    def _explain_any(self, error: BaseException) -> str:
        """Return why, of an error of the driver, or of what hands over its rows."""
        if isinstance(error, self._failure):
            return self._explain(error)
        return "a value of the query cannot be computed or handed over; cast columns of rare types to text"

    def _begin(self) -> None:
        self._execute("BEGIN")

    def _end(self, how: str) -> None:
        self._execute(how)

    def _execute(self, statement: str) -> None:
        self._connection.execute(statement)

    @abstractmethod
    def _connect(self, address: str, *, writing: bool) -> Any: ...

    @abstractmethod
    def _read(self, query: str) -> pl.DataFrame: ...

    @abstractmethod
    def _exists(self, name: Sequence[str]) -> bool: ...

    @abstractmethod
    def _create(self, frame: pl.DataFrame, name: Sequence[str]) -> None: ...

    @abstractmethod
    def _explain(self, error: Exception) -> str: ...
