from __future__ import annotations

import hashlib
import json
import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import FileError

CANARY = "Canary-7f3a"


def make_release(**options):
    table = pl.DataFrame(
        {
            "name": [f"{CANARY}-name-{i}" for i in range(60)],
            "person": [f"{CANARY}-person-{i}" for i in range(60)],
            "age": [20 + i % 13 for i in range(60)],
            "sex": ["f", "m", "m"] * 20,
            "dropped": [f"{CANARY}-dropped-{i}" for i in range(60)],
            "cost": [float(i * i % 97) for i in range(60)],
        }
    )
    roles = {
        "quasi_identifiers": ["age", "sex"],
        "sensitive": ["cost"],
        "identifiers": ["name"],
        "unit": "person",
        "others": "drop",
        "k": 5,
        "clustering": "greedy",
    }
    return shoal.anonymize(table, **(roles | options))


def test_the_certificate_says_what_it_must():
    certificate = make_release().certificate
    assert certificate["guarantee"] == (
        "From the quasi-identifiers alone, nobody's record can be picked out with a chance above 1/5."
    )
    assert certificate["bound"] == 0.2
    assert certificate["status"] == "for release"
    assert certificate["not_covered"][0]["what"] == "presence"
    assert "original rows, only re-assigned" in certificate["not_covered"][0]["why"]
    named = {item["what"] for item in certificate["not_covered"]}
    assert named >= {
        "sensitive values used by the attacker",
        "insiders",
        "equal rows",
        "several releases",
        "leaked secrets",
    }
    assert certificate["clusters"] == {"number": 12, "smallest": 5, "median": 5.0, "largest": 5}
    assert (certificate["k"], certificate["method"], certificate["recovery"]) == (5, "gaussian", "transport")
    assert certificate["measured"] == {
        "histogram_intersection": 1.0,
        "histogram_intersection_of_people": 1.0,
        "cells": "exact values",
        "smallest_cluster": 5,
    }
    assert len(certificate["made"]) == len("2020-01-01")
    assert certificate["columns"]["quasi_identifiers"] == [
        {"name": "age", "kind": "numeric"},
        {"name": "sex", "kind": "nominal"},
    ]
    assert certificate["columns"]["removed"] == 3
    assert certificate["shoal"] == shoal.__version__
    assert json.loads(json.dumps(certificate)) == certificate


def test_presence_is_worded_by_method():
    def presence(**options):
        return make_release(**options).certificate["not_covered"][0]["why"]

    for options in ({"method": "resample"}, {"recovery": "cdf"}, {"method": "permute"}):
        assert "are original rows" in presence(**options)
    assert "may still betray" in presence(method="centroid")
    table = pl.DataFrame({"x": [i / 7 for i in range(100)]})
    smooth = shoal.anonymize(table, quasi_identifiers=["x"], release_values="smoothed", k=5).certificate
    assert "may still betray" in smooth["not_covered"][0]["why"]
    assert smooth["columns"]["smoothed"] == ["x"]


def test_allowed_leaks_and_likely_identifiers_stand_out():
    table = pl.DataFrame({"age": [20 + i % 40 for i in range(80)], "name": [f"n{i * 7919 % 80}" for i in range(80)]})
    table = table.with_columns(born=2020 - pl.col("age"))
    certificate = shoal.anonymize(
        table, quasi_identifiers=["age"], others="keep", allow_leaks=["born"], k=5
    ).certificate
    named = [item["what"] for item in certificate["not_covered"]]
    assert named[1:3] == ["'age' can be read off 'born'", "'name' looks like an identifier"]


def test_no_seed_label_or_value_in_a_certificate():
    ages = [1000 + 7 * i for i in range(60)]  # numbers that stand nowhere else
    table = pl.DataFrame(
        {"age": ages, "word": [f"{CANARY}{i % 4}" for i in range(60)], "y": [5000 + i * 37 % 60 for i in range(60)]}
    )
    release = shoal.anonymize(table, quasi_identifiers=["age", "word"], sensitive=["y"], random_state=987654321, k=5)
    text = json.dumps(release.certificate)
    assert "987654321" not in text
    assert "label" not in text
    assert CANARY not in text
    assert not any(str(value) in text for value in [*ages, *table["y"]])
    assert "not for release" in text


def test_the_summary_is_readable():
    text = str(make_release())
    assert "nobody's record can be picked out with a chance above 1/5" in text
    assert "60 in 12 clusters of 5 to 5" in text
    assert "1.0000 of the joint histogram kept" in text
    assert repr(make_release()).startswith("guaranteed")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "feather"])
def test_written_files_are_private_hashed_and_hold_no_identifier(tmp_path, ending):
    target = tmp_path / f"release.{ending}"
    written = make_release().write(target)
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == [f"release.{ending}", f"release.{ending}.certificate.json"]
    for path in tmp_path.iterdir():
        assert CANARY.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600
    assert written["file"]["sha256"] == hashlib.sha256(target.read_bytes()).hexdigest()
    assert json.loads((tmp_path / f"release.{ending}.certificate.json").read_text()) == written
    assert written["file"]["bytes"] == target.stat().st_size


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_other_frames_can_be_written_too(tmp_path, kind):
    table = pd.DataFrame({"age": range(20), "zip": [f"0{i % 3}" for i in range(20)]})
    release = shoal.anonymize(
        table if kind == "pandas" else pa.Table.from_pandas(table), quasi_identifiers=["age", "zip"], k=4
    )
    release.write(tmp_path / "r.csv", tmp_path / "c.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c.json", "r.csv"]
    assert pl.read_csv(tmp_path / "r.csv", infer_schema=False)["zip"].str.starts_with("0").all()


def test_canaries_appear_in_no_error(tmp_path):
    table = pl.DataFrame({"age": [f"{CANARY}{i}" for i in range(9)] + [None], "y": [1.0] * 9 + [float("inf")]})
    for options in (
        {"quasi_identifiers": ["age"], "kinds": {"age": "numeric"}},
        {"quasi_identifiers": ["age"], "kinds": {"age": ["a", "b"]}},
        {"quasi_identifiers": ["age", "y"]},
        {"quasi_identifiers": ["y"], "unit": "age"},
    ):
        with pytest.raises(shoal.ShoalError) as error:
            shoal.anonymize(table, **({"others": "drop", "k": 2} | options))
        assert CANARY not in str(error.value)
        assert error.value.__cause__ is None


def test_nothing_is_written_where_the_folder_is_missing(tmp_path):
    with pytest.raises(FileError, match="does not exist; make it first"):
        make_release().write(tmp_path / "missing" / "r.csv")
    with pytest.raises(FileError, match="is a folder"):
        make_release().write(tmp_path / "r.csv", tmp_path)
    with pytest.raises(FileError, match="another output"):
        make_release().write(tmp_path / "r.csv", tmp_path / "r.csv")
    assert list(tmp_path.iterdir()) == []


def test_import_is_cheap_and_compiles_nothing():
    heavy = "{'numba', 'polars', 'sklearn', 'scipy', 'numpy'}"
    code = f"import sys, shoal; assert not {heavy} & set(sys.modules); print(dir(shoal))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "anonymize" in shown
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        shoal.anonymise  # noqa: B018
