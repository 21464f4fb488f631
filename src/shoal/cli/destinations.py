"""Where a command's release goes: a file, a folder to hand over, or a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shoal.cli.sources import Input
from shoal.errors import FileError, InputError
from shoal.io import (
    STANDARD,
    Labels,
    certificate_path_of,
    find_format,
    find_output,
    is_address,
    refuse_output,
    without_password,
    write_release,
    write_release_to_database,
)
from shoal.io.databases import read_name, scheme_of
from shoal.io.databases.addresses import path_of, same_database
from shoal.io.dialect import Dialect
from shoal.io.writing import Beside
from shoal.release import Release

_REPLACED = (
    "An earlier file was replaced. If it was a release of these people and has left the house, the two can be "
    "compared: see 'several releases' in the certificate."
)


@dataclass(frozen=True)
class File:
    """A file and its certificate."""

    path: str
    certificate: str | None
    form: str | None
    escape_formulas: bool
    dialect: Dialect

    def outputs(self) -> list[str | None]:
        """Return the files that will be written."""
        return [self.path, self.certificate]

    def write(self, release: Release, labels: Labels, beside: Sequence[Beside]) -> list[str]:
        """Write everything or nothing, and return what to say of it."""
        again = self.path != STANDARD and os.path.exists(self.path)
        written = write_release(
            release.table,
            release.certificate,
            self.path,
            self.certificate,
            fmt=self.form,
            escape_formulas=self.escape_formulas,
            labels=labels,
            dialect=self.dialect,
            beside=beside,
        )
        digest = f"(SHA-256 {written['file']['sha256'][:12]}...)"
        if self.certificate is None:
            return [f"Wrote the release {digest} without a certificate; --certificate FILE writes one."]
        where = self.certificate if self.path == STANDARD else f"{self.path} and {self.certificate}"
        return [f"Wrote {where} {digest}.", *([_REPLACED] if again else [])]


@dataclass(frozen=True)
class Database:
    """A table of a database, and a file for the certificate."""

    address: str
    table: str
    certificate: str
    replace: bool

    def outputs(self) -> list[str | None]:
        """Return the files that will be written."""
        return [self.certificate]

    def write(self, release: Release, labels: Labels, beside: Sequence[Beside]) -> list[str]:  # noqa: ARG002, as all
        """Write everything or nothing, and return what to say of it."""
        write_release_to_database(
            release.table,
            release.certificate,
            self.address,
            self.table,
            self.certificate,
            replace=self.replace,
            beside=beside,
        )
        return [f"Wrote table {self.table} of {without_password(self.address)} and {self.certificate}."]


@dataclass(frozen=True)
class Bundle:
    """A folder to hand over."""

    folder: str
    form: Any
    escape_formulas: bool

    def outputs(self) -> list[str | None]:
        """Return the files that will be written: none outside the folder."""
        return []

    def write(self, release: Release, labels: Labels, beside: Sequence[Beside]) -> list[str]:
        """Write everything or nothing, and return what to say of it."""
        from shoal.bundle import fingerprint_of, write_bundle

        again = os.path.exists(os.path.join(self.folder, "SHA256SUMS"))
        names = write_bundle(
            release, self.folder, form=self.form, labels=labels, escape_formulas=self.escape_formulas, beside=beside
        )
        said = f"Wrote {', '.join(names)} into {self.folder} (fingerprint {fingerprint_of(self.folder)[:12]}...)."
        return [said, *([_REPLACED] if again else [])]


Destination = File | Database | Bundle


def take_destination(
    options: dict[str, Any],
    source: Input,
    inputs: Sequence[str],
    outputs: Sequence[str | None],
    json: str | None,
) -> Destination:
    """Take what is said of the destination out of the options, and check it before any work is done.

    inputs: files besides the source that must not be overwritten; outputs: what else will be written, the two reports
    first; json: alone of these it may go to standard output.
    """
    output, bundle, to = (options.pop(name, None) for name in ("output", "bundle", "to"))
    into, replace, certificate = (options.pop(name, None) for name in ("into", "replace", "certificate"))
    form, escape = options.pop("output_format", None), options.pop("escape_formulas")
    if sum(place is not None for place in (output, bundle, to)) != 1:
        raise InputError(
            "Say where to write the release: -o release.csv (-o - for standard output), --bundle "
            "folder/, --to database. One of them."
        )
    if to is None and (into is not None or replace):
        raise InputError("--into and --replace go with --to.")
    dialect = _take_dialect(options, output, form)
    inputs = [*source.files(), *inputs]
    found: Destination
    if output is not None:
        find_output(output, form)
        found = File(output, certificate or certificate_path_of(output), form, escape, dialect)
    elif to is not None:
        found = _database(to, into, certificate, bool(replace), form)
        if replace and same_database(source.database, to):
            raise FileError("--replace into the database that is read could overwrite the original; use another one.")
        inputs = [*inputs, *([] if scheme_of(to) == "postgresql" else [path_of(to)])]
    else:
        if certificate is not None:
            raise InputError("--certificate: a bundle has its certificate inside.")
        from shoal.bundle import check_folder
        from shoal.bundle.names import DATA

        chosen = find_format("", form or "csv")
        if chosen not in DATA:
            raise InputError(f"A bundle cannot hold {chosen}; choose from {', '.join(DATA)}.")
        _refuse_inside(os.fspath(check_folder(bundle)), [*inputs, *outputs, json])
        found = Bundle(bundle, chosen, escape)
    named = [path for path in (*found.outputs(), *outputs, None if json == STANDARD else json) if path is not None]
    if STANDARD in outputs:
        raise FileError("Reports and options cannot go to standard output; name files.")
    refuse_output(list(inputs), named)
    for path in outputs[:2]:
        if path is not None and not path.lower().endswith((".html", ".htm")):
            raise FileError(f"The report {path!r} is an HTML page; let its name end in .html.")
    if json == STANDARD and output == STANDARD:
        raise InputError("--json - and -o - both go to standard output; name a file for one of them.")
    return found


def _take_dialect(options: dict[str, Any], output: str | None, form: str | None) -> Dialect:
    """Take what is said of written CSV out of the options."""
    mark, point = options.pop("output_separator", None), options.pop("output_decimal", None)
    dialect = Dialect("\t" if mark in ("tab", "\\t") else mark or ",", decimal=point or ".")
    dialect.check()
    if (mark or point) and (output is None or find_output(output, form) != "csv"):
        raise InputError("--output-separator and --output-decimal go with -o and CSV.")
    return dialect


def _refuse_inside(folder: str, paths: Sequence[str | None]) -> None:
    for path in paths:
        if path not in (None, STANDARD) and os.path.realpath(str(path)).startswith(folder + os.sep):
            raise FileError(f"{path!r} is inside the bundle's folder, which is made anew; choose another place.")


def _database(address: str, table: str | None, certificate: str | None, replace: bool, form: str | None) -> Database:
    if not is_address(address):
        raise InputError("--to must be an address such as postgresql://user@host/name.")
    if table is None:
        raise InputError("--to needs --into: the name of the new table.")
    if form is not None:
        raise InputError("--output-format goes with a file or a bundle, not with a database.")
    scheme_of(address)
    read_name(table)
    beside = str(certificate_path_of(table))
    if certificate is None and os.path.exists(beside) and not replace:
        raise FileError(f"{beside!r} is there already, of another release; name a file with --certificate.")
    return Database(address, table, certificate or beside, replace)
