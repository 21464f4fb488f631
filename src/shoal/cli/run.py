"""What the commands `anonymize` and `verify` do, once their options are known."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.anonymizer import anonymize
from shoal.cli.config import write_config
from shoal.cli.destinations import take_destination
from shoal.cli.sources import Input
from shoal.compilation import quiet as keep_quiet
from shoal.errors import CheckError, FileError, InputError
from shoal.io import STANDARD, refuse_output
from shoal.io.serialising import as_polars
from shoal.io.writing import Beside, write_all
from shoal.progress import waiting
from shoal.release import Release

REPORTS = {"internal": "report", "public": "public_report"}  # the option that names each edition's page
_SOURCE = ("input_format", "separator", "encoding", "decimal", "sheet", "database", "query")


def run_anonymize(
    path: str | None,
    options: dict[str, Any],
    *,
    config: str | None = None,
    save_config: str | None = None,
    quiet: bool = False,
) -> None:
    """Read, release, write, and say what was done."""
    kept = None if save_config is None else write_config(options)
    source = Input.of(path, *(options.pop(name, None) for name in _SOURCE))
    reports = {edition: options.pop(name, None) for edition, name in REPORTS.items()}
    json = options.pop("json", None)
    inputs = [path for path in (config, options.get("vault")) if path is not None]
    destination = take_destination(options, source, inputs, [*reports.values(), save_config], json)
    if not options.get("quasi_identifiers"):
        raise InputError("Say by which columns a person could be recognised: --qi age,sex,zip.")
    with keep_quiet() if quiet else contextlib.nullcontext():
        read = source.read(quiet=quiet)
        release = anonymize(read.table, progress=False if quiet else None, **options)
        pages = make_reports(release, reports, quiet=quiet)
        beside: list[Beside] = [*pages]
        if kept is not None:
            beside.append((str(save_config), kept.encode(errors="backslashreplace")))
        if json is not None:
            beside.append((json, release_as_json))
        with waiting("writing", shown=not quiet):
            said = destination.write(release, read.labels, beside)
    if not quiet:
        with whatever_happens_to_the_screen():
            console = Console(stderr=STANDARD in (json, *destination.outputs()))
            show_release(release, console)
            for text in said:
                console.print(Text(text), soft_wrap=True)
            say_pages(pages, console)


def run_verify(folder: str, *, json: str | None, quiet: bool) -> None:
    """Check a bundle, and fail if it is not what it says."""
    from shoal.bundle import verify_bundle
    from shoal.report import json_text

    if json not in (None, STANDARD):
        refuse_output([], [str(json)])
        if os.path.realpath(str(json)).startswith(os.path.realpath(folder) + os.sep):
            raise FileError(f"{json!r} is inside the folder that is checked; choose another place.")
    with waiting("reading", shown=not quiet):
        found = verify_bundle(folder)
    if json is not None:
        write_all([(json, json_text(found.to_dict()).encode())], {})
    if not quiet:
        with whatever_happens_to_the_screen("the bundle was checked"):
            console = Console(stderr=json == STANDARD)
            for check in found.checks:
                mark = Text("ok    ", style="green") if check.passed else Text("FAILED", style="red")
                console.print(mark, Text(f" {check.what}: {check.found}"), soft_wrap=True)
            console.print(Text(f"fingerprint {found.fingerprint}"), soft_wrap=True)
    if not found.passed:
        wrong = "; ".join(check.what for check in found.checks if not check.passed)
        raise CheckError(f"{folder!r} is not as it was written: {wrong}. Do not use it; ask for it again.")


def release_as_json(certificate: Mapping[str, Any]) -> bytes:
    """Return what a machine wants to know of a release: its certificate as written, which names its file."""
    from shoal.report import json_text

    return json_text({"format": "shoal release 1", "certificate": dict(certificate)}).encode()


def make_reports(release: Release, paths: Mapping[str, str | None], *, quiet: bool) -> list[tuple[str, bytes]]:
    """Return the pages of a release that were asked for, by edition, as files to be written with it."""
    if not any(paths.values()):
        return []
    from shoal.report import render_page

    assessment = release.assess(progress=False if quiet else None)
    return [(path, render_page(assessment.to_dict(edition)).encode()) for edition, path in paths.items() if path]


def say_pages(pages: Sequence[tuple[str, bytes]], console: Console) -> None:
    """Print where reports went."""
    for path, _ in pages:
        console.print(Text(f"Wrote {path}: open it in a browser."), soft_wrap=True)


@contextlib.contextmanager
def whatever_happens_to_the_screen(done: str = "the release was written") -> Iterator[None]:
    """Go on when nothing can be shown: by now the files are written, and the exit code must say so."""
    try:
        yield
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # full, closed, without the letters, or not there at all
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(f"shoal: {done}, but its summary could not be shown.\n")
            sys.stderr.flush()
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, Python flushes it once more at the end


def _say_presence(release: Release) -> list[tuple[str, str]]:
    """Return for the house how many rows have quasi-identifiers that no other has, where these are original ones."""
    c = release.certificate
    if c["method"] == "centroid" or c["columns"]["smoothed"] or c["people"] != c["rows"]:
        return []
    names = [column["name"] for column in c["columns"]["quasi_identifiers"]]
    alone = int((as_polars(release.table).group_by(names).len()["len"] == 1).sum())
    said = f"{alone:,} of {c['rows']:,} rows have quasi-identifiers of their own: they show that such a person is there"
    return [("presence", said)]


def show_release(release: Release, console: Console) -> None:
    """Print what is guaranteed, what is not, and the columns."""
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for name, text in [*release.summary(), *_say_presence(release)]:
        facts.add_row(name, Text(text))
    console.print(facts)
    columns = Table("column", "role", "kind", box=None, padding=(0, 2, 0, 0))
    for column in release.schema.columns:
        if column.role not in ("identifier", "unit", "dropped"):
            columns.add_row(Text(column.name), column.role.replace("_", "-"), column.kind or "")
    console.print()
    console.print(columns)
