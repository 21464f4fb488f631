"""The whole study: one call, one command, a page and tables; the same however it is run, and after an interruption."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import markupsafe
import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli import main
from shoal.errors import FileError, InputError
from shoal.studies import experiments
from shoal.studies.claims import judge
from shoal.studies.population import split_population
from shoal.studies.predicting import run_split
from shoal.studies.releasing import PAPER_WAYS, ROUNDED
from shoal.studies.risking import measure_reidentification
from shoal.studies.study import MarketRiskStudy, load_people, market_risk
from shoal.studies.summarising import summarise


@pytest.fixture(scope="module")
def extract(tmp_path_factory):
    """A survey file of 1,600 people who do not exist."""
    cohort = shoal.datasets.load_cohort(1600)
    path = tmp_path_factory.mktemp("data") / "adults.csv"
    cohort.select(
        wtdper="weight",
        age="age",
        female=(pl.col("sex") == "female").cast(pl.Int64),
        educ5=pl.col("education").to_physical(),
        povcat=pl.col("income").to_physical() + 1,
        exp_tot="cost",
    ).write_csv(path)
    return path


@pytest.fixture(scope="module")
def study(people):
    """What the page needs, from a few pieces."""
    rng = np.random.default_rng(0)
    pieces = {}
    for i in range(2):
        split = split_population(people, i, 0)
        pieces[f"split-{i}"] = run_split(people, split, rng, (5, 10, 100), [*PAPER_WAYS, ROUNDED, "permute"])
    for k in (5, 10, 100):
        pieces[f"risk-k{k}"] = measure_reidentification(people, split_population(people, 0, 0), k, 2, 3, rng)
    pieces["wide-4-0"] = experiments.wide(people, 4, 0, 0)
    tables = summarise(pieces)
    return MarketRiskStudy(people.source, people.synthetic, people.n_members, 2, 0, tables, judge(tables))


def test_the_page_has_every_claim_figure_and_table(study):
    page = study.to_html()
    assert len(page) < 2_000_000
    assert "://" not in page.replace("http://www.w3.org", "")  # nothing to load
    for claim in study.claims:
        assert str(markupsafe.escape(claim.said)) in page
    assert page.count("<figure") == 2 + 1 + 5 + 2 + 5  # classes, risk, without shift, areas, area 18
    for area in study.tables["rating_areas"]["area"].unique():
        assert page.count(f">RA {area}</th>") == 2
    assert "a small cohort" in page
    assert "Nobody in these data exists" in page
    assert "Agency for Healthcare Research" in replace(study, synthetic=False).to_html()
    assert "(4.38)" in page  # the paper's bias of area 1
    row = study.tables["rating_areas"].row(0, named=True)
    assert f"{row['r2']:.4f}" in page
    assert "Many quasi-identifiers" in page
    assert "Stronger models" not in page  # no pieces, no table


def test_files_are_written_all_or_none(study, tmp_path):
    names = study.write(tmp_path)
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    table = pl.read_csv(tmp_path / "without_shift.csv")
    assert table["r2"].to_list() == pytest.approx(study.tables["without_shift"]["r2"].to_list(), rel=1e-5)
    claims = pl.read_csv(tmp_path / "claims.csv")
    assert claims["verdict"].to_list() == [claim.verdict for claim in study.claims]
    study.write(tmp_path)  # over itself
    (tmp_path / "area_18.csv").unlink()
    (tmp_path / "area_18.csv").mkdir()
    before = (tmp_path / "index.html").read_bytes()
    with pytest.raises(FileError, match="is a folder"):
        study.write(tmp_path)
    assert (tmp_path / "index.html").read_bytes() == before


def test_it_shows_itself(study):
    assert str(study).startswith("a small cohort; 2 splits, 800 members. The paper's claims: ")
    assert study._repr_html_().count("<tr>") == len(study.claims) + 1


def test_what_is_asked_wrongly():
    with pytest.raises(InputError, match="splits=1 must be a whole number of at least 2"):
        market_risk(splits=1)
    with pytest.raises(InputError, match="jobs=0"):
        market_risk(jobs=0)
    with pytest.raises(InputError, match="seed=-1"):
        market_risk(seed=-1)


def test_a_folder_of_something_else_is_left_alone(tmp_path, extract, capsys):
    (tmp_path / "index.html").write_text("<html>my page</html>")
    assert main(["study", "market-risk", "--data", str(extract), "--out", str(tmp_path), "--splits", "2"]) == 4
    assert "not of this study" in capsys.readouterr().err
    assert (tmp_path / "index.html").read_text() == "<html>my page</html>"


def test_the_people_are_named(extract):
    assert load_people(None).source == "the built-in cohort: 15,000 people who do not exist"
    assert load_people(None).synthetic
    assert not load_people(extract).synthetic
    assert load_people(extract).source == "a table in the form of a MEPS teaching extract (adults.csv): 1,600 people"
    with pytest.raises(FileError, match="no such file"):
        load_people("nowhere.dta")


def test_tasks_of_a_name_do_not_depend_on_the_number_of_splits(people):
    small = {task.name: task for task in experiments.plan(people, 10, 0)}
    large = {task.name: task for task in experiments.plan(people, 100, 0)}
    assert len(large) == len(experiments.plan(people, 100, 0))  # names are unique
    for name in set(small) & set(large):
        assert small[name] == large[name]
    assert sum(name.startswith("split") for name in large) == 100


@pytest.mark.slow
def test_the_command_from_end_to_end(extract, tmp_path):
    """In two processes, interrupted and taken up again, in one process: the same tables."""
    command = [sys.executable, "-m", "shoal", "study", "market-risk", "--data", str(extract), "--splits", "4"]
    out = tmp_path / "study"
    first = subprocess.Popen([*command, "--out", str(out), "--jobs", "2"], stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if len(list(out.glob("parts/*/*.json"))) >= 3:
            break
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=120)[1]
    assert first.returncode == 130
    assert "goes on from there" in said
    assert "teaching extract" in said
    assert not (out / "index.html").exists()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("parts/*/*.json")}
    assert len(kept) >= 3
    again = subprocess.run([*command, "--out", str(out), "--jobs", "2"], capture_output=True, text=True, timeout=600)
    assert again.returncode == 0, again.stderr
    assert "Wrote" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    whole = market_risk(extract, tmp_path / "other", splits=4, jobs=1, progress=False)
    tables = {name: table for name, table in whole.tables.items() if name != "risk_by_class"}
    assert len(tables) == 11
    for name, table in tables.items():
        written = pl.read_csv(out / f"{name}.csv", infer_schema_length=None)
        for column in table.columns:
            if table[column].dtype.is_numeric():
                expected = table[column].to_numpy().astype(float)
                assert written[column].to_numpy().astype(float) == pytest.approx(expected, rel=1e-5, nan_ok=True)
    page = (out / "index.html").read_text(encoding="utf-8")
    assert re.sub(r"\s", "", page) == re.sub(r"\s", "", whole.to_html())
    assert os.stat(out / "index.html").st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_the_page_in_a_browser(study, tmp_path, open_file):
    study.write(tmp_path)
    page = open_file(tmp_path / "index.html")
    assert page.locator("figure svg").count() == 15
    assert all(box["width"] > 100 for box in (f.bounding_box() for f in page.locator("figure svg").all()))
    mark = page.locator('figure svg [aria-label*="area 18, weights"]').first
    mark.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    box = mark.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert page.locator("#tip").is_visible()
    phone = open_file(tmp_path / "index.html", viewport={"width": 390, "height": 800})
    assert phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
