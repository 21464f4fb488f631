from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from shoal.cli import main

CANARY = "Canary-51bc"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pl.DataFrame(
        {
            "name": [f"{CANARY}-{i}" for i in range(80)],
            "age": rng.integers(18, 90, 80),
            "sex": rng.choice(["f", "m"], 80),
            "zip": [f"0{z}" for z in rng.integers(10, 14, 80)],
            "cost": rng.integers(0, 5000, 80),
        }
    ).write_csv("people.csv")
    return tmp_path


ROLES = ["--qi", "age,sex,zip", "--sensitive", "cost", "--identifiers", "name"]


def run(*arguments):
    return main(["anonymize", *arguments])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_release_from_the_shell(folder, capsys):
    assert run("people.csv", "-o", "release.csv", *ROLES, "-k", "8") == 0
    assert names(folder) == ["people.csv", "release.csv", "release.csv.certificate.json"]
    before, after = pl.read_csv("people.csv", infer_schema=False), pl.read_csv("release.csv", infer_schema=False)
    assert after.columns == ["age", "sex", "zip", "cost"]
    qi = ["age", "sex", "zip"]
    assert after.select(qi).sort(qi).equals(before.select(qi).sort(qi))
    assert sorted(after["cost"]) == sorted(before["cost"])
    certificate = json.loads((folder / "release.csv.certificate.json").read_text())
    assert certificate["k"] == 8
    assert certificate["columns"]["quasi_identifiers"][2] == {"name": "zip", "kind": "nominal"}
    shown = capsys.readouterr()
    assert "chance above 1/8" in shown.out
    assert "nominal" in shown.out
    assert CANARY not in shown.out + shown.err
    for path in folder.iterdir():
        assert path.name == "people.csv" or CANARY.encode() not in path.read_bytes()


@pytest.mark.parametrize("ending", ["parquet", "arrow", "feather"])
def test_other_formats_and_quiet(folder, capsys, ending):
    pl.read_csv("people.csv", schema_overrides={"zip": pl.String}).write_parquet("people.parquet")
    assert run("people.parquet", "-o", f"r.{ending}", *ROLES, "-q", "--certificate", "c.json") == 0
    read = pl.read_parquet if ending == "parquet" else pl.read_ipc
    assert read(f"r.{ending}").schema["age"] == pl.Int64
    assert (folder / "c.json").exists()
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""


def test_pipes(folder):
    command = [sys.executable, "-m", "shoal", "anonymize", "-", "-o", "-", *ROLES, "-k", "5"]
    done = subprocess.run(command, input=(folder / "people.csv").read_bytes(), capture_output=True, check=True)
    assert pl.read_csv(io.BytesIO(done.stdout)).columns == ["age", "sex", "zip", "cost"]
    assert b"chance above 1/5" in done.stderr
    command += ["--output-format", "parquet", "-q", "--certificate", "c.json"]
    done = subprocess.run(command, input=(folder / "people.csv").read_bytes(), capture_output=True, check=True)
    assert pl.read_parquet(io.BytesIO(done.stdout)).height == 80
    assert done.stderr == b""
    assert (folder / "c.json").exists()


