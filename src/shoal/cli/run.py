"""What the commands do, once their options are known."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.anonymizer import anonymize
from shoal.compilation import quiet as keep_quiet
from shoal.datasets import load_cohort
from shoal.errors import FileError, InputError
from shoal.io import certificate_path_of, find_format, read_table, refuse_output, write_release
from shoal.io.formats import STANDARD
from shoal.release import Release

REPORTS = {"internal": "report", "public": "public_report"}  # the option that names each edition's page


def run_anonymize(source: str, options: dict[str, Any], *, config: str | None = None, quiet: bool = False) -> None:
    """Read, release, write, and say what was done."""
    output = options.pop("output", None)
    if output is None:
        raise InputError("Say where to write the release: -o release.csv, or -o - for standard output.")
    certificate = options.pop("certificate", None) or certificate_path_of(output)
    formats = options.pop("input_format", None), options.pop("output_format", None)
    escape = options.pop("escape_formulas")
    reports = {edition: options.pop(name, None) for edition, name in REPORTS.items()}
    find_format(output, formats[1])
    inputs = [source, *(path for path in (config, options.get("vault")) if path is not None)]
    refuse_output(inputs, [path for path in (output, certificate, *reports.values()) if path is not None])
    if not options.get("quasi_identifiers"):
        raise InputError("Say by which columns a person could be recognised: --qi age,sex,zip.")
    with keep_quiet() if quiet else contextlib.nullcontext():
        release = anonymize(read_table(source, formats[0]), progress=False if quiet else None, **options)
        pages = make_reports(release, reports, quiet=quiet)
    written = write_release(
        release.table, release.certificate, output, certificate, fmt=formats[1], escape_formulas=escape, beside=pages
    )
    if not quiet:
        with whatever_happens_to_the_screen():
            console = Console(stderr=output == STANDARD)
            _show(release, console)
            _say_what_was_written(output, certificate, written, console)
            say_pages(pages, console)


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


def run_demo(out: str, rows: int, k: int, *, quiet: bool) -> None:
    """Release the built-in cohort into a folder."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {out!r}: {error.strerror}.") from None
    cohort = load_cohort(rows)
    with keep_quiet() if quiet else contextlib.nullcontext():
        release = anonymize(
            cohort,
            quasi_identifiers=["sex", "age", "education", "income"],
            sensitive=["cost"],
            weight="weight",
            others="drop",
            k=k,
            progress=False if quiet else None,
        )
        pages = make_reports(
            release,
            {"internal": str(folder / "report.html"), "public": str(folder / "report-public.html")},
            quiet=quiet,
        )
    output, certificate = str(folder / "release.csv"), str(folder / "certificate.json")
    written = write_release(release.table, release.certificate, output, certificate, beside=pages)
    if not quiet:
        with whatever_happens_to_the_screen():
            console = Console()
            _show(release, console)
            _show_risk(cohort, release, console)
            _compare(cohort, release.table, console)
            _say_what_was_written(output, certificate, written, console)
            say_pages(pages, console)


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


def _say_what_was_written(output: str, certificate: str | None, written: dict[str, Any], console: Console) -> None:
    digest = f"(SHA-256 {written['file']['sha256'][:12]}...)"
    if certificate is None:
        text = f"Wrote the release {digest} without a certificate; --certificate FILE writes one."
    else:
        where = certificate if output == STANDARD else f"{output} and {certificate}"
        text = f"Wrote {where} {digest}."
    console.print(Text(text), soft_wrap=True)


def _show(release: Release, console: Console) -> None:
    """Print what is guaranteed, what is not, and the columns."""
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for name, text in release.summary():
        facts.add_row(name, Text(text))
    console.print(facts)
    columns = Table("column", "role", "kind", box=None, padding=(0, 2, 0, 0))
    for column in release.schema.columns:
        if column.role not in ("identifier", "unit", "dropped"):
            columns.add_row(Text(column.name), column.role.replace("_", "-"), column.kind or "")
    console.print()
    console.print(columns)


def _show_risk(cohort: pl.DataFrame, release: Release, console: Console) -> None:
    """Print what an attacker who knows everybody's quasi-identifiers can do, before and after."""
    names = [column.name for column in release.schema.quasi_identifiers]
    alone = (cohort.group_by(names).len()["len"] == 1).sum()
    certain = f"{alone:,} of {len(cohort):,}"
    rows = Table("what is risked", "original", "release", box=None, padding=(0, 2, 0, 0))
    rows.columns[1].justify = rows.columns[2].justify = "right"
    rows.add_row("highest chance to pick out a record", "1.00" if alone else "", f"{release.certificate['bound']:.2f}")
    rows.add_row("people picked out with certainty", certain, "0")
    risk = release.certificate["risk"]
    classes = cohort.group_by(names).len()["len"].len()
    rows.add_row("picked out by the nearest match", f"{classes / len(cohort):.2%}", f"{risk['nearest']['mean']:.2%}")
    rows.add_row("picked out by one who knows the clusters", "", f"{risk['optimal']['mean']:.2%}")
    rows.add_row("people whose presence shows: alone in their combination", certain, certain)
    console.print()
    console.print(rows)


def _compare(cohort: pl.DataFrame, released: pl.DataFrame, console: Console) -> None:
    """Print original and release side by side, with a model trained on each and tested on people of neither."""
    fresh = load_cohort(len(cohort), random_state=1)
    rows = Table("what is kept", "original", "release", box=None, padding=(0, 2, 0, 0))
    rows.columns[1].justify = rows.columns[2].justify = "right"
    for name, of in (
        ("mean age", lambda t: f"{t['age'].mean():.2f}"),
        ("women with a college degree", lambda t: f"{_degrees(t):,}"),
        ("correlation of age and income", lambda t: f"{_correlation(t):.4f}"),
        ("weighted mean cost", lambda t: f"{np.average(t['cost'], weights=t['weight']):,.0f}"),
        ("R2 on new people, log cost", lambda t: f"{_score(t, fresh):.3f}"),
    ):
        rows.add_row(name, of(cohort), of(released))
    console.print()
    console.print(rows)


def _degrees(table: pl.DataFrame) -> int:
    return len(table.filter((pl.col("sex") == "female") & pl.col("education").is_in(["college", "graduate"])))


def _correlation(table: pl.DataFrame) -> float:
    return float(np.corrcoef(table["age"].to_numpy(), table["income"].to_physical().to_numpy())[0, 1])


def _score(train: pl.DataFrame, test: pl.DataFrame) -> float:
    """Return R2 on the test table of a linear model for log(1 + cost) fitted on the training table."""

    def design(table: pl.DataFrame) -> Any:
        columns = [
            table["age"],
            table["education"].to_physical(),
            table["income"].to_physical(),
            table["sex"] == "female",
        ]
        return np.column_stack([np.ones(len(table)), *(c.to_numpy().astype(float) for c in columns)])

    weights = np.linalg.lstsq(design(train), np.log1p(train["cost"].to_numpy()), rcond=None)[0]
    truth = np.log1p(test["cost"].to_numpy())
    return float(1 - ((truth - design(test) @ weights) ** 2).mean() / truth.var())
