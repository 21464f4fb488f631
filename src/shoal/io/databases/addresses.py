"""Addresses of databases, names of tables, and how both may be shown."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from shoal.errors import FileError, InputError, suggest

SCHEMES = ("postgresql", "duckdb", "sqlite")


_ADDRESS = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_USER = re.compile(r"([^:@/]*):.*@", re.DOTALL)  # a password may hold any mark, unencoded: it ends at the last @
_PARAMETER = re.compile(r"(?i)[?&]\w*pass\w*=[^&]*")
_SECRET = re.compile(r"(?i)(pass\w*\s*=\s*)('[^']*'|[^&\s]*)")


def is_address(text: object) -> bool:
    """Return whether a text is the address of a database."""
    return isinstance(text, str) and _ADDRESS.fullmatch(text) is not None


def without_password(address: str) -> str:
    """Return an address as it may be shown and kept."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return _SECRET.sub(r"\1...", address)
    rest = _USER.sub(r"\1@", found[2], count=1) if _USER.match(found[2]) else found[2]
    return f"{found[1]}://{_PARAMETER.sub('', rest)}"


def same_database(one: object, other: object) -> bool:
    """Return whether two addresses lead to the same database, as far as they tell."""
    if not (isinstance(one, str) and isinstance(other, str) and is_address(one) and is_address(other)):
        return one is other
    if scheme_of(one) != scheme_of(other):
        return False
    if scheme_of(one) == "postgresql":
        return without_password(one).rpartition("@")[2] == without_password(other).rpartition("@")[2]
    return os.path.realpath(path_of(one)) == os.path.realpath(path_of(other))


def scheme_of(database: Any) -> str:
    """Return the kind of database of an address or a connection."""
    if is_address(database):
        scheme = database.partition("://")[0].lower()
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
    scheme, _, rest = address.partition("://")
    path = unquote(rest)[1:]
    if not rest.startswith("/") or not path or path == ":memory:":
        raise InputError(f"Write {scheme}:///file, or {scheme}:////folder/file from the root.")
    return path


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