def test_a_configuration_file_and_the_command_line_wins(folder):
    (folder / "shoal.toml").write_text(
        'qi = ["age", "sex", "zip"]\nsensitive = ["cost"]\nidentifiers = ["name"]\nk = 4\n'
        'method = "permute"\noutput = "from_config.csv"\nrelease-values = "observed"\n'
        '[kind]\nzip = ["010", "011", "012", "013"]\n'
    )
    assert run("people.csv", "--config", "shoal.toml", "-k", "6", "--kind", "age=nominal") == 0
    certificate = json.loads((folder / "from_config.csv.certificate.json").read_text())
    assert (certificate["k"], certificate["method"]) == (6, "permute")
    kinds = {c["name"]: c["kind"] for c in certificate["columns"]["quasi_identifiers"]}
    assert kinds == {"age": "nominal", "sex": "nominal", "zip": "ordinal"}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["people.csv", "-o", "r.csv", *ROLES, "-k", "1"], 2, "k=1 must be a whole number of at least 2"),
        (["people.csv", "-o", "r.csv", *ROLES, "-k", "81"], 2, "k=81 needs at least 81 rows"),
        (["people.csv", "-o", "r.csv", "--qi", "agee"], 2, "did you mean 'age'"),
        (["people.csv", "-o", "r.csv", "--qi", "age"], 2, "others drop to leave them out"),
        (["people.csv", "-o", "r.csv", "--qi", "age,age", "--others", "drop"], 2, "'age' is given twice"),
        (["people.csv", "-o", "r.csv"], 2, "--qi age,sex,zip"),
        (["people.csv", *ROLES], 2, "Say where to write"),
        (["people.csv", "-o", "r.csv", *ROLES, "--kind", "zip"], 2, "must be column=kind"),
        (["people.csv", "-o", "r.csv", *ROLES, "--method", "magic"], 2, "--method magic is not known"),
        (["people.csv", "-o", "r.xyz", *ROLES], 2, "'r.xyz' cannot be written; choose .csv"),
        (["people.csv", "-o", "people.csv", *ROLES], 4, "nothing may be overwritten"),
        (["people.csv", "-o", "r.csv", *ROLES, "--certificate", "people.csv"], 4, "nothing may be overwritten"),
        (["people.csv", "-o", "r.csv", *ROLES, "--certificate", "-"], 4, "cannot go to standard output"),
        (["people.csv", "-o", "no/r.csv", *ROLES], 4, "does not exist; make it first"),
        (["none.csv", "-o", "r.csv", *ROLES], 4, "No such file"),
        (["people.csv", "-o", "r.csv", *ROLES, "--config", "none.toml"], 4, "No such file"),
        (["people.csv", "-o", "r.csv", *ROLES, "--frobnicate"], 2, "No such option"),
        (["people.csv", "-o", "r.csv", *ROLES, "-k", "many"], 2, "Invalid value for '-k'"),
        ([], 2, "Name a file, or a database"),
    ],
)
def test_errors_are_one_line_with_a_code_and_leave_nothing_behind(folder, capsys, arguments, code, text):
    before = names(folder)
    assert run(*arguments) == code
    shown = capsys.readouterr().err
    assert text in shown
    assert shown.startswith("shoal: ")
    assert shown.count("\n") == 1
    assert "Traceback" not in shown
    assert CANARY not in shown
    assert names(folder) == before


def test_bad_configurations(folder, capsys):
    for text, expected in (
        ("qusi_identifiers = []", "did you mean 'quasi_identifiers'"),
        ("k = ", "not valid TOML"),
        ('sensitive = "cost"', "sensitive in the configuration must be a list of column names"),
        ('k = "five"', "k in the configuration must be a number"),
        ("k = true", "k in the configuration must be a number"),
        ("qi = ['age']\nkinds = {age = 3}", "must be a kind or a list of levels"),
        ('output = "shoal.toml"', "nothing may be overwritten"),
        ("kinds = 3", "kinds in the configuration must be a table"),
        ('loading = "a"', "loading in the configuration must be a number"),
        ("certificate = 5", "certificate in the configuration must be a text"),
        ('escape-formulas = "no"', "must be true or false"),
    ):
        (folder / "shoal.toml").write_text(text)
        output = [] if "output" in text else ["-o", "r.csv"]
        formats = ["--output-format", "csv"]
        assert run("people.csv", *output, *formats, "--others", "drop", "--config", "shoal.toml") in (2, 4)
        assert expected in capsys.readouterr().err


