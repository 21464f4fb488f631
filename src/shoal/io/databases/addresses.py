"""Addresses of databases, names of tables, and how both may be shown."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from shoal.errors import FileError, InputError, suggest

SCHEMES = ("postgresql", "duckdb", "sqlite")


def is_address(text: object) -> bool:
    """Return whether a text is the address of a database."""
    return isinstance(text, str) and "://" in text


def without_password(address: str) -> str:
    """Return an address as it may be shown and kept."""
    parts = urlsplit(address)
    if parts.scheme not in ("postgresql", "postgres"):
        return address
    user, at, host = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if "pass" not in name.lower()]
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}{at}{host}", query=urlencode(query, safe="/:")))


def scheme_of(database: Any) -> str:
    """Return the kind of database of an address or a connection."""
    if is_address(database):
        scheme = urlsplit(database).scheme.lower()
        scheme = "postgresql" if scheme == "postgres" else scheme
        if scheme not in SCHEMES:
            raise InputError(f"Databases of kind {scheme!r} are not known{suggest(scheme, SCHEMES)}")
        return scheme
    if isinstance(database, sqlite3.Connection):
        return "sqlite"
    module = type(database).__module__
    if module.startswith(("duckdb", "_duckdb")):
        return "duckdb"
    if module.startswith("adbc_driver_manager"):
        return "postgresql"
    raise InputError(
        "A database must be an address, such as postgresql://user@host/name, or a connection of ADBC, duckdb or "
        f"sqlite3, but it is a {type(database).__name__}."
    )


def path_of(address: str) -> str:
    """Return the file that an address names: three slashes before a relative path, four before an absolute one."""
    parts = urlsplit(address)
    path = unquote(parts.path)
    if parts.netloc or len(path) < 2:
        raise InputError(f"Write {parts.scheme}:///file, or {parts.scheme}:////folder/file from the root.")
    return path[1:]


def existing_file(address: str) -> str:
    """Return the file that an address names, which must be there."""
    path = path_of(address)
    if not os.path.isfile(path):
        raise FileError(f"There is no database file {path!r}.")
    return path


def read_name(name: str) -> list[str]:
    """Return the parts of a table's name: schema and table, or the table alone."""
    parts = name.split(".") if isinstance(name, str) else []
    if not 1 <= len(parts) <= 2 or not all(part.strip() for part in parts) or "\0" in name:
        raise InputError(f"{name!r} is not the name of a table; write table or schema.table.")
    return parts


def quote(*names: str) -> str:
    """Return the name of a table or column, its schema first, as SQL wants it."""
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def refuse_odd_names(names: Sequence[str]) -> None:
    """Refuse columns of a query that cannot be told apart."""
    if len(set(names)) < len(names) or "" in names or "?column?" in names:
        raise FileError("The query gives columns of the same name, or of none; name each with AS.")
