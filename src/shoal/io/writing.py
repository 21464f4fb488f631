"""Write releases: all files or none, complete before they appear, readable by their owner only."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import polars as pl

from shoal.errors import FileError, InputError
from shoal.io.reading import FORMULA, STANDARD, Format, find_format

# What polars and Arrow raise for a column that a format cannot hold.
_UNFIT = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    TypeError,
    ValueError,
    OverflowError,
    NotImplementedError,
)


def write_release(
    table: Any,
    certificate: Mapping[str, Any],
    path: str | os.PathLike[str],
    certificate_path: str | os.PathLike[str] | None = None,
    *,
    fmt: str | None = None,
    escape_formulas: bool = True,
    beside: Sequence[tuple[str, bytes]] = (),
) -> dict[str, Any]:
    """Write table and certificate, both or neither, and return the certificate with the table's SHA-256.

    path "-" is standard output; the certificate is then written only where a path for it is given. beside: further
    files, such as reports, by path; all are written or none.
    """
    target = os.fspath(path)
    form = find_format(target, fmt)
    note_path = certificate_path_of(target) if certificate_path is None else os.fspath(certificate_path)
    refuse_output([], [*([target] if note_path is None else [target, note_path]), *(name for name, _ in beside)])
    data = table_to_bytes(table, form, escape_formulas=escape_formulas)
    note: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "format": form}
    if form == "csv":
        note["formulas_escaped"] = escape_formulas
    written = {**certificate, "file": note}
    files = [] if target == STANDARD else [(Path(os.path.realpath(target)), data)]
    if note_path is not None:
        text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
        files.append((Path(os.path.realpath(note_path)), text.encode()))
    files += [(Path(os.path.realpath(name)), content) for name, content in beside]
    write_files(files, to_standard_output=data if target == STANDARD else b"")
    return written


def certificate_path_of(path: str) -> str | None:
    """Return where the certificate of a release goes unless told otherwise: nowhere for standard output."""
    return None if path == STANDARD else f"{path}.certificate.json"


def refuse_output(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse outputs that would overwrite an input or one another, or whose folder is missing."""
    if any("\0" in path for path in outputs):
        raise FileError("The name of an output has a NUL character; choose another.")
    if STANDARD in outputs[1:]:
        raise FileError("Certificate and reports cannot go to standard output; name files.")
    seen = [os.path.realpath(path) for path in inputs if path != STANDARD]
    for path in outputs:
        if path == STANDARD:
            continue
        real = os.path.realpath(path)
        if real in seen or any(os.path.exists(real) and os.path.exists(s) and os.path.samefile(real, s) for s in seen):
            raise FileError(
                f"{path!r} is also an input or another output; nothing may be overwritten: choose another name."
            )
        if os.path.isdir(real):
            raise FileError(f"{path!r} is a folder; name a file in it.")
        if os.path.exists(real) and not os.path.isfile(real):
            raise FileError(f"{path!r} is not an ordinary file; use - for standard output.")
        if not os.path.isdir(os.path.dirname(real)):
            raise FileError(f"The folder of {path!r} does not exist; make it first.")
        seen.append(real)


def table_to_bytes(table: Any, form: Format, *, escape_formulas: bool = True) -> bytes:
    """Return the table as the bytes of a file."""
    try:
        frame = table if isinstance(table, pl.DataFrame) else nw.from_native(table, eager_only=True).to_polars()
    except ImportError:
        raise InputError("Writing a pandas table needs pyarrow; install it, or convert the table to polars.") from None
    except _UNFIT as error:  # its text may quote a cell
        raise InputError(
            f"The table has a column that files cannot hold ({type(error).__name__}); convert it."
        ) from None
    buffer = io.BytesIO()
    try:
        if form == "parquet":
            frame.write_parquet(buffer)
        elif form == "arrow":
            frame.write_ipc(buffer)
        else:
            (_escape(frame) if escape_formulas else frame).write_csv(buffer)
    except _UNFIT:
        odd = [name for name, dtype in frame.schema.items() if not _fits_csv(dtype)]
        column = f"column {odd[0]!r}" if odd else "some column"
        raise InputError(f"{form} cannot hold {column} of this table; convert it, or choose another format.") from None
    return buffer.getvalue()


def _fits_csv(dtype: pl.DataType) -> bool:
    return not (dtype.is_nested() or dtype in (pl.Binary, pl.Duration, pl.Object))


def _escape(frame: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before text cells and column names that a spreadsheet would run."""
    columns = []
    for column in frame:
        if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            columns.append(column)
            continue
        text = column.cast(pl.String)
        columns.append(text.str.replace(f"({FORMULA})", "'$1"))
    escaped = pl.DataFrame(columns)
    names = pl.Series(frame.columns, dtype=pl.String)
    return escaped.rename({name: f"'{name}" for name in names.filter(names.str.contains(FORMULA))})


def write_files(files: Sequence[tuple[Path, bytes]], *, to_standard_output: bytes = b"") -> None:
    """Write every file beside its target, then move all into place; on any failure leave things as they were."""
    with contextlib.ExitStack() as stack:
        drafts = [stack.enter_context(_temporary_file(path, data)) for path, data in files]
        if to_standard_output:
            with _readable_errors("standard output"):
                if sys.stdout is None:
                    raise OSError(errno.EBADF, "it is closed")
                sys.stdout.buffer.write(to_standard_output)
                sys.stdout.buffer.flush()
        before: list[tuple[Path, Path | None]] = []
        try:
            for draft, (path, _) in zip(drafts, files, strict=True):
                with _readable_errors(os.fspath(path)):
                    before.append((path, _keep_aside(path)))
                    os.replace(draft, path)
        except BaseException:
            for path, aside in before:
                if aside is None:
                    path.unlink(missing_ok=True)
                else:
                    os.replace(aside, path)
                    aside.unlink(missing_ok=True)  # two names of one file: replacing did nothing
            raise
        for _, aside in before:
            if aside is not None:
                aside.unlink()


def _keep_aside(path: Path) -> Path | None:
    """Give what is at the path a second name, so that it can be put back; None if nothing is there."""
    if not path.exists():
        return None
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}.before")
    try:
        os.link(path, aside)
    except OSError:  # not every file system has hard links
        shutil.copy2(path, aside)
    return aside


@contextlib.contextmanager
def _readable_errors(target: str) -> Iterator[None]:
    """Turn the system's errors into one that says what to do."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        reason = "the disk is full" if full else error.strerror or type(error).__name__
        raise FileError(f"Cannot write {target!r}: {reason}. Nothing was written.") from None


@contextlib.contextmanager
def _temporary_file(target: Path, data: bytes) -> Iterator[Path]:
    """Write data, flushed to the disk, to a new file beside the target; remove it at the end if still there."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with _readable_errors(os.fspath(target)):
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(OSError):  # it may never have come to be
            draft.unlink()
