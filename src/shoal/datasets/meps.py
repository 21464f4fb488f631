"""Files of the Medical Expenditure Panel Survey (AHRQ), as they are published: one reader for every year and format."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.datasets.cohort import AGE_GROUPS, EDUCATION, INCOME
from shoal.errors import FileError, InputError

if TYPE_CHECKING:
    import polars as pl

Floats = NDArray[np.float64]

AGE_GROUPS_WITH_CHILDREN = ("under 18", "18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75+")
EDUCATION_IN_SIX = ("below grade 9", "no diploma", "high school", "some college", "college", "graduate")
_EXTRACT = ("wtdper", "age", "female", "educ5", "povcat", "exp_tot")
_OLDEST = 120
_YEARS_OF_SCHOOL = np.array([9, 12, 13, 16, 17])  # from which on the next of the six levels is reached
_RECODED_SCHOOL = np.array([2, 13, 14, 15, 16])  # the same in EDRECODE (2012 to 2015)


@dataclass(frozen=True)
class Survey:
    """People of a survey file, and in a sentence what was read.

    Attributes
    ----------
    table : polars.DataFrame
    source : str
    """

    table: pl.DataFrame
    source: str


def read_meps(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Read demographics, cost and weight from a full-year consolidated file of MEPS, of any year.

    The formats are those in which AHRQ publishes: SAS transport (.ssp, .xpt), Stata (.dta), and CSV (also .gz). Names
    of variables carry the year (TOTEXP05), and follow AHRQ's own programs where they changed over time. People without
    a positive weight, or whose age, sex, education, income or cost is not known, are left out. SAS and Stata files
    need the extra `files`.

    Parameters
    ----------
    path : path

    Returns
    -------
    polars.DataFrame
        sex; age (years); age_group (8: under 18 to 75+, or 18-24 to 85+ in a file of adults); education (6 levels by
        years of school, children by how far they are); income (5 categories relative to the poverty line); weight
        (people represented); cost (total expenditure of the year, TOTEXP). A teaching extract of adults with the
        columns wtdper, age, female, educ5, povcat and exp_tot is read too; its education has 5 levels.
    """
    return read_survey(path).table


def read_survey(path: str | os.PathLike[str]) -> Survey:
    """Read people as `read_meps` does, and say what was read."""
    name = os.fspath(path)
    read, names = _open(name)
    upper = {column.upper(): column for column in names}
    if len(upper) < len(names):
        raise FileError(f"{name!r} has columns whose names differ by capital letters only; rename or drop them.")
    year = _find_year(name, upper)
    columns = [c.upper() for c in _EXTRACT] if year is None else _wanted(name, upper, year)
    found = read([upper[column] for column in columns])
    values = {column: found[upper[column]] for column in columns}
    facts = _read_extract(values) if year is None else _read_full(values, year)
    known = np.all([np.isfinite(fact) & (fact >= 0) for fact in facts.values()], axis=0) & (facts["weight"] > 0)
    if not known.any():
        raise FileError(f"{name!r} has nobody whose age, sex, education, income, cost and weight are all known.")
    people = {column: fact[known] for column, fact in facts.items()}
    _check_codes(name, people, six=year is not None)
    left_out = len(known) - int(known.sum())
    rest = f"; {left_out:,} without a weight or an answer left out" if left_out else ""
    what = f"MEPS {year}" if year is not None else "a table in the form of a MEPS teaching extract"
    return Survey(
        _make_table(people, six=year is not None), f"{what} ({Path(name).name}): {int(known.sum()):,} people{rest}"
    )


def _find_year(name: str, upper: dict[str, str]) -> int | None:
    """Return the year of a full-year file, or None for the teaching extract."""
    years = {int(match[1]) for column in upper if (match := re.fullmatch(r"TOTEXP(\d\d)", column))}
    if len(years) == 1:
        short = years.pop()
        return 1900 + short if short >= 90 else 2000 + short
    if all(column.upper() in upper for column in _EXTRACT):
        return None
    raise FileError(
        f"{name!r} is not a full-year consolidated file of MEPS: it has {len(years) or 'no'} columns TOTEXPyy, where "
        f"yy is the year; nor does it have the columns {', '.join(_EXTRACT)} of the teaching extract."
    )


def _wanted(name: str, upper: dict[str, str], year: int) -> list[str]:
    """Return the columns of that year, by what AHRQ called them."""
    yy = f"{year % 100:02d}"
    choices = {
        "sex": [["SEX"]],
        "age": [["AGELAST"], [f"AGE{yy}X", "AGE42X", "AGE31X"], [f"AGE{yy}X", "AGE2X", "AGE1X"]],
        "education": [["EDUCYR"], ["EDUCYEAR"], [f"EDUCYR{yy}"], ["EDRECODE"]],
        "income": [[f"POVCAT{yy}"]],
        "weight": [[f"PERWT{yy}F"], [f"WTDPER{yy}"]],
        "cost": [[f"TOTEXP{yy}"]],
    }
    found = []
    for what, ways in choices.items():
        way = next((way for way in ways if all(column in upper for column in way)), None)
        if way is None:
            tried = "; ".join(" and ".join(way) for way in ways)
            raise FileError(f"{name!r} has no {what} of {year}; looked for {tried}.")
        found += way
    return found