def test_a_leak_is_refused_with_its_own_code(folder, capsys):
    table = pl.read_csv("people.csv")
    table.with_columns(decade=pl.col("age") // 5).write_csv("telltale.csv")
    assert run("telltale.csv", "-o", "r.csv", *ROLES, "--others", "keep") == 3
    assert "'decade' would be released and gives the quasi-identifier 'age' away" in capsys.readouterr().err
    assert run("telltale.csv", "-o", "r.csv", *ROLES, "--others", "keep", "--allow-leaks", "decade") == 0


def test_an_unforeseen_error_shows_neither_traceback_nor_values(folder, capsys, monkeypatch):
    def explode(*args, **kwargs):
        raise RuntimeError(CANARY)

    monkeypatch.setattr("shoal.cli.run.anonymize", explode)
    assert run("people.csv", "-o", "r.csv", *ROLES) == 70
    shown = capsys.readouterr().err
    where = r"shoal: internal error \(RuntimeError at test_cli.py:\d+\); nothing was written. Please report it.\n"
    assert re.fullmatch(where, shown)
    assert CANARY not in shown
    assert names(folder) == ["people.csv"]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_in_the_middle_leaves_nothing_behind(folder, stop):
    rng = np.random.default_rng(0)
    pl.DataFrame({"a": rng.standard_normal(150_000), "b": rng.standard_normal(150_000)}).write_csv("large.csv")
    before = names(folder)
    command = [sys.executable, "-m", "shoal", "anonymize", "large.csv", "-o", "r.csv", "--qi", "a,b", "-k", "60"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    time.sleep(4.0)  # it is clustering now, or still compiling
    assert process.poll() is None
    process.send_signal(stop)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert shown.endswith("shoal: interrupted; nothing was written.\n")
    assert names(folder) == before


def test_a_column_name_that_looks_like_markup(folder, capsys):
    pl.read_csv("people.csv").rename({"age": "[/bold]age", "cost": "[red]cost"}).write_csv("odd.csv")
    roles = ["--qi", "[/bold]age,sex,zip", "--sensitive", "[red]cost", "--identifiers", "name"]
    assert run("odd.csv", "-o", "r.csv", *roles) == 0
    shown = capsys.readouterr().out
    assert "[/bold]age" in shown
    assert "[red]cost" in shown


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_or_closed_standard_output(folder):
    command = [sys.executable, "-m", "shoal", "anonymize", "people.csv", *ROLES]
    with open("/dev/full", "w") as full:
        shown = subprocess.run([*command, "-o", "r.csv"], stdout=full, stderr=subprocess.PIPE, text=True)
        assert shown.returncode == 0
        assert "the release was written, but its summary could not be shown" in shown.stderr
        assert (folder / "r.csv").exists()
        before = names(folder)
        shown = subprocess.run(
            [*command, "-o", "-", "--certificate", "c.json"], stdout=full, stderr=subprocess.PIPE, text=True
        )
        assert shown.returncode == 4
        assert "Cannot write 'standard output': the disk is full. Nothing was written." in shown.stderr
        assert names(folder) == before
    read, write = os.pipe()
    os.close(read)
    shown = subprocess.run([*command, "-o", "-"], stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert shown.returncode == 4
    assert shown.stderr.startswith("shoal: Cannot write 'standard output': Broken pipe.")


@pytest.mark.parametrize(
    ("redirect", "output", "code"),
    [
        (">&-", "r.csv", 0),
        ("2>&-", "r.csv", 0),
        (">&-", "-", 4),
        ("2>/dev/full", "none/r.csv", 4),
        ("2>&-", "none/r.csv", 4),
    ],
)
def test_closed_streams_do_not_change_the_verdict(folder, redirect, output, code):
    line = f"{sys.executable} -m shoal anonymize people.csv {' '.join(ROLES)} -o {output} {redirect}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert done.returncode == code
    assert "internal error" not in done.stderr
    assert (folder / "r.csv").exists() == (code == 0)


def test_a_screen_without_the_letters(folder):
    pl.read_csv("people.csv").rename({"age": "\u00e4ge"}).write_csv("odd.csv")
    roles = ["--qi", "\u00e4ge,sex,zip", "--sensitive", "cost", "--identifiers", "name"]
    command = [sys.executable, "-m", "shoal", "anonymize", "odd.csv", *roles, "-o", "r.csv"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert (folder / "r.csv").exists()


def test_errors_speak_of_options_not_of_python(folder, capsys):
    run("people.csv", "-o", "r.csv", "--qi", "age,sex,zip", "--identifiers", "name")
    assert "Name them in --qi, --sensitive or --identifiers, or say --others drop" in capsys.readouterr().err
    run("people.csv", "-o", "r.csv", *ROLES, "--kind", "sex=ordinal")
    assert "--kind 'sex=first<second'" in capsys.readouterr().err
    run("people.csv", "-o", "r.csv", *ROLES, "--method", "permute", "--recovery", "rank")
    assert "--recovery rank goes with --method gaussian only" in capsys.readouterr().err
    run("people.csv", "-o", "r.csv", *ROLES, "--loading", "0")
    assert "--loading 0.0 must be a positive number" in capsys.readouterr().err


def test_demo_is_idempotent(folder, capsys):
    for _ in range(2):
        assert main(["demo", "--rows", "600", "--out", "out/demo"]) == 0
        assert names(folder / "out" / "demo") == [
            "certificate.json",
            "release.csv",
            "report-public.html",
            "report.html",
        ]
    shown = capsys.readouterr().out
    assert "what is kept" in shown
    assert "what is risked" in shown
    assert "not covered" in shown
    assert main(["demo", "--rows", "600", "--out", "people.csv"]) == 4
    assert main(["demo", "--rows", "5", "--out", "d"]) == 2


def test_help_teaches_with_an_example_and_version(capsys):
    assert main(["anonymize", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Example: shoal anonymize people.xlsx -o release.xlsx" in shown
    assert "Exit codes" in shown
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shoal 0.")
    assert main([]) == 0
    assert "anonymize" in capsys.readouterr().out


def test_stronger_models_protection_and_a_vault(folder, capsys):
    options = ["--t-closeness", "cost=0.2", "--l-diversity", "cost=entropy:3", "--protect", "cost=top:0.1,round:10"]
    options += ["--vault", "people.vault", "--n-releases", "3"]
    assert run("people.csv", "-o", "one.csv", *ROLES, "-k", "5", *options) == 0
    assert run("people.csv", "-o", "two.csv", *ROLES, "-k", "5", *options) == 0
    assert (folder / "people.vault").stat().st_mode & 0o777 == 0o600
    certificate = json.loads((folder / "two.csv.certificate.json").read_text())
    assert [m["model"] for m in certificate["models"]] == ["entropy l-diversity", "t-closeness"]
    assert certificate["models"][1]["reached"] <= 0.2
    assert certificate["vault"] == {"release": 2, "known": 80, "new": 0}
    assert certificate["protected"][0]["column"] == "cost"
    assert (pl.read_csv("two.csv")["cost"] % 10 == 0).all()
    assert "t-closeness of cost" in " ".join(capsys.readouterr().out.split())


def test_models_in_a_configuration_file(folder):
    (folder / "release.toml").write_text(
        'qi = ["age", "sex", "zip"]\nsensitive = ["cost"]\nidentifiers = ["name"]\nk = 5\nn_releases = 0\n'
        'l_diversity = ["entropy", 3]\n[t_closeness]\ncost = 0.3\n[protect.cost]\nround = 100\n'
    )
    assert run("people.csv", "-o", "release.csv", "--config", "release.toml") == 0
    certificate = json.loads((folder / "release.csv.certificate.json").read_text())
    assert [m["asked"] for m in certificate["models"]] == [3.0, 0.3]
    assert certificate["risk"] == {}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--l-diversity", "lots"], "--l-diversity 'lots' needs a number"),
        (["--l-diversity", "3", "--l-diversity", "cost=2"], "--l-diversity is given for all columns and by column"),
        (["--t-closeness", "cots=0.1"], "--t-closeness names 'cots'"),
        (["--protect", "round:10"], "--protect 'round:10' must be column=step:amount"),
        (["--protect", "cost=round:10", "--protect", "cost=noise:0.1"], "--protect names 'cost' or a step twice"),
        (["--l-diversity", "cost=2", "--l-diversity", "cost=3"], "--l-diversity is given twice for 'cost'"),
        (["--protect", "cost=blur:10"], "--protect cost names 'blur'"),
        (["--vault", "people.csv"], "can be read by others"),
        (["--vault", "release.csv"], "also an input or another output"),
        (["--n-releases", "1"], "--n-releases 1 must be a whole number of at least 2"),
    ],
)
def test_wrong_models_leave_nothing_behind(folder, capsys, options, text):
    assert run("people.csv", "-o", "release.csv", *ROLES, "-k", "5", *options) in (2, 4)
    assert text in capsys.readouterr().err
    assert names(folder) == ["people.csv"]


def test_models_that_cannot_be_met_are_refused_with_their_own_code(folder, capsys):
    assert run("people.csv", "-o", "one.csv", *ROLES, "-k", "5", "--vault", "v", "-q") == 0
    assert run("people.csv", "-o", "two.csv", *ROLES, "-k", "5", "--vault", "v", "--t-closeness", "0.01") == 3
    assert "t-closeness of 0.01 does not hold for column 'cost'" in capsys.readouterr().err
    assert "two.csv" not in names(folder)


# --- files, databases, machines ---------------------------------------------------------------------------------------


def test_how_a_file_was_read_is_said(folder, capsys):
    text = (folder / "people.csv").read_text().replace(",", ";").replace("name;", "näme;")
    (folder / "german.csv").write_bytes(text.encode("cp1252"))
    roles = [*ROLES[:-1], "näme"]
    assert run("german.csv", "-o", "r.csv", *roles, "--n-releases", "0") == 0
    assert "shoal: read german.csv: semicolons, decimal points, Windows-1252." in capsys.readouterr().err
    assert run("german.csv", "-o", "r.csv", *roles, "--n-releases", "0", "-q") == 0
    assert capsys.readouterr().err == ""
    assert run("german.csv", "-o", "r.csv", *roles, "--encoding", "utf-8") == 4
    assert "say its --encoding" in capsys.readouterr().err
    (folder / "tabs.txt").write_text((folder / "people.csv").read_text().replace(",", "\t"))
    assert run("tabs.txt", "-o", "r.csv", *ROLES, "--n-releases", "0", "--separator", "tab") == 0


def test_workbooks_in_and_out(folder, capsys):
    pl.read_csv("people.csv", schema_overrides={"zip": pl.String}).write_excel("people.xlsx")
    assert run("people.xlsx", "-o", "r.xlsx", *ROLES, "--n-releases", "0") == 0
    back = pl.read_excel("r.xlsx", schema_overrides={"zip": pl.String})
    assert sorted(back["zip"]) == sorted(pl.read_excel("people.xlsx", schema_overrides={"zip": pl.String})["zip"])
    assert run("people.xlsx", "-o", "r2.xlsx", *ROLES, "--sheet", "none") == 2
    assert "--sheet 'none' is not in the workbook" in capsys.readouterr().err


def test_labels_travel_from_stata_to_stata(folder):
    import pyreadstat

    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"age": rng.integers(18, 90, 80), "sex": rng.integers(1, 3, 80), "cost": rng.integers(0, 9, 80)}
    )
    labels = {"variable_value_labels": {"sex": {1: "male", 2: "female"}}, "column_labels": {"cost": "cost of care"}}
    pyreadstat.write_dta(frame, "people.dta", **labels)
    assert run("people.dta", "-o", "r.dta", "--qi", "age,sex", "--sensitive", "cost", "--n-releases", "0") == 0
    back, about = pyreadstat.read_dta("r.dta", output_format="polars")
    assert sorted(back["sex"]) == sorted(frame["sex"])
    assert about.variable_value_labels == {"sex": {1: "male", 2: "female"}}
    assert about.column_names_to_labels["cost"] == "cost of care"


@pytest.fixture
def database(folder):
    import sqlite3

    with sqlite3.connect("people.db") as connection:
        connection.execute("create table people (name, age, sex, zip, cost)")
        connection.executemany(
            "insert into people values (?, ?, ?, ?, ?)",
            pl.read_csv("people.csv", schema_overrides={"zip": pl.String}).iter_rows(),
        )
    connection.close()
    return folder


def test_from_a_database_to_a_database(database, capsys):
    source = ["--from", "sqlite:///people.db", "--query", "select * from people"]
    to = ["--to", "sqlite:///out.db", "--into", "release", *ROLES, "--n-releases", "0"]
    assert run(*source, *to) == 0
    assert "Wrote table release of sqlite:///out.db and release.certificate.json." in capsys.readouterr().out
    assert json.loads((database / "release.certificate.json").read_text())["file"] == {
        "database": "sqlite",
        "table": "release",
    }
    before = {path.name: path.read_bytes() for path in database.iterdir()}
    assert run(*source, *to, "--certificate", "other.json") == 4
    assert "'release' is already there; choose another name, or say --replace" in capsys.readouterr().err
    elsewhere = ["--to", "sqlite:///elsewhere.db", *to[2:]]
    assert run(*source, *elsewhere) == 4  # whose certificate would take the place of the first one's
    assert "'release.certificate.json' is there already, of another release" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in database.iterdir()} == before
    assert run(*source, *to, "--replace") == 0
    assert main(["inspect", "--from", "sqlite:///out.db", "--query", "select * from release"]) == 0
    assert "80 records" in " ".join(capsys.readouterr().out.split())
    assert run(*source, "--to", "sqlite:///people.db", "--into", "x", *ROLES, "--certificate", "people.db") == 4


def test_a_certificate_that_cannot_be_written_takes_the_table_with_it(database, monkeypatch):
    real = os.replace

    def fail(source, target):
        if str(target).endswith(".certificate.json"):
            raise PermissionError(13, "Permission denied")
        real(source, target)

    monkeypatch.setattr(os, "replace", fail)
    before = names(database)
    assert run("people.csv", "--to", "sqlite:///out.db", "--into", "release", *ROLES, "--n-releases", "0") == 4
    assert names(database) == before


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["people.csv", "--from", "sqlite:///people.db", "--query", "x", "-o", "r.csv"], 2, "one of the two"),
        (["--from", "sqlite:///people.db", "-o", "r.csv"], 2, "--from and --query go together"),
        (["sqlite:///people.db", "-o", "r.csv"], 2, "write --from sqlite:///people.db --query"),
        (["postgresql://u:Canary-51bc@h/d", "-o", "r.csv"], 2, "write --from postgresql://u@h/d --query"),
        (["--from", "people.db", "--query", "x", "-o", "r.csv"], 2, "must be an address"),
        (["people.csv", "--to", "sqlite:///x.db"], 2, "--to needs --into"),
        (["people.csv", "--to", "x.db", "--into", "t"], 2, "must be an address"),
        (["people.csv", "--to", "mysql://h/d", "--into", "t"], 2, "kind 'mysql' are not known"),
        (["people.csv", "-o", "r.csv", "--into", "t"], 2, "--into and --replace go with --to"),
        (["people.csv", "-o", "r.csv", "--bundle", "out"], 2, "One of them"),
        (["people.csv", "--bundle", "out", "--report", "out/r.html"], 4, "inside the bundle's folder"),
        (["people.csv", "--bundle", "people.csv"], 4, "is a file; name a folder"),
        (["people.csv", "--bundle", "out", "--output-format", "spss"], 2, "A bundle cannot hold spss"),
        (["people.csv", "--bundle", "out", "--certificate", "c.json"], 2, "has its certificate inside"),
        (["people.csv", "-o", "-", "--json", "-"], 2, "both go to standard output"),
        (["people.csv", "-o", "r.sav"], 2, "cannot be written as spss"),
        (["people.csv", "-o", "r.csv", "--save-config", "people.csv"], 4, "nothing may be overwritten"),
        (["people.csv", "-o", "r.csv", "--jobs", "0"], 2, "--jobs must be a whole number from 1"),
    ],
)
def test_places_that_cannot_be(database, capsys, arguments, code, text):
    before = names(database)
    assert run(*arguments, *ROLES) == code
    shown = capsys.readouterr().err
    assert text in shown
    assert CANARY not in shown
    assert names(database) == before


