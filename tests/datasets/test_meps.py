"""Survey files as AHRQ publishes them: every format and era gives the same people; what is not one is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from shoal.datasets import read_meps
from shoal.datasets.meps import read_survey
from shoal.errors import FileError, InputError

# Six people: an adult, a small child, a teenager, one without weight, one whose schooling is not known, an old one
# whose age was only asked in the second round.
SCHOOL = np.array([16.0, -1.0, 9.0, 12.0, -8.0, 17.0])
AGE = np.array([40.0, 3.0, 16.0, 50.0, 60.0, -1.0])
WEIGHT = np.array([5000.5, 1000.0, 2000.0, 0.0, 100.0, 3000.0])


def full_year(year):
    """A file of that year, by the names that the variables had then."""
    yy = f"{year % 100:02d}"
    school = {1996: "EDUCYR96", 1998: "EDUCYR98", 2004: "EDUCYEAR", 2005: "EDUCYR", 2013: "EDRECODE", 2019: "EDUCYR"}
    second, first = ("AGE2X", "AGE1X") if year == 1996 else ("AGE42X", "AGE31X")
    columns = {
        "DUPERSID": np.arange(6.0),
        "SEX": np.array([1.0, 2, 2, 1, 2, 1]),
        first: np.array([39.0, 2, 15, 49, 59, 79]),
        second: np.array([40.0, 3, 16, 50, 60, 80]),
        f"AGE{yy}X": AGE,
        school[year]: np.array([15.0, -1, 2, 13, -8, 16]) if year == 2013 else SCHOOL,
        f"POVCAT{yy}": np.array([5.0, 1, 2, 3, 4, 4]),
        f"TOTEXP{yy}": np.array([120.0, 0, 33, 44, 55, 66_000]),
        f"WTDPER{yy}" if year <= 1998 else f"PERWT{yy}F": WEIGHT,
    }
    return pd.DataFrame(columns)


def write(frame, path):
    if path.suffix in (".ssp", ".xpt"):
        pyreadstat.write_xport(frame, str(path), file_format_version=5, table_name="H97")
    elif path.suffix == ".dta":
        pyreadstat.write_dta(frame, str(path))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("year", [1996, 1998, 2004, 2005, 2013, 2019])
def test_every_era(tmp_path, year):
    table = read_meps(write(full_year(year), tmp_path / "h.csv"))
    assert table["sex"].to_list() == ["male", "female", "female", "male"]
    assert table["age"].to_list() == [40, 3, 16, 80]
    assert table["age_group"].to_list() == ["35-44", "under 18", "under 18", "75+"]
    assert table["education"].to_list() == ["college", "below grade 9", "no diploma", "graduate"]
    assert table["income"].to_list() == ["high", "poor", "near poor", "middle"]
    assert table["cost"].to_list() == [120.0, 0.0, 33.0, 66_000.0]
    assert table["weight"].to_list() == [5000.5, 1000.0, 2000.0, 3000.0]
    assert len(table["education"].dtype.categories) == 6
    assert len(table["age_group"].dtype.categories) == 8


@pytest.mark.parametrize("name", ["h97.ssp", "h97.xpt", "h97.dta", "h97.csv", "h97.csv.gz"])
def test_every_format(tmp_path, name):
    survey = read_survey(write(full_year(2005), tmp_path / name))
    assert survey.table.equals(read_meps(write(full_year(2005), tmp_path / "other.csv")))
    assert survey.source == f"MEPS 2005 ({name}): 4 people; 2 without a weight or an answer left out"


def test_the_last_known_age_and_names_in_small_letters(tmp_path):
    frame = full_year(2005)
    frame["AGELAST"] = [41.0, 4, 17, 51, 61, 85]
    frame.columns = [name.lower() for name in frame.columns]
    assert read_meps(write(frame, tmp_path / "h.dta"))["age"].to_list() == [41, 4, 17, 85]


@pytest.mark.parametrize(
    ("years", "level"),
    [(0, 0), (8, 0), (9, 1), (11, 1), (12, 2), (13, 3), (15, 3), (16, 4), (17, 5)],
)
def test_years_of_school(tmp_path, years, level):
    frame = full_year(2005).assign(EDUCYR=years, AGE05X=30.0, PERWT05F=1.0)
    table = read_meps(write(frame, tmp_path / "h.csv"))
    schools = ["below grade 9", "no diploma", "high school", "some college", "college", "graduate"]
    assert set(table["education"]) == {schools[level]}


def test_the_extract(meps, meps_path):
    survey = read_survey(meps_path)
    assert "19,386 people" in survey.source
    assert survey.table["cost"].sum() == pytest.approx(meps["exp_tot"].sum())
    assert survey.table["weight"].to_numpy() == pytest.approx(meps["wtdper"].to_numpy())
    assert [len(survey.table[c].dtype.categories) for c in ("age_group", "education", "income")] == [8, 5, 5]
    assert (survey.table["age_group"].to_physical().to_numpy() == np.digitize(meps["age"], range(25, 95, 10))).all()
    assert ((survey.table["sex"] == "female").to_numpy() == (meps["female"] == 1).to_numpy()).all()


def test_what_is_not_such_a_file(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_meps(tmp_path / "none.ssp")
    (tmp_path / "h.txt").write_text("x")
    with pytest.raises(InputError, match="must end in"):
        read_meps(tmp_path / "h.txt")
    for name in ("h.ssp", "h.dta", "h.csv.gz"):
        (tmp_path / name).write_bytes(b"\x1f\x8bCanary-51bc,no such thing\x00\xff" * 40)
        with pytest.raises(FileError, match="damaged") as error:
            read_meps(tmp_path / name)
        assert "Canary" not in str(error.value)
    whole = write(full_year(2005), tmp_path / "whole.dta").read_bytes()
    (tmp_path / "cut.dta").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileError, match="damaged"):
        read_meps(tmp_path / "cut.dta")


def test_files_of_something_else(tmp_path):
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(FileError, match="no columns TOTEXPyy"):
        read_meps(tmp_path / "a.csv")
    both = full_year(2005).assign(TOTEXP04=0.0)
    with pytest.raises(FileError, match="2 columns TOTEXPyy"):
        read_meps(write(both, tmp_path / "both.csv"))
    with pytest.raises(FileError, match="no income of 2005; looked for POVCAT05"):
        read_meps(write(full_year(2005).drop(columns="POVCAT05"), tmp_path / "less.csv"))
    with pytest.raises(FileError, match="nobody whose age"):
        read_meps(write(full_year(2005).assign(PERWT05F=0.0), tmp_path / "nobody.csv"))
    with pytest.raises(FileError, match="ages above 120"):
        read_meps(write(full_year(2005).assign(AGE05X=999.0), tmp_path / "old.csv"))
    with pytest.raises(FileError, match="capital letters only"):
        read_meps(write(full_year(2005).assign(sex=1.0), tmp_path / "twice.csv"))
    with pytest.raises(FileError, match="codes of sex"):
        read_meps(write(full_year(2005).assign(SEX=3.0), tmp_path / "codes.csv"))
