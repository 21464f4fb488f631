"""A release as a folder: everything in it, nothing half-made, and every change noticed."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess

import polars as pl
import pytest

import shoal
from shoal.bundle import fingerprint_of, verify_bundle, write_bundle
from shoal.errors import FileError, InputError
from shoal.io import Labels, read_table

CANARY = "Canary-83f1"
FILES = ["README.md", "SHA256SUMS", "certificate.json", "data.csv", "dictionary.csv", "report.html"]


@pytest.fixture(scope="module")
def release():
    cohort = shoal.datasets.load_cohort(300).drop("age_group").with_row_index("name")
    cohort = cohort.with_columns(pl.format(f"{CANARY}-{{}}", "name").alias("name"))
    return shoal.anonymize(
        cohort,
        quasi_identifiers=["sex", "age", "education", "income"],
        sensitive=["cost"],
        identifiers=["name"],
        weight="weight",
        protect={"cost": {"round": 10}},
        k=5,
        method="permute",
    )


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("form", "name"), [("csv", "data.csv"), ("excel", "data.xlsx"), ("stata", "data.dta"), ("parquet", "data.parquet")]
)
def test_everything_is_there_and_checks(release, tmp_path, form, name):
    folder = tmp_path / "out"
    assert (
        sorted(release.write_bundle(folder, form=form))
        == names(folder)
        == sorted({*FILES, name} - ({"data.csv"} - {name}))
    )
    assert folder.stat().st_mode & 0o777 == 0o700
    found = verify_bundle(folder)
    assert found.passed, str(found)
    assert found.fingerprint == fingerprint_of(folder)
    assert len(read_table(str(folder / name))) == 300
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert CANARY.encode() not in path.read_bytes()
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, capture_output=True).returncode == 0
    assert names(tmp_path) == ["out"]


def test_the_dictionary_and_the_readme_say_what_was_done(release, tmp_path):
    labels = Labels({"sex": "=sex", "name": CANARY}, {"sex": {1.0: "male", 2.0: "female"}})
    write_bundle(release, tmp_path / "out", labels=labels)
    rows = {
        row["column"]: row for row in csv.DictReader((tmp_path / "out" / "dictionary.csv").read_text().splitlines())
    }
    assert list(rows) == read_table(str(tmp_path / "out" / "data.csv")).columns
    assert (rows["sex"]["label"], rows["sex"]["values"]) == ("'=sex", "1 = male; 2 = female")
    assert rows["income"]["values"].startswith("poor < ")
    assert "at least 5 people" in rows["age"]["what was done"]
    assert "rounded" in rows["cost"]["what was done"] or "multiples" in rows["cost"]["what was done"]
    text = (tmp_path / "out" / "README.md").read_text()
    assert release.certificate["guarantee"] in text
    for item in release.certificate["not_covered"]:
        assert item["why"] in text
    assert CANARY not in text
    assert "public edition" in (tmp_path / "out" / "report.html").read_text()


def test_the_readme_promises_no_distribution_that_is_not_kept(tmp_path):
    table = shoal.datasets.load_cohort(200)[["sex", "age", "cost"]]
    made = shoal.anonymize(table, quasi_identifiers=["sex", "age"], sensitive=["cost"], k=20, method="centroid")
    made.write_bundle(tmp_path / "out")
    kept = made.certificate["measured"]["histogram_intersection"]
    assert kept < 0.9
    assert f"{kept:.1%} is kept" in (tmp_path / "out" / "README.md").read_text()


def test_rare_levels_are_not_spelt_out(tmp_path):
    table = pl.DataFrame({"town": ["a"] * 39 + [CANARY], "age": list(range(40))})
    shoal.anonymize(table, quasi_identifiers=["town", "age"], k=5, n_releases=0).write_bundle(tmp_path / "out")
    assert CANARY not in (tmp_path / "out" / "dictionary.csv").read_text()
    assert CANARY not in (tmp_path / "out" / "report.html").read_text()


def test_every_change_is_noticed(release, tmp_path):
    folder = tmp_path / "out"
    release.write_bundle(folder)
    for name in names(folder):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before.replace(b"e", b"f", 1))
        if name == "SHA256SUMS":
            (folder / name).write_bytes(before.replace(b"a", b"b", 1))
        assert not verify_bundle(folder).passed, name
        (folder / name).unlink()
        if name == "SHA256SUMS":
            with pytest.raises(FileError, match="not a release of shoal"):
                verify_bundle(folder)
        else:
            assert not verify_bundle(folder).passed
        (folder / name).write_bytes(before)
    (folder / "extra.txt").write_text("x")
    assert "extra.txt does not belong to it" in str(verify_bundle(folder))
    (folder / "extra.txt").unlink()
    assert verify_bundle(folder).passed


def sums(folder):
    lines = [
        f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in names(folder) if n != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_checksums_alone_do_not_make_it_right(release, tmp_path):
    folder = tmp_path / "out"
    release.write_bundle(folder)
    data = (folder / "data.csv").read_bytes()
    lines = data.splitlines(keepends=True)
    (folder / "data.csv").write_bytes(b"".join(lines[:-1]))
    sums(folder)
    found = {check.what: check for check in verify_bundle(folder).checks}
    assert found["files"].passed
    assert not found["certificate"].passed  # which has the checksum of the data
    assert "299 rows, where the certificate says 300" in found["data"].found
    certificate = json.loads((folder / "certificate.json").read_text())
    for broken in ({**certificate, "file": {**certificate["file"], "name": "../../etc/passwd"}}, [], {"guarantee": 1}):
        (folder / "certificate.json").write_text(json.dumps(broken))
        sums(folder)
        assert not verify_bundle(folder).passed
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  ../data.csv\n")
    with pytest.raises(FileError, match="is not complete"):
        verify_bundle(folder)


def test_a_seeded_release_does_not_pass(tmp_path):
    table = shoal.datasets.load_cohort(100)[["sex", "age", "cost"]]
    made = shoal.anonymize(table, quasi_identifiers=["sex", "age"], sensitive=["cost"], random_state=0, n_releases=0)
    made.write_bundle(tmp_path / "out")
    found = verify_bundle(tmp_path / "out")
    assert not found.passed
    assert "not for release" in str(found)


def test_nothing_else_is_overwritten(release, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(FileError, match="holds something that is not a release"):
        release.write_bundle(tmp_path / "mine")
    with pytest.raises(FileError, match="is a file"):
        release.write_bundle(tmp_path / "mine" / "thesis.txt")
    with pytest.raises(FileError, match="does not exist"):
        release.write_bundle(tmp_path / "none" / "out")
    with pytest.raises(InputError, match="cannot hold 'spss'"):
        release.write_bundle(tmp_path / "out", form="spss")
    release.write_bundle(tmp_path / "ours")
    (tmp_path / "ours" / "contract.docx").write_text("x")
    with pytest.raises(FileError, match="holds 'contract.docx' beside an earlier release"):
        release.write_bundle(tmp_path / "ours")
    assert (tmp_path / "ours" / "contract.docx").exists()
    (tmp_path / "empty").mkdir()
    release.write_bundle(tmp_path / "empty")
    first = fingerprint_of(tmp_path / "empty")
    release.write_bundle(tmp_path / "empty", form="parquet")
    assert fingerprint_of(tmp_path / "empty") != first
    assert "data.csv" not in names(tmp_path / "empty")
    assert names(tmp_path) == ["empty", "mine", "ours"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, PermissionError(13, "Permission denied")])
@pytest.mark.parametrize("there", [False, True])
def test_all_or_nothing(release, tmp_path, monkeypatch, error, there):
    if there:
        release.write_bundle(tmp_path / "out")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("out/*")}
    real = os.rename

    def fail(source, target):
        if str(source).endswith(".tmp"):
            raise error
        real(source, target)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else FileError):
        write_bundle(release, tmp_path / "out", beside=[(str(tmp_path / "more.json"), b"{}")])
    assert {path.name: path.read_bytes() for path in tmp_path.glob("out/*")} == before
    assert names(tmp_path) == ["out"] * there


def test_what_is_beside_it_fails_with_it(release, tmp_path):
    with pytest.raises(FileError):
        write_bundle(release, tmp_path / "out", beside=[(str(tmp_path / "none" / "more.json"), b"{}")])
    assert names(tmp_path) == []


def test_hostile_folders_fail_and_do_nothing_worse(release, tmp_path):
    folder = tmp_path / "out"
    release.write_bundle(folder)
    whole = {name: (folder / name).read_bytes() for name in names(folder)}
    for name, content in (
        ("dictionary.csv", whole["dictionary.csv"] + b"\n\n"),
        ("dictionary.csv", b'"' + b"x" * 200_000),
        ("certificate.json", b"[" * 200_000),
        ("certificate.json", whole["certificate.json"].replace(b"for release", b"\\u001b[2Jgone")),
    ):
        (folder / name).write_bytes(content)
        sums(folder)
        found = str(verify_bundle(folder))
        assert "\x1b" not in found
        assert "FAILED" in found or name == "dictionary.csv"
        (folder / name).write_bytes(whole[name])
    sums(folder)
    assert verify_bundle(folder).passed
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        (folder / "README.md").unlink()
        make(folder / "README.md")
        assert "no ordinary file" in str(verify_bundle(folder))
    (folder / "SHA256SUMS").unlink()
    os.mkfifo(folder / "SHA256SUMS")
    with pytest.raises(FileError, match="no readable SHA256SUMS"):
        verify_bundle(folder)
    with pytest.raises(FileError, match="no folder"):
        verify_bundle(tmp_path / "none")


def test_odd_names_and_cells_check_too(tmp_path):
    table = pl.DataFrame({"a\rb": list(range(20)), "c,\nd": ["x\ny"] * 20})
    shoal.anonymize(table, quasi_identifiers=["a\rb"], sensitive=["c,\nd"], k=5, n_releases=0).write_bundle(
        tmp_path / "out"
    )
    assert verify_bundle(tmp_path / "out").passed, str(verify_bundle(tmp_path / "out"))


def test_the_folder_one_is_in(release, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="The folder you are in"):
        release.write_bundle(".")
    assert names(tmp_path) == []