def test_a_bundle_and_its_check(folder, capsys):
    assert run("people.csv", "--bundle", "out", *ROLES, "-k", "4", "--n-releases", "2", "--json", "j.json") == 0
    assert (
        "Wrote data.csv, certificate.json, report.html, dictionary.csv, README.md, SHA256SUMS into out"
        in capsys.readouterr().out
    )
    assert json.loads((folder / "j.json").read_text())["certificate"]["file"]["name"] == "data.csv"
    assert main(["verify", "out", "--json", "v.json"]) == 0
    assert json.loads((folder / "v.json").read_text())["passed"] is True
    assert "fingerprint" in capsys.readouterr().out
    with (folder / "out" / "data.csv").open("a") as file:
        file.write("\n")
    assert main(["verify", "out", "--json", "-", "-q"]) == 3
    shown = capsys.readouterr()
    assert json.loads(shown.out)["passed"] is False
    assert "not as it was written" in shown.err
    assert main(["verify", "."]) == 4


def test_options_are_saved_and_used_again(folder, capsys):
    options = ["--kind", "age=nominal", "--kind", "zip=010<011<012<013", "--protect", "cost=top:0.1,round:10"]
    options += ["--l-diversity", "cost=entropy:2", "--t-closeness", "cost=0.5", "-k", "5", "--method", "permute"]
    assert run("people.csv", "-o", "one.csv", *ROLES, *options, "--save-config", "c.toml") == 0
    one = json.loads((folder / "one.csv.certificate.json").read_text())
    assert run("people.csv", "--config", "c.toml", "-o", "two.csv", "--save-config", "d.toml") == 0
    two = json.loads((folder / "two.csv.certificate.json").read_text())
    for name in ("k", "method", "columns", "protected", "models", "status"):
        assert one[name] == two[name], name
    assert (folder / "c.toml").read_text() == (folder / "d.toml").read_text()
    assert "one.csv" not in (folder / "c.toml").read_text()  # or the next run would overwrite it


