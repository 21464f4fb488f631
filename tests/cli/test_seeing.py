"""The commands that look: assess, frontier, inspect; and the reports of anonymize and demo."""

from __future__ import annotations

import json

import polars as pl
import pytest

import shoal
from shoal.cli import main

QI = ["--qi", "sex,age,education,income"]
ROLES = [*QI, "--sensitive", "cost"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shoal.datasets.load_cohort(400)[["sex", "age", "education", "income", "cost"]].write_csv("people.csv")
    return tmp_path


@pytest.fixture
def released(folder):
    assert main(["anonymize", "people.csv", "-o", "release.csv", *ROLES, "-q", "--n-releases", "2"]) == 0
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_anonymize_writes_both_reports_with_the_release(folder, capsys):
    command = ["anonymize", "people.csv", "-o", "r.csv", *ROLES, "--n-releases", "2"]
    assert main([*command, "--report", "r.html", "--public-report", "p.html"]) == 0
    assert names(folder) == ["p.html", "people.csv", "r.csv", "r.csv.certificate.json", "r.html"]
    assert "Wrote r.html: open it in a browser." in capsys.readouterr().out
    assert "internal edition" in (folder / "r.html").read_text()
    assert "public edition" in (folder / "p.html").read_text()
    assert (folder / "r.html").stat().st_mode & 0o777 == 0o600


def test_a_limit_on_the_risk(folder, capsys):
    command = ["anonymize", "people.csv", "-o", "r.csv", *ROLES, "--n-releases", "0", "--max-risk", "0.2"]
    assert main([*command, "--method", "permute"]) == 0
    assert json.loads((folder / "r.csv.certificate.json").read_text())["chosen"]["max_risk"] == 0.2
    assert "chosen" in capsys.readouterr().out
    assert main([*command, "-k", "5"]) == 2
    assert "-k 5 and --max-risk 0.2 say the same thing twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["--report", "people.csv"], "nothing may be overwritten"),
        (["--report", "none/r.html"], "does not exist"),
        (["--report", "-"], "cannot go to standard output"),
        (["--report", "same.html", "--public-report", "same.html"], "nothing may be overwritten"),
    ],
)
def test_a_report_that_cannot_be_written_stops_the_release(folder, capsys, given, text):
    assert main(["anonymize", "people.csv", "-o", "r.csv", *ROLES, *given]) == 4
    assert text in capsys.readouterr().err
    assert names(folder) == ["people.csv"]


def test_assess_two_files(released, capsys):
    command = ["assess", "people.csv", "release.csv", *ROLES, "--report", "a.html", "--public-report", "p.html"]
    assert main([*command, "--json", "a.json"]) == 0
    shown = capsys.readouterr().out
    assert "what is risked" in shown
    assert "not aligned" in " ".join(shown.split())
    data = json.loads((released / "a.json").read_text())
    bound = next(score for score in data["privacy"] if score["name"] == "bound")
    assert bound["value"] == 0.1  # of the certificate beside the release
    joint = next(score for score in data["utility"] if score["name"] == "joint_histogram")
    assert joint["value"] == 1.0
    assert joint["written"] == "100 %"
    assert {"a.html", "p.html"} <= set(names(released))


def test_the_shell_and_python_tell_the_same_numbers(released, capsys):
    assert main(["assess", "people.csv", "release.csv", *ROLES, "--json", "-"]) == 0
    shown = json.loads(capsys.readouterr().out)
    found = shoal.assess(
        shoal.io.read_table("people.csv"),
        shoal.io.read_table("release.csv"),
        quasi_identifiers=["sex", "age", "education", "income"],
        sensitive=["cost"],
        certificate=json.loads((released / "release.csv.certificate.json").read_text()),
    )
    assert shown == json.loads(json.dumps(found.to_dict()))


def test_charts_as_files(released, capsys):
    (released / "charts").mkdir()
    command = ["assess", "people.csv", "release.csv", *ROLES, "--charts", "charts", "--chart-format"]
    assert main([*command, "png"]) == 0
    assert "effects.png" in capsys.readouterr().out
    assert (released / "charts" / "dependence.png").read_bytes().startswith(b"\x89PNG")
    assert main([*command, "gif"]) == 2
    assert "--chart-format 'gif' is not known" in capsys.readouterr().err