def _read_full(values: dict[str, Floats], year: int) -> dict[str, Floats]:
    """Return what is needed from a full-year file; what is not known is negative or NaN."""
    yy = f"{year % 100:02d}"
    age = np.full(len(values["SEX"]), np.nan)
    for column in [c for c in values if c == "AGELAST" or re.fullmatch(r"AGE\w+X", c)]:  # the latest that is known
        age = np.where(np.isnan(age) & (values[column] >= 0), values[column], age)
    recoded = "EDRECODE" in values
    school = values["EDRECODE" if recoded else next(c for c in values if c.startswith("EDUC"))]
    school = np.where((school == -1) & (age < 18), 0.0, school)  # not asked of small children
    level = np.digitize(school, _RECODED_SCHOOL if recoded else _YEARS_OF_SCHOOL).astype(np.float64)
    return {
        "female": values["SEX"] - 1,
        "age": age,
        "education": np.where(school >= 0, level, np.nan),
        "income": values[f"POVCAT{yy}"] - 1,
        "weight": values.get(f"PERWT{yy}F", values.get(f"WTDPER{yy}", np.empty(0))),
        "cost": values[f"TOTEXP{yy}"],
    }


def _read_extract(values: dict[str, Floats]) -> dict[str, Floats]:
    return {
        "female": values["FEMALE"],
        "age": values["AGE"],
        "education": values["EDUC5"],
        "income": values["POVCAT"] - 1,
        "weight": values["WTDPER"],
        "cost": values["EXP_TOT"],
    }


def _check_codes(name: str, people: dict[str, Floats], *, six: bool) -> None:
    """Refuse codes that the survey does not use."""
    if people["age"].max() > _OLDEST:
        raise FileError(f"{name!r} has ages above {_OLDEST}; code unknown ones as missing.")
    for what, most in (("female", 1), ("education", 5 if six else 4), ("income", 4)):
        codes = people[what]
        if (codes > most).any() or (codes != np.rint(codes)).any():
            raise FileError(f"{name!r} has codes of {'sex' if what == 'female' else what} that MEPS does not use.")


def _make_table(people: dict[str, Floats], *, six: bool) -> pl.DataFrame:
    import polars as pl

    age = people["age"].astype(np.int64)
    children = bool((age < 18).any())
    groups = AGE_GROUPS_WITH_CHILDREN if children else AGE_GROUPS
    edges = [18, 25, 35, 45, 55, 65, 75] if children else [25, 35, 45, 55, 65, 75, 85]
    schools = EDUCATION_IN_SIX if six else EDUCATION

    def levels(names: Sequence[str], codes: NDArray[Any]) -> pl.Series:
        return pl.Series(np.array(names)[codes.astype(np.int64)], dtype=pl.Enum(names))

    return pl.DataFrame(
        {
            "sex": np.array(["male", "female"])[people["female"].astype(np.int64)],
            "age": age,
            "age_group": levels(groups, np.digitize(age, edges)),
            "education": levels(schools, people["education"]),
            "income": levels(INCOME, people["income"]),
            "weight": people["weight"],
            "cost": people["cost"],
        }
    )


def _open(name: str) -> tuple[Callable[[list[str]], dict[str, Floats]], list[str]]:
    """Return a function that reads columns of a file as numbers, and the names of all its columns."""
    if not os.path.isfile(name):
        raise FileError(f"Cannot read {name!r}: there is no such file.")
    lower = name.lower()
    if lower.endswith((".csv", ".csv.gz")):
        return _open_csv(name)
    if lower.endswith((".ssp", ".xpt", ".dta")):
        return _open_with_pyreadstat(name, stata=lower.endswith(".dta"))
    raise InputError(f"{Path(name).name!r} must end in .ssp, .xpt, .dta, .csv or .csv.gz.")


def _open_csv(name: str) -> tuple[Callable[[list[str]], dict[str, Floats]], list[str]]:
    import polars as pl

    def read(columns: list[str]) -> dict[str, Floats]:
        with _readable(name):
            frame = pl.read_csv(name, columns=columns, infer_schema=False, encoding="utf8-lossy")
        return {c: frame[c].str.strip_chars().cast(pl.Float64, strict=False).to_numpy().copy() for c in columns}

    with _readable(name):
        return read, pl.read_csv(name, n_rows=0, infer_schema=False, encoding="utf8-lossy").columns


def _open_with_pyreadstat(name: str, *, stata: bool) -> tuple[Callable[[list[str]], dict[str, Floats]], list[str]]:
    try:
        import pyreadstat
    except ImportError:
        raise InputError(
            f"Reading {Path(name).name!r} needs pyreadstat: pip install '.[files]' in shoal's folder."
        ) from None
    reader = pyreadstat.read_dta if stata else pyreadstat.read_xport

    def read(columns: list[str]) -> dict[str, Floats]:
        with _readable(name):
            found, _ = reader(name, usecols=columns, output_format="dict")
        try:
            return {c: np.array([np.nan if v is None else v for v in found[c]], dtype=np.float64) for c in columns}
        except (TypeError, ValueError):
            raise FileError(f"{name!r} has texts where MEPS has numbers.") from None

    with _readable(name):
        return read, list(reader(name, metadataonly=True)[1].column_names)


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn a reader's errors, whose words may quote cells, into one line."""
    try:
        yield
    except Exception:  # noqa: BLE001, whatever goes wrong in a file that is damaged
        raise FileError(f"Cannot read {name!r}: it is damaged, or not what its ending says.") from None