def test_no_password_is_saved_or_shown(folder, capsys):
    address = f"postgresql://alice:{CANARY}@127.0.0.1:1/d"
    for place in (
        ["--from", address, "--query", "select 1", "-o", "r.csv"],
        ["people.csv", "--to", address, "--into", "t"],
    ):
        assert run(*place, *ROLES, "--save-config", "c.toml", "--n-releases", "0") == 4
        assert CANARY not in "".join(capsys.readouterr())
        assert names(folder) == ["people.csv"]
    from shoal.cli.config import write_config

    kept = write_config({"database": address, "to": address, "quasi_identifiers": ["a"]})
    assert CANARY not in kept
    assert 'from = "postgresql://alice@127.0.0.1:1/d"' in kept


@pytest.mark.parametrize(
    "command",
    [
        ["demo", "--rows", "300", "--out", "d"],
        ["anonymize", "people.csv", "-o", "r.csv", *ROLES],
        ["inspect", "people.csv"],
    ],
)
def test_json_for_machines(folder, capsys, command):
    assert main([*command, "--json", "-", "-q"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["format"].startswith("shoal ")
    assert shown.err == ""


def test_colours_only_on_a_terminal(folder):
    import pty

    command = [sys.executable, "-m", "shoal", "--help"]
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    assert b"\x1b[" not in subprocess.run(command, capture_output=True, env=plain).stdout
    seen = {}
    for name, more in (("colour", {}), ("none", {"NO_COLOR": "1"})):
        leader, follower = pty.openpty()
        subprocess.run(command, stdout=follower, stderr=follower, env={**plain, "TERM": "xterm-256color", **more})
        os.close(follower)
        data = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            if not piece:
                break
            data += piece
        os.close(leader)
        seen[name] = data
    assert re.search(rb"\x1b\[[0-9;]*3[0-9]", seen["colour"])
    assert not re.search(rb"\x1b\[[0-9;]*3[0-9]", seen["none"])


def complete(line):
    words = line.split(" ")
    env = os.environ | {"_SHOAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    code = "import sys; sys.argv[0] = 'shoal'; from shoal.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout.split()


def test_the_shell_completes(folder):
    assert complete("shoal anon") == ["anonymize"]
    assert "--quasi" not in complete("shoal anonymize --q")
    assert complete("shoal anonymize people.csv --method per") == ["permute"]
    assert complete("shoal anonymize people.csv --qi a") == ["age"]
    assert complete("shoal anonymize people.csv --qi age,z") == ["age,zip"]
    assert complete("shoal anonymize none.csv --qi a") == []
    pl.read_csv("people.csv", schema_overrides={"zip": pl.String}).write_excel("people.xlsx")
    assert complete("shoal anonymize people.xlsx --qi z") == ["zip"]
    assert "--install-completion" in complete("shoal --in")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["anonymise", "x"], "Did you mean 'anonymize'"),
        (["anonymize", "people.csv", "--sensitve", "cost"], "--sensitive"),
        (
            ["anonymize", "people.csv", "-o", "r.csv", "--qi", "age,sexx,zip", "--identifiers", "name"],
            "did you mean 'sex'",
        ),
        (["anonymize", "people.csv", "-o", "r.csv", *ROLES, "--method", "permut"], "did you mean 'permute'"),
        (["anonymize", "people.csv", "-o", "r.csv", *ROLES, "--input-format", "exel"], "did you mean 'excel'"),
    ],
)
def test_near_misses(folder, capsys, arguments, text):
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_number_of_cores_is_known_before_anything_uses_them(folder):
    code = (
        "import sys; from shoal.cli import main\n"
        "assert 'polars' not in sys.modules and 'numba' not in sys.modules\n"
        "code = main(sys.argv[1:])\n"
        "import polars; print(polars.thread_pool_size()); sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "inspect", "people.csv", "-q", "--jobs", "1"]
    env = {name: value for name, value in os.environ.items() if name != "POLARS_MAX_THREADS"}
    assert subprocess.run(command, capture_output=True, text=True, env=env).stdout == "1\n"


def test_results_do_not_depend_on_the_number_of_cores(folder, monkeypatch):
    from shoal import compilation

    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "2"))
    try:
        assert run("people.csv", "-o", "r.csv", *ROLES, "--jobs", "1", "--n-releases", "0") == 0
        assert compilation.count_threads(None) == 1
    finally:
        compilation.limit_threads(None)
    assert compilation.count_threads(None) >= 1


