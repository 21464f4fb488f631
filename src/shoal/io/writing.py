"""Write releases: all files or none, complete before they appear, readable by their owner only."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import FileError
from shoal.io.databases import scheme_of, staged_table
from shoal.io.dialect import Dialect
from shoal.io.formats import STANDARD, find_compression, find_output
from shoal.io.labels import Labels
from shoal.io.serialising import table_to_bytes

# A further file that appears with a release or not at all: its path, or - for standard output, and what is in it, or
# a function that makes that from the certificate as written.
Beside = tuple[str, bytes | Callable[[Mapping[str, Any]], bytes]]


def write_release(
    table: Any,
    certificate: Mapping[str, Any],
    path: str | os.PathLike[str],
    certificate_path: str | os.PathLike[str] | None = None,
    *,
    fmt: str | None = None,
    escape_formulas: bool = True,
    labels: Labels | None = None,
    dialect: Dialect | None = None,
    beside: Sequence[Beside] = (),
) -> dict[str, Any]:
    """Write table and certificate, both or neither, and return the certificate with the table's SHA-256.

    path "-" is standard output; the certificate is then written only where a path for it is given. labels: what columns
    and codes mean, kept by Stata, Excel and Parquet. beside: further files, such as reports; all are written or none.
    """
    target = os.fspath(path)
    form = find_output(target, fmt)
    note_path = certificate_path_of(target) if certificate_path is None else os.fspath(certificate_path)
    named = [*([] if note_path is None else [note_path]), *(name for name, _ in beside if name != STANDARD)]
    refuse_output([], [target, *named])
    compression = find_compression(target)
    data = table_to_bytes(
        table, form, escape_formulas=escape_formulas, labels=labels, compression=compression, dialect=dialect
    )
    note: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "format": form}
    if form == "csv":
        note["formulas_escaped"] = escape_formulas
        if dialect is not None and dialect.describe() != Dialect().describe():
            note["dialect"] = dialect.describe()
    written = {**certificate, "file": note}
    files: list[Beside] = [(target, data), *_with_certificate(note_path, beside)]
    write_all(files, written)
    return written


def write_release_to_database(
    table: Any,
    certificate: Mapping[str, Any],
    database: Any,
    name: str,
    certificate_path: str | os.PathLike[str] | None = None,
    *,
    replace: bool = False,
    beside: Sequence[Beside] = (),
) -> dict[str, Any]:
    """Write table into a new table of a database and the certificate into a file, both or neither.

    certificate_path: default, the table's name with .certificate.json added, in this folder. The certificate names the
    kind of database and the table, not the server or the user.
    """
    note_path = str(certificate_path_of(name)) if certificate_path is None else os.fspath(certificate_path)
    if certificate_path is None and os.path.exists(note_path) and not replace:
        raise FileError(f"{note_path!r} is there already, of another release; name a file for the certificate.")
    refuse_output([], [note_path, *(path for path, _ in beside if path != STANDARD)])
    written = {**certificate, "file": {"database": scheme_of(database), "table": name}}
    with staged_table(table, database, name, replace=replace) as commit:
        write_all(_with_certificate(note_path, beside), written, commit)
    return written


def _with_certificate(path: str | None, beside: Sequence[Beside]) -> list[Beside]:
    return [*([] if path is None else [(path, certificate_text)]), *beside]


def write_all(
    files: Sequence[Beside], certificate: Mapping[str, Any], and_then: Callable[[], None] | None = None
) -> None:
    """Write files, those made from the certificate among them, all or none; and_then: as in `write_files`."""
    ready = [(path, content if isinstance(content, bytes) else content(certificate)) for path, content in files]
    write_files(
        [(Path(os.path.realpath(path)), content) for path, content in ready if path != STANDARD],
        to_standard_output=b"".join(content for path, content in ready if path == STANDARD),
        and_then=and_then,
    )


def certificate_text(certificate: Mapping[str, Any]) -> bytes:
    """Return a certificate as the content of its file."""
    return (json.dumps(certificate, indent=2, ensure_ascii=False) + "\n").encode()


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


def write_files(
    files: Sequence[tuple[Path, bytes]],
    *,
    to_standard_output: bytes = b"",
    and_then: Callable[[], None] | None = None,
) -> None:
    """Write every file beside its target, then move all into place; on any failure leave things as they were.

    and_then: what else must succeed, such as committing to a database; if it fails, the files are as they were.
    """
    with contextlib.ExitStack() as stack:
        drafts = [stack.enter_context(_temporary_file(path, data)) for path, data in files]
        if to_standard_output:
            with readable_errors("standard output"):
                if sys.stdout is None:
                    raise OSError(errno.EBADF, "it is closed")
                sys.stdout.buffer.write(to_standard_output)
                sys.stdout.buffer.flush()
        before: list[tuple[Path, Path | None]] = []
        try:
            for draft, (path, _) in zip(drafts, files, strict=True):
                with readable_errors(os.fspath(path)):
                    before.append((path, _keep_aside(path)))
                    os.replace(draft, path)
            if and_then is not None:
                and_then()
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
def readable_errors(target: str) -> Iterator[None]:
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
        with readable_errors(os.fspath(target)):
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        yield draft
    finally:
        with contextlib.suppress(OSError):  # it may never have come to be
            draft.unlink()
