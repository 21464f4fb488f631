"""The vault: a private file that keeps who hides with whom, so that a later release of the same people reuses it.

Two releases with different clusters can be intersected: {1, 2}, {3, 4} in one and {1, 3}, {2, 4} in the other single
everybody out. With the same clusters they cannot, whatever columns are corrected or added. People may be added, and
hide among themselves; nobody may leave, as the records that vanish would be theirs.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import stat
import zipfile
import zlib
from dataclasses import dataclass, replace
from numbers import Real
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import find_missing
from shoal.errors import FileError, InputError
from shoal.people import People
from shoal.schema import Schema

Index = NDArray[np.int64]
_FORMAT = 1


@dataclass(frozen=True)
class Vault:
    """Clusters by person: keyed hashes of who they are, never the identifiers themselves.

    by: the column that tells people apart, or None; then rows are recognised by their place and their
    quasi-identifiers `columns`, which must not have changed.
    """

    salt: bytes
    by: str | None
    columns: tuple[str, ...]
    keys: NDArray[np.uint64]
    labels: Index
    releases: int
    digest: bytes | None = None  # of the file as it was read, None if there was none

    @classmethod
    def new(cls, frame: nw.DataFrame[Any], schema: Schema) -> Vault:
        """Return an empty vault for the people of a table."""
        unit = schema.name("unit")
        candidates = [unit] if unit is not None else schema.names("identifier")
        by = next((name for name in candidates if not find_missing(frame[name]).any()), None)
        columns = () if by is not None else tuple(c.name for c in schema.quasi_identifiers)
        return cls(secrets.token_bytes(32), by, columns, np.empty((0, 2), dtype=np.uint64), np.empty(0, np.int64), 0)

    def recall(self, frame: nw.DataFrame[Any], people: People, k: int) -> tuple[Index, NDArray[np.uint64]]:
        """Return the cluster of every person, -1 for whoever is new, and the persons' keys."""
        keys = self._keys_of(frame, people)
        if not len(self.keys):
            return np.full(people.number, -1, dtype=np.int64), keys
        known = dict(zip(map(bytes, self.keys), self.labels.tolist(), strict=True))
        labels = np.array([known.get(key, -1) for key in map(bytes, keys)], dtype=np.int64)
        if self.by is None and (labels < 0).any():
            raise InputError(
                "The vault has no column that tells people apart, and the table's rows or quasi-identifiers are not "
                "those of the first release. Name an identifier in the first release, so that corrected records can "
                "be recognised."
            )
        if (labels < 0).all():
            raise InputError(
                f"The vault recognises nobody in this table by column {self.by!r}. If they are the same people, write "
                "the column as it was in the first release; if they are others, start a vault of their own."
            )
        if np.bincount(self.labels)[np.unique(self.labels)].min() < k:
            raise InputError(f"The vault's clusters are smaller than k={k}, and must not change; take the k they have.")
        gone = len(self.keys) - int((labels >= 0).sum())
        if gone:
            raise InputError(
                f"{gone} people of the vault are not in this table: whoever compares the releases would learn which "
                "records were theirs. Release them again too, or withdraw the earlier releases and start a new vault."
            )
        new = int((labels < 0).sum())
        if 0 < new < k:
            raise InputError(
                f"{new} people are new to the vault. They can only hide among one another, which takes k={k} of them: "
                "wait for more, or leave them out."
            )
        return labels, keys

    def seal(self, path: str, keys: NDArray[np.uint64], labels: Index) -> Vault:
        """Write the vault with the clusters of a further release, mode 0600: complete or not at all."""
        from shoal.io.writing import write_files

        if _digest(path) != self.digest:
            raise FileError(f"The vault {path!r} was changed by another release in the meantime; try again.")
        sealed = replace(self, keys=keys, labels=labels, releases=self.releases + 1)
        head = {"format": _FORMAT, "by": self.by, "columns": list(self.columns), "releases": sealed.releases}
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            head=np.frombuffer(json.dumps(head).encode(), dtype=np.uint8),
            salt=np.frombuffer(self.salt, dtype=np.uint8),
            keys=sealed.keys,
            labels=sealed.labels,
        )
        write_files([(Path(os.path.realpath(path)), buffer.getvalue())])
        return sealed

    def _keys_of(self, frame: nw.DataFrame[Any], people: People) -> NDArray[np.uint64]:
        wanted = [self.by] if self.by is not None else list(self.columns)
        for name in wanted:
            if name not in frame.columns:
                raise InputError(f"The vault recognises people by column {name!r}, which the table does not have.")
            if self.by is not None and find_missing(frame[name]).any():
                raise InputError(f"The vault recognises people by column {name!r}, which has missing values.")
        texts = [frame[name][people.first].to_list() for name in wanted]
        rows: list[tuple[Any, ...]] = list(zip(*texts, strict=True))
        if self.by is None:
            rows = [(place, *row) for place, row in enumerate(rows)]
        digests = [
            hashlib.blake2b("\x1f".join(map(_text_of, row)).encode(), key=self.salt, digest_size=16).digest()
            for row in rows
        ]
        keys = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
        if len(np.unique(keys, axis=0)) < len(keys):
            raise InputError(f"The vault recognises people by column {self.by!r}, which has repeated values.")
        return keys


def _text_of(value: Any) -> str:
    """Return a value as text, a whole number without its decimals: files and tables disagree about dtypes."""
    whole = isinstance(value, Real) and not isinstance(value, int) and float(value).is_integer()
    return f"{value:.0f}" if whole else str(value).strip()


def _digest(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except FileNotFoundError:
        return None


def open_vault(path: str | os.PathLike[str], frame: nw.DataFrame[Any], schema: Schema) -> Vault:
    """Return the vault at a path, or a new one where there is no file yet."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"vault must be a path, but it is a {type(path).__name__}.")
    target = os.fspath(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(os.path.realpath(target))):
            raise FileError(f"The folder of the vault {target!r} does not exist; make it first.") from None
        return Vault.new(frame, schema)
    except (OSError, ValueError):
        raise FileError(f"Cannot read the vault {target!r}.") from None
    if not stat.S_ISREG(mode):
        raise FileError(f"The vault {target!r} is not an ordinary file.")
    if os.name == "posix" and mode & 0o077:
        raise FileError(f"The vault {target!r} can be read by others; make it private first: chmod 600.")
    try:
        with open(target, "rb") as file, np.load(file, allow_pickle=False) as stored:
            head = json.loads(stored["head"].tobytes())
            vault = Vault(
                stored["salt"].tobytes(),
                head["by"],
                tuple(head["columns"]),
                stored["keys"].astype(np.uint64),
                stored["labels"].astype(np.int64),
                int(head["releases"]),
                _digest(target),
            )
            sound = head["format"] == _FORMAT and vault.keys.shape == (len(vault.labels), 2) and len(vault.labels) > 0
    except (OSError, ValueError, KeyError, TypeError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        sound = False
    if not sound:
        raise FileError(f"{target!r} is not a vault of shoal, or is damaged.")
    return vault
