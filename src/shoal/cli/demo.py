"""What the command `demo` does: the built-in cohort, released, and shown before and after."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shoal.anonymizer import anonymize
from shoal.cli.run import make_reports, release_as_json, say_pages, show_release, whatever_happens_to_the_screen
from shoal.compilation import quiet as keep_quiet
from shoal.datasets import load_cohort
from shoal.errors import FileError
from shoal.io import STANDARD, refuse_output, write_release
from shoal.io.writing import Beside
from shoal.release import Release


def run_demo(out: str, rows: int, k: int, *, json: str | None, quiet: bool) -> None:
    """Release the built-in cohort into a folder."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {out!r}: {error.strerror}.") from None
    if json not in (None, STANDARD):
        refuse_output([], [str(json)])
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
    beside: list[Beside] = [*pages, *([] if json is None else [(json, release_as_json)])]
    written = write_release(release.table, release.certificate, output, certificate, beside=beside)
    if not quiet:
        with whatever_happens_to_the_screen():
            console = Console(stderr=json == STANDARD)
            show_release(release, console)
            _show_risk(cohort, release, console)
            _compare(cohort, release.table, console)
            digest = written["file"]["sha256"][:12]
            console.print(Text(f"Wrote {output} and {certificate} (SHA-256 {digest}...)."), soft_wrap=True)
            say_pages(pages, console)


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
