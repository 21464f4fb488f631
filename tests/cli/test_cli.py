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
        (["people.csv", "-o", "r.xyz", *ROLES], 2, "'.xyz', which is not known"),
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