def test_a_certificate_of_another_file_is_refused(released, capsys):
    pl.read_csv("release.csv").head(300).write_csv("other.csv")
    command = ["assess", "people.csv", "other.csv", *ROLES, "--certificate"]
    assert main([*command, "release.csv.certificate.json"]) == 4
    assert "certificate of another file" in capsys.readouterr().err
    (released / "odd.json").write_text('{"k": 3}')
    assert main([*command, "odd.json"]) == 4
    assert "it has no guarantee" in capsys.readouterr().err
    (released / "odd.json").write_text("[" * 100_000)
    assert main([*command, "odd.json"]) == 4
    assert main([*command, "none.json"]) == 4
    assert main(["assess", "people.csv", "other.csv", *ROLES, "-q"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["assess", "people.csv", "release.csv"], 2, "--qi age,sex,zip"),
        (["assess", "people.csv", "release.csv", "--qi", "agee"], 2, "--qi names 'agee'"),
        (["assess", "people.csv", "none.csv", *QI], 4, "No such file"),
        (["assess", "people.csv", "release.csv", *ROLES, "--target", "costs"], 2, "--target 'costs' is not"),
        (["assess", "people.csv", "release.csv", *ROLES, "--json", "people.csv"], 4, "nothing may be overwritten"),
        (["assess", "people.csv", "release.csv", *ROLES, "--report", "-"], 4, "Only --json can go to standard output"),
        (["assess", "people.csv", "release.csv", *ROLES, "--charts", "none"], 4, "does not exist"),
        (["frontier", "people.csv", *ROLES, "--limit", "7"], 2, "--limit 7"),
        (["frontier", "people.csv", *ROLES, "--ks", "5,a"], 2, "--ks 'a' needs a number"),
        (["frontier", "people.csv", *ROLES, "--ks", "5.5"], 2, "must be whole numbers"),
        (["frontier", "people.csv", *ROLES, "--methods", "gauss"], 2, "--methods names 'gauss'"),
        (["frontier", "people.csv", *ROLES, "--chart", "f.gif"], 2, "must end in .svg, .png, .pdf"),
        (["inspect", "none.csv"], 4, "No such file"),
        (["inspect", "people.csv", "--qi", "agee"], 2, "did you mean 'age'"),
    ],
)
def test_errors_are_one_line_with_a_code_and_leave_nothing_behind(released, capsys, arguments, code, text):
    before = names(released)
    assert main(arguments) == code
    shown = capsys.readouterr()
    assert text in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
    assert names(released) == before


def test_a_frontier_from_the_shell(folder, capsys):
    command = ["frontier", "people.csv", *ROLES, "--ks", "5", "--limit", "0.2", "--methods", "permute,centroid"]
    assert main([*command, "--report", "f.html", "--json", "f.json", "--chart", "f.svg"]) == 0
    shown = capsys.readouterr().out
    assert "* 5" in shown  # the recommended one
    assert "Drew f.svg" in shown
    assert json.loads((folder / "f.json").read_text())["outcomes"][0]["recommended"] is True
    assert "<svg" in (folder / "f.svg").read_text()
    assert "Risk against utility" in (folder / "f.html").read_text()


def test_quiet_says_nothing(released, capsys):
    assert main(["assess", "people.csv", "release.csv", *ROLES, "-q", "--report", "a.html"]) == 0
    assert main(["frontier", "people.csv", *ROLES, "--ks", "5", "--limit", "0.2", "--methods", "permute", "-q"]) == 0
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


def test_inspect_shows_and_suggests_but_applies_nothing(folder, capsys):
    assert main(["inspect", "people.csv", "--json", "i.json"]) == 0
    shown = capsys.readouterr().out
    assert "shoal anonymize people.csv -o release.csv --qi sex,age,education,income --sensitive cost" in shown
    assert "Roles are for you to decide" in shown
    assert names(folder) == ["i.json", "people.csv"]
    data = json.loads((folder / "i.json").read_text())
    assert data["candidates"] == ["sex", "age", "education", "income"]
    assert main(["inspect", "people.csv", "--qi", "sex", "--kind", "sex=nominal", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["candidates"] == ["sex"]


def test_the_demo_writes_its_reports(folder, capsys):
    assert main(["demo", "--out", "d", "--rows", "400", "-k", "5"]) == 0
    assert names(folder / "d") == ["certificate.json", "release.csv", "report-public.html", "report.html"]
    assert "open it in a browser" in capsys.readouterr().out
