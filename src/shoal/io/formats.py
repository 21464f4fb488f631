"""The formats of files: what is read, what is written, and how a name tells."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from shoal.errors import FileError, InputError, suggest

Format = Literal["csv", "parquet", "arrow", "excel", "stata", "spss", "por", "sas", "xport"]
Compression = Literal["gzip", "zstd"]

STANDARD = "-"  # standard input or output
READ: tuple[Format, ...] = ("csv", "parquet", "arrow", "excel", "stata", "spss", "por", "sas", "xport")
WRITTEN: tuple[Format, ...] = ("csv", "parquet", "arrow", "excel", "stata")
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".dta": "stata",
    ".sav": "spss",
    ".zsav": "spss",
    ".por": "por",
    ".sas7bdat": "sas",
    ".xpt": "xport",
    ".ssp": "xport",
}
_COMPRESSED: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
_DATABASES = {".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
_OLD_EXCEL = (".xls", ".xlsm")


def find_format(path: str, fmt: str | None = None) -> Format:
    """Return the format of a file: the one given, or by its ending; CSV for standard input and output."""
    if fmt is not None:
        known = next((name for name in READ if name == fmt), None)
        if known is None:
            raise InputError(f"Format {fmt!r} is not known{suggest(fmt, READ)}")
        return known
    if path == STANDARD:
        return "csv"
    ending = _ending(path)
    if ending not in _ENDINGS:
        raise InputError(
            f"{Path(path).name!r} has the ending {ending!r}, which is not known; use {', '.join(_ENDINGS)}, or say "
            f"the format{_hint(path)}."
        )
    return _ENDINGS[ending]


def _hint(path: str) -> str:
    """Return how to name a database, if that is what a file's name looks like."""
    kind = _DATABASES.get(_ending(path))
    return "" if kind is None else f"; as a database it is {kind}:///{path}"


def find_compression(path: str) -> Compression | None:
    """Return how a file of this name is compressed, if it is."""
    return _COMPRESSED.get(Path(path).suffix.lower())


def find_output(path: str, fmt: str | None = None) -> Format:
    """Return the format in which a file of this name is written, refusing those that are only read."""
    known = fmt is not None or path == STANDARD or _ending(path) in _ENDINGS
    form = find_format(path, fmt) if known else None
    if form is None or form not in WRITTEN or (fmt is None and _ending(path) in _OLD_EXCEL):
        raise InputError(
            f"{Path(path).name!r} cannot be written{f' as {form}' if form else ''}; choose .csv, .parquet, "
            f".arrow, .xlsx or .dta{_hint(path)}."
        )
    if find_compression(path) is not None and form != "csv":
        raise InputError(f"{Path(path).name!r}: only CSV is compressed on writing; leave out the last ending.")
    return form


def need_extra(extra: str, package: str) -> FileError:
    """Return the error for a format whose reader is not installed."""
    return FileError(
        f"This needs the package {package!r}, which comes with the extra {extra!r}: pip install '.[{extra}]' in the "
        "folder of shoal."
    )


def _ending(path: str) -> str:
    """Return the ending that tells the format, in front of one that tells the compression."""
    name = Path(path)
    return Path(name.stem).suffix.lower() if name.suffix.lower() in _COMPRESSED else name.suffix.lower()
