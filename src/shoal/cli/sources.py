"""Where a command's table comes from."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Self

from shoal.errors import InputError
from shoal.io import STANDARD, Reading, Source, is_address, read_database, read_source, without_password
from shoal.io.databases.addresses import path_of
from shoal.progress import waiting


@dataclass(frozen=True)
class Input:
    """A file, standard input, or a query to a database."""

    path: str | None
    how: Reading = field(default_factory=Reading)
    database: str | None = None
    query: str | None = None

    @classmethod
    def of(
        cls,
        path: str | None,
        form: str | None = None,
        separator: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        sheet: str | None = None,
        database: str | None = None,
        query: str | None = None,
    ) -> Self:
        """Check what a command line says, and return it as a source."""
        if path is not None and is_address(path):
            raise InputError(f"That is a database; write --from {without_password(path)} --query ...")
        if (path is None) == (database is None):
            raise InputError("Name a file, or a database with --from and --query; one of the two.")
        if (database is None) != (query is None):
            raise InputError("--from and --query go together: --from sqlite:///file.db --query 'select * from people'.")
        if database is not None and not is_address(database):
            raise InputError("--from must be an address such as postgresql://user@host/name.")
        reading = Reading(form, "\t" if separator in ("tab", "\\t") else separator, encoding, decimal, sheet)
        return cls(path, reading, database, query)

    def words(self) -> list[str]:
        """Return the words of a command line that name this table, to paste; no password."""
        if self.database is not None:
            return ["--from", without_password(self.database), "--query", str(self.query)]
        how = {"--input-format": self.how.form, "--separator": self.how.separator, "--encoding": self.how.encoding,
               "--decimal": self.how.decimal, "--sheet": self.how.sheet}  # fmt: skip
        given = [word for option, value in how.items() if value is not None for word in (option, value)]
        return ["people.csv" if self.path == STANDARD else str(self.path), *given]

    def files(self) -> list[str]:
        """Return the files that must not be overwritten."""
        if self.path is not None:
            return [self.path]
        assert self.database is not None
        return [] if self.database.startswith("postgres") else [path_of(self.database)]

    def read(self, *, quiet: bool) -> Source:
        """Read the table, and say how it was read where that was guessed."""
        with waiting("reading", shown=not quiet):
            if self.database is not None:
                return read_database(self.database, str(self.query))
            source = read_source(str(self.path), self.how)
        if source.notes and not quiet and sys.stderr is not None:
            what = "standard input" if self.path == STANDARD else self.path
            sys.stderr.write(f"shoal: read {what}: {'; '.join(source.notes)}.\n")
        return source
