"""What a shell offers when somebody presses the tab key: choices, and the columns of the table named before."""

from __future__ import annotations

import io
import itertools
import os
import shlex
from collections.abc import Callable, Sequence

_MOST = 1 << 20  # bytes of a file that are looked at
_SMALL = 4 << 20  # bytes of a file that is read as a whole


def one_of(*choices: str) -> Callable[[str], list[str]]:
    """Return a completer for an option with choices; of a list separated by commas it completes the last."""

    def complete(incomplete: str) -> list[str]:
        return _last_part(incomplete, choices)

    return complete


def complete_columns(incomplete: str) -> list[str]:
    """Offer the columns of the file that the command line names."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    try:
        path = next((word for word in shlex.split(line)[1:] if os.path.isfile(word)), None)
        return [] if path is None else _last_part(incomplete, _columns_of(path))
    except Exception:  # noqa: BLE001, a shell that completes must say nothing: the command itself will say it
        return []


def _last_part(incomplete: str, choices: Sequence[str]) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in choices if name.startswith(last) and name not in taken]


def _columns_of(path: str) -> list[str]:
    from shoal.io.dialect import Dialect, read_csv
    from shoal.io.formats import find_compression, find_format
    from shoal.io.reading import read_table

    form = find_format(path)
    if form == "csv" and find_compression(path) is None:
        with open(path, "rb") as file:
            lines = list(itertools.islice(io.BytesIO(file.read(_MOST)), 3))
        return list(read_csv(b"".join(lines), Dialect())[0].columns)
    if form == "parquet":
        import polars as pl

        return list(pl.read_parquet_schema(path))
    return list(read_table(path).columns) if os.path.getsize(path) < _SMALL else []
