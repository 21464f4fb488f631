"""Check that a bundle is complete, unchanged, and what its certificate says."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.bundle.names import CERTIFICATE, DATA, DICTIONARY, README, REPORT, SUMS, disarm
from shoal.errors import FileError, ShoalError
from shoal.io import Reading, read_certificate, read_source
from shoal.io.guarding import in_our_words
from shoal.notebook import html_table

_LARGEST_SUMS = 100_000  # bytes
_SUM = re.compile(r"([0-9a-f]{64})  ([^/\\]+)")


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    what: str
    passed: bool
    found: str


@dataclass(frozen=True, repr=False)
class Verification:
    """What checking a bundle found.

    Attributes
    ----------
    folder : str
    checks : list of Check
    fingerprint : str
        SHA-256 of the checksums, and so of everything: to be compared with the sender's.
    """

    folder: str
    checks: list[Check]
    fingerprint: str

    @property
    def passed(self) -> bool:
        """Whether everything is as it was sent."""
        return all(check.passed for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "format": "shoal verification 1",
            "folder": self.folder,
            "passed": self.passed,
            "fingerprint": self.fingerprint,
            "checks": [vars(check) for check in self.checks],
        }

    def __str__(self) -> str:
        lines = [f"{'ok    ' if check.passed else 'FAILED'}  {check.what}: {check.found}" for check in self.checks]
        return "\n".join([*lines, f"fingerprint {self.fingerprint}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [("ok" if check.passed else "failed", check.what, check.found) for check in self.checks]
        return f"<div>{html_table(rows, ('', 'checked', 'found'))}<p>fingerprint {self.fingerprint}</p></div>"


def fingerprint_of(folder: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a bundle's checksums, and so of everything in it."""
    return hashlib.sha256((Path(folder) / SUMS).read_bytes()).hexdigest()


def verify_bundle(folder: str | os.PathLike[str]) -> Verification:
    """Check that a bundle is complete, unchanged, and what its certificate says.

    The guarantee itself cannot be checked from the released table: it needs the original, and the clusters, which stay
    at home.
    """
    where, shown = Path(folder), os.fspath(folder)
    if not where.is_dir():
        raise FileError(f"There is no folder {shown!r}.")
    with in_our_words(f"{shown!r} is not a release of shoal: it has no readable {SUMS}."):
        sums = _read_small(where / SUMS)
        there = sorted(path.name for path in where.iterdir())
    listed = _read_sums(sums, shown)
    checks = [_check_files(where, listed, there)]
    if all((where / name).is_file() and not (where / name).is_symlink() for name in listed):
        checks += [_try("certificate", lambda: _check_certificate(where)), _try("data", lambda: _check_table(where))]
    return Verification(shown, checks, hashlib.sha256(sums).hexdigest())


def _read_small(path: Path) -> bytes:
    if not path.is_file() or path.stat().st_size > _LARGEST_SUMS:
        raise ValueError
    return path.read_bytes()


def data_of(folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Return the paths of a bundle's data and of its certificate."""
    with in_our_words(f"{os.fspath(folder)!r} is not a release of shoal: it has no {CERTIFICATE} that names its data."):
        return os.path.join(folder, _data_name(Path(folder))), os.path.join(folder, CERTIFICATE)


def _try(what: str, check: Callable[[], Check]) -> Check:
    """Return what a check finds; whatever a forger may have put there, it fails and nothing worse."""
    try:
        with in_our_words("it is not what it should be"):
            return check()
    except ShoalError as error:
        return Check(what, passed=False, found=_printable(str(error)))


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _read_sums(sums: bytes, shown: str) -> dict[str, str]:
    lines = sums.decode("utf-8", errors="replace").splitlines()
    matches = [_SUM.fullmatch(line) for line in lines]
    listed = {match[2]: match[1] for match in matches if match is not None}
    if not lines or len(listed) < len(lines) or not {CERTIFICATE, DICTIONARY, README, REPORT} <= set(listed):
        raise FileError(f"{shown!r} is not a release of shoal: its {SUMS} is not complete.")
    return listed


def _check_files(where: Path, listed: Mapping[str, str], there: list[str]) -> Check:
    """Check that every file is as listed, and that there is no other."""
    wrong = []
    for name, digest in listed.items():
        path = where / name
        if path.is_symlink() or not path.is_file():  # a pipe, or a link to something without end
            wrong.append(f"{name} is missing, or no ordinary file")
        elif _digest(path) != digest:
            wrong.append(f"{name} was changed")
    wrong += [f"{name} does not belong to it" for name in there if name not in listed and name != SUMS]
    return Check("files", not wrong, _printable("; ".join(wrong)) or f"all {len(listed)} as they were written")


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def _check_certificate(where: Path) -> Check:
    certificate = read_certificate(os.fspath(where / CERTIFICATE), os.fspath(where / _data_name(where)))
    right = certificate["status"] == "for release"
    return Check("certificate", right, _printable(f"{certificate['status']}; {certificate['guarantee']}"))


def _check_table(where: Path) -> Check:
    """Check that the data are the table that certificate and dictionary describe."""
    certificate = json.loads((where / CERTIFICATE).read_bytes())
    form = certificate["file"]["format"]
    how = Reading(form, separator=",", encoding="utf-8", decimal=".") if form == "csv" else Reading(form)
    table = read_source(os.fspath(where / _data_name(where)), how).table
    columns = certificate["columns"]
    named = (
        {column["name"] for column in columns["quasi_identifiers"]} | set(columns["sensitive"]) | set(columns["kept"])
    )
    named |= {columns["weight"]} - {None}
    rows = list(csv.reader(io.StringIO((where / DICTIONARY).read_bytes().decode(), newline="")))
    described = [row[0] for row in rows[1:] if row]
    wrong = []
    if len(table) != certificate["rows"]:
        wrong.append(f"{len(table):,} rows, where the certificate says {certificate['rows']:,}")
    if set(table.columns) != named:
        wrong.append("other columns than the certificate names")
    if [disarm(name) for name in table.columns] != described:
        wrong.append("other columns than the dictionary describes")
    found = f"{len(table):,} rows of {table.width} columns, as certificate and dictionary say"
    return Check("data", not wrong, "; ".join(wrong) or found)


def _data_name(where: Path) -> str:
    name = json.loads((where / CERTIFICATE).read_bytes())["file"]["name"]
    if name not in DATA.values():
        raise FileError("The certificate names another file than a bundle has.")
    return str(name)