def test_the_original_is_never_replaced(database, capsys):
    before = (database / "people.db").read_bytes()
    source = ["--from", "sqlite:///people.db", "--query", "select * from people"]
    assert run(*source, "--to", "sqlite:///./people.db", "--into", "people", "--replace", *ROLES) == 4
    assert "could overwrite the original" in capsys.readouterr().err
    assert (database / "people.db").read_bytes() == before


def test_json_overwrites_nothing_that_was_read(folder, capsys):
    assert run("people.csv", "--bundle", "out", *ROLES, "-k", "4", "--n-releases", "0", "-q") == 0
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["verify", "out", "--json", "out/data.csv"]) == 4
    assert (
        main(
            [
                "assess",
                "people.csv",
                "out",
                "--qi",
                "age,sex,zip",
                "--sensitive",
                "cost",
                "--json",
                "out/certificate.json",
            ]
        )
        == 4
    )
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert (
        main(["assess", "people.csv", "out", "--qi", "age,sex,zip", "--sensitive", "cost", "--json", "a.json", "-q"])
        == 0
    )
    assert json.loads((folder / "a.json").read_text())["certificate"]["k"] == 4
    assert main(["assess", "people.csv", ".", "--qi", "age"]) == 4


def test_a_second_release_says_so(folder, capsys):
    for expected in (False, True):
        assert run("people.csv", "-o", "r.csv", *ROLES, "--n-releases", "0") == 0
        shown = capsys.readouterr().out
        assert ("An earlier file was replaced" in shown) == expected
        assert "rows have quasi-identifiers of their own" in " ".join(shown.split())


