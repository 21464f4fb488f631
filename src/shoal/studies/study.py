"""The paper's empirical study, on real data, beside its own numbers; and what it did not have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from shoal.compilation import count_threads
from shoal.datasets.cohort import load_cohort
from shoal.datasets.meps import read_survey
from shoal.errors import FileError, InputError
from shoal.io.serialising import table_to_bytes
from shoal.io.writing import refuse_output, write_files
from shoal.notebook import html_table
from shoal.progress import Progress, Reporter
from shoal.studies.claims import VERDICTS, Claim, judge
from shoal.studies.experiments import plan
from shoal.studies.population import Population, make_population
from shoal.studies.running import make_folder, run_tasks
from shoal.studies.summarising import TABLES, summarise

PAGE = "index.html"


@dataclass(frozen=True, repr=False)
class MarketRiskStudy:
    """The study's results.

    Attributes
    ----------
    source : str
        Which people it is about.
    synthetic : bool
        Whether nobody of them exists.
    members, splits, seed : int
    tables : dict of polars.DataFrame
    claims : list of Claim
        What the paper says, what was measured, whether it holds, and why.
    """

    source: str
    synthetic: bool
    members: int
    splits: int
    seed: int
    tables: dict[str, pl.DataFrame]
    claims: list[Claim]

    def to_html(self) -> str:
        """Return the page: every figure and table, the paper's figures beside ours."""
        from shoal.studies.page import render_study

        return render_study(self)

    def write(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write the page and every table as CSV into a folder, all or nothing; return their names."""
        where = Path(folder)
        tables = {**self.tables, "claims": pl.DataFrame([vars(claim) for claim in self.claims])}
        names = [PAGE, *(f"{name}.csv" for name in tables)]
        refuse_output([], [os.fspath(where / name) for name in names])
        contents = [self.to_html().encode(), *(table_to_bytes(_rounded(table), "csv") for table in tables.values())]
        write_files([(where / name, content) for name, content in zip(names, contents, strict=True)])
        return names

    def to_dict(self) -> dict[str, Any]:
        """Return claims and tables as plain data; what is not a number is None."""
        return {
            "format": "shoal study 1",
            "source": self.source,
            "synthetic": self.synthetic,
            "members": self.members,
            "splits": self.splits,
            "seed": self.seed,
            "claims": [vars(claim) for claim in self.claims],
            "tables": {name: _rounded(table).fill_nan(None).to_dicts() for name, table in self.tables.items()},
        }

    def __str__(self) -> str:
        counts = [sum(claim.verdict == verdict for claim in self.claims) for verdict in VERDICTS]
        told = ", ".join(f"{number} {verdict}" for number, verdict in zip(counts, VERDICTS, strict=True))
        return f"{self.source}; {self.splits} splits, {self.members:,} members. The paper's claims: {told}."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(claim.verdict, claim.where, claim.said, claim.measured) for claim in self.claims]
        return html_table(rows, ("", "where", "the paper says", "measured"))


def market_risk(
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    splits: int = 200,
    seed: int = 0,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
) -> MarketRiskStudy:
    """Run the empirical study of "Distribution-Preserving k-Anonymity", and more.

    Half of a health survey are an insurer's market; the other half, weighted to the margins of California's rating
    areas, are the markets it may enter. What attackers achieve on its members' records is measured, exactly where there
    is a formula; and how well models of cost learnt from released members predict the other markets' enrollees.

    Parameters
    ----------
    data : path, default: the built-in cohort
        A full-year consolidated file of MEPS, as `shoal.datasets.read_meps` reads it.
    out : path, default none
        A folder for the page, the tables as CSV, and ("parts") the pieces by which an interrupted run goes on.
    splits : int, default 200
        An even number: random halvings of the survey, each used both ways round.
    seed : int, default 0
    jobs : int, default: every core
        Results do not depend on it.
    progress : bool or callable, default None
        As in `shoal.anonymize`.

    Returns
    -------
    MarketRiskStudy
    """
    for name, value in (("splits", splits), ("seed", seed)):
        if not isinstance(value, int) or isinstance(value, bool) or value < (2 if name == "splits" else 0):
            raise InputError(f"{name}={value!r} must be a whole number of at least {2 if name == 'splits' else 0}.")
    if jobs is not None and (not isinstance(jobs, int) or isinstance(jobs, bool) or (jobs < 1 and jobs != -1)):
        raise InputError(f"jobs={jobs!r} must be a whole number of at least 1, or -1 for every core.")
    if splits % 2:
        raise InputError(f"splits={splits!r} must be even: every halving of the survey is used both ways round.")
    people = load_people(data)
    folder = None
    if out is not None:
        _refuse_foreign(Path(out), data)
        folder = make_folder(Path(out), people.digest(), str(seed))
    with Reporter(progress) as reporter:
        tasks = plan(people, splits, seed)
        pieces = run_tasks(tasks, people, folder, count_threads(jobs), reporter.stage("study"))
    tables = summarise(pieces)
    study = MarketRiskStudy(people.source, people.synthetic, people.n_members, splits, seed, tables, judge(tables))
    if out is not None:
        study.write(out)
    return study


def load_people(data: str | os.PathLike[str] | None) -> Population:
    """Return the people of a file, or of the built-in cohort."""
    if data is None:
        return make_population(load_cohort(), "the built-in cohort: 15,000 people who do not exist", synthetic=True)
    survey = read_survey(data)
    return make_population(survey.table, survey.source)


def _refuse_foreign(out: Path, data: str | os.PathLike[str] | None) -> None:
    """Refuse a folder that holds the data, or files of our names that are not of a study of ours."""
    if out.exists() and not out.is_dir():
        raise FileError(f"{os.fspath(out)!r} is not a folder; name one.")
    if data is not None and Path(data).resolve().parent == out.resolve():
        raise FileError(
            f"{os.fspath(out)!r} is where the data are; choose another folder, so that nothing is overwritten."
        )
    page = out / PAGE
    ours = page.is_file() and b'content="shoal ' in page.read_bytes()[:4096]
    there = [name for name in (PAGE, *(f"{table}.csv" for table in TABLES)) if (out / name).exists()]
    if there and not ours:
        raise FileError(f"{os.fspath(out)!r} holds {there[0]!r}, which is not of this study; choose another folder.")


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Return a table with numbers to six digits that count."""
    return table.with_columns(pl.col(pl.Float64).round_sig_figs(6))
