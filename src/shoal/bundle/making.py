"""Make a bundle: every file of it, or none."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.bundle.dictionary import describe_columns
from shoal.bundle.names import CERTIFICATE, DATA, DICTIONARY, README, REPORT, SUMS
from shoal.errors import FileError, InputError
from shoal.io import Labels
from shoal.io.serialising import as_polars, table_to_bytes
from shoal.io.writing import Beside, certificate_text, readable_errors, write_all, write_files

if TYPE_CHECKING:
    from shoal.release import Release


def write_bundle(
    release: Release,
    folder: str | os.PathLike[str],
    *,
    form: str = "csv",
    labels: Labels | None = None,
    escape_formulas: bool = True,
    beside: Sequence[Beside] = (),
) -> list[str]:
    """Write data, certificate, public report, data dictionary, README and checksums into a folder, all or nothing.

    A folder that is there is replaced if it is an earlier bundle, or empty. beside: further files elsewhere, written
    with it or not at all. Return the names of the files.
    """
    known = next((name for name in DATA if name == form), None)
    if known is None:
        raise InputError(f"A bundle cannot hold {form!r}; choose from {', '.join(DATA)}.")
    target = check_folder(folder)
    labels = Labels() if labels is None else labels
    table = as_polars(release.table)
    name = DATA[known]
    data = table_to_bytes(table, known, escape_formulas=escape_formulas, labels=labels)
    note: dict[str, Any] = {
        "name": name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "format": form,
    }
    if form == "csv":
        note["formulas_escaped"] = escape_formulas
    certificate = {**release.certificate, "file": note}
    files = {
        name: data,
        CERTIFICATE: certificate_text(certificate),
        REPORT: _public_report(release),
        DICTIONARY: describe_columns(release, table, labels),
        README: _readme(certificate, name).encode(),
    }
    files[SUMS] = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {file}\n" for file, content in sorted(files.items())
    ).encode()
    with _new_folder(target) as (draft, put_in_place):
        write_files([(draft / file, content) for file, content in files.items()])
        write_all(beside, certificate, put_in_place)
    return list(files)


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return a folder's path, refusing what holds anything but an earlier bundle."""
    target = Path(os.path.realpath(folder))
    shown = os.fspath(folder)
    if target.exists() and not target.is_dir():
        raise FileError(f"{shown!r} is a file; name a folder.")
    if target == Path(os.path.realpath(os.curdir)):
        raise FileError("The folder you are in cannot be made anew; name another one.")
    if not target.parent.is_dir():
        raise FileError(f"The folder of {shown!r} does not exist; make it first.")
    there = {path.name for path in target.iterdir()} if target.is_dir() else set()
    if there and not {SUMS, CERTIFICATE} <= there:
        raise FileError(f"{shown!r} holds something that is not a release of shoal; choose another folder.")
    foreign = there - {SUMS, CERTIFICATE, REPORT, DICTIONARY, README, *DATA.values()}
    if foreign:
        raise FileError(
            f"{shown!r} holds {min(foreign)!r} beside an earlier release; the folder is made anew, so move that first."
        )
    return target


@contextlib.contextmanager
def _new_folder(target: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """Yield a folder beside the target, which only its owner may enter, and what makes it take the target's place."""
    draft, aside = (target.with_name(f".{target.name}.{secrets.token_hex(6)}.{end}") for end in ("tmp", "before"))

    def put_in_place() -> None:
        with readable_errors(os.fspath(target)):
            if target.exists():
                os.rename(target, aside)
            try:
                os.rename(draft, target)
            except BaseException:
                if aside.exists():
                    os.rename(aside, target)
                raise

    with readable_errors(os.fspath(target)):
        draft.mkdir(mode=0o700)
    try:
        yield draft, put_in_place
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if target.exists():
            shutil.rmtree(aside, ignore_errors=True)


def _public_report(release: Release) -> bytes:
    from shoal.report import render_page

    return render_page(release.assess().to_dict("public")).encode()


def _readme(certificate: Mapping[str, Any], name: str) -> str:
    columns = certificate["columns"]
    qi = ", ".join(" ".join(column["name"].split()) for column in columns["quasi_identifiers"])
    limits = "\n".join(f"- **{item['what']}**: {item['why']}" for item in certificate["not_covered"])
    assumptions = "\n".join(f"- {text}" for text in certificate["assumptions"])
    k, kept, cells = (
        certificate["k"],
        certificate["measured"]["histogram_intersection"],
        certificate["measured"]["cells"],
    )
    return f"""# A release

**{certificate["guarantee"]}**

Status: {certificate["status"]}. Made {certificate["made"]} with shoal {certificate["shoal"]}, {certificate["people"]:,}
people, method {certificate["method"]}{f" ({certificate['recovery']})" if certificate["recovery"] else ""}.

| file | what it is |
|---|---|
| `{name}` | the released table, rows in no order |
| `{DICTIONARY}` | what every column is, and what was done to it |
| `{REPORT}` | what the release risks and keeps, for everybody; open it in a browser |
| `{CERTIFICATE}` | the guarantee and its limits, the settings, what was measured; for programs too |
| `{SUMS}` | checksums of all of these |

What stands in the columns by which a person could be recognised ({qi}) was decided by groups of at least
{k} people: a row's combination need not belong to the person whose other values stand beside it. Of the joint
distribution of these columns {kept:.1%} is kept ({cells}). How well models that learn from the table do, beside the
original, the report says.

## What the guarantee takes for granted

{assumptions}

## What is not guaranteed

{limits}

Nobody may try to find out who somebody in this table is.

## Is this what was sent?

`shoal verify .` in this folder, or `sha256sum -c {SUMS}`. Checksums tell accidents, not forgers: whoever can change the
data can change them too, so ask the sender for the fingerprint that `shoal verify` shows.
"""