def test_csv_as_a_german_spreadsheet_wants_it(folder, capsys):
    assert (
        run(
            "people.csv", "-o", "r.csv", *ROLES, "--n-releases", "0", "--output-separator", ";", "--output-decimal", ","
        )
        == 0
    )
    assert (folder / "r.csv").read_text().startswith("age;sex;zip;cost\n")
    assert run("people.csv", "-o", "r.parquet", *ROLES, "--output-separator", ";") == 2
    assert "go with -o and CSV" in capsys.readouterr().err


def test_what_inspect_offers_can_be_pasted(database, capsys):
    import shlex

    frame = pl.read_csv("people.csv", schema_overrides={"zip": pl.String})
    frame.write_excel("two.xlsx", worksheet="the people")
    for source in (
        ["--from", "sqlite:///people.db", "--query", "select * from people where cost > 0"],
        ["two.xlsx", "--sheet", "the people"],
    ):
        assert main(["inspect", *source]) == 0
        command = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("shoal anonymize"))
        words = shlex.split(command)[1:]
        assert words[1 : 1 + len(source)] == source
        assert main([*words, "--n-releases", "0", "-k", "5", "--others", "drop"]) in (0, 3)
        capsys.readouterr()


def test_hints(folder, capsys):
    for arguments, text in (
        (["people.csv", "-o", "r.csv", "--qi", "age,", "sex"], "A list has no blanks"),
        (["people.csv", "-o", "people.db", *ROLES], "as a database it is sqlite:///people.db"),
        (["people.csv", "-o", "r.csv", *ROLES, "--report", "r.pdf"], "let its name end in .html"),
    ):
        assert run(*arguments) in (2, 4)
        assert text in capsys.readouterr().err
