"""What the commands do, once their options are known."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

from shoal.anonymizer import anonymize
from shoal.compilation import quiet as keep_quiet
from shoal.datasets import load_cohort
from shoal.errors import FileError, InputError
from shoal.io import find_format, read_table, refuse_output, write_release
from shoal.release import Release


def run_anonymize(source: str, options: dict[str, Any], *, quiet: bool) -> None:
    """Read, release, write, and say what was done."""
    output = options.pop("output", None)
    if output is None:
        raise InputError("Say where to write the release: -o release.csv, or -o - for standard output.")
    certificate = options.pop("certificate", None)
    if certificate is None and output != "-":
        certificate = str(Path(output).with_suffix(".certificate.json"))
    formats = options.pop("input_format", None), options.pop("output_format", None)
    escape = options.pop("escape_formulas")
    find_format(output, formats[1])
    refuse_output([source], [output] if certificate is None else [output, certificate])
    if not options.get("quasi_identifiers"):
        raise InputError("Say by which columns a person could be recognised: --qi age,sex,zip.")
    with keep_quiet() if quiet else contextlib.nullcontext():
        release = anonymize(read_table(source, formats[0]), progress=False if quiet else None, **options)
    written = write_release(
        release.table, release.certificate, output, certificate, given=formats[1], escape_formulas=escape
    )
    if not quiet:
        _show(release, Console(stderr=output == "-"))
        if output != "-":
            Console().print(
                f"Wrote {output} and {certificate} (SHA-256 {written['file']['sha256'][:12]}...).", soft_wrap=True
            )


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
    written = write_release(release.table, release.certificate, folder / "release.csv", folder / "certificate.json")
    if not quiet:
        console = Console()
        _show(release, console)
        _compare(cohort, release.table, console)
        console.print(
            f"Wrote {folder / 'release.csv'} and {folder / 'certificate.json'} "
            f"(SHA-256 {written['file']['sha256'][:12]}...).",
            soft_wrap=True,
        )


def _show(release: Release, console: Console) -> None:
    """Print what is guaranteed, what is not, and the columns."""
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column()
    for line in str(release).splitlines():
        facts.add_row(line[:13].strip(), line[13:].strip())
    console.print(facts)
    columns = Table("column", "role", "kind", box=None, padding=(0, 2, 0, 0))
    for column in release.schema.columns:
        if column.role not in ("identifier", "unit", "dropped"):
            columns.add_row(column.name, column.role.replace("_", "-"), column.kind or "")
    console.print()
    console.print(columns)


def _compare(cohort: pl.DataFrame, released: pl.DataFrame, console: Console) -> None:
    """Print original and release side by side, with a model trained on each and tested on people of neither."""
    fresh = load_cohort(len(cohort), random_state=1)
    rows = Table("what was kept", "original", "release", box=None, padding=(0, 2, 0, 0))
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
