"""What leaves the house: the table, and the certificate that says what is guaranteed and what is not."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import __version__
from shoal.schema import Schema
from shoal.settings import EXACT

_PRESENCE = {
    True: "The released table holds the original combinations of quasi-identifiers, only re-assigned: a rare "
    "combination betrays that such a person is in the data.",
    False: "A rare combination of quasi-identifiers in the release may betray that such a person is in the data.",
}
_NOT_COVERED = {
    "sensitive values used by the attacker": "Whoever knows or can guess somebody's sensitive or kept value may find "
    "the record by it, and by that value with more certainty than 1/k.",
    "insiders": "A member of a cluster who recognises the own record faces one person fewer: 1/(k-1); m who "
    "collude: 1/(k-m).",
    "equal rows": "The table need not hold k equal rows per combination, so a tool that counts class sizes may read "
    "k = 1; the guarantee is about which record is whose, not about class sizes.",
    "several releases": "This certificate covers one release of this table. Two releases of the same people can be "
    "linked through unique sensitive values and intersected.",
    "columns that give a quasi-identifier away": "Released columns were checked one by one; what several of them "
    "tell together was not.",
    "leaked secrets": "The guarantee ends where the random numbers, the clusters or the original row order leak.",
}
_ROWS = "How many rows a person has is not hidden, and may recognise whoever has unusually many."
_REPLAY = (
    "The clusters depend on the sensitive values (response_weight > 0): an attacker who replays the clustering under "
    "every assignment of sensitive values may learn more than 1/k. response_weight=0 closes this."
)


@dataclass(frozen=True)
class Release:
    """A table that may leave the house, and its certificate.

    Attributes
    ----------
    table : the same kind of table as came in
        Rows shuffled, index reset, dtypes, categories and missing values kept, identifiers gone.
    certificate : dict
        JSON-able: the guarantee, what is not covered, the settings, what was measured. Nothing secret.
    schema : Schema
        The role and kind of every column of the original.
    """

    table: Any
    certificate: dict[str, Any]
    schema: Schema

    def write(
        self,
        path: str | os.PathLike[str],
        certificate: str | os.PathLike[str] | None = None,
        *,
        escape_formulas: bool = True,
    ) -> dict[str, Any]:
        """Write the table, and its certificate beside it: both or neither, mode 0600.

        The ending of path says the format: .csv, .parquet, .arrow or .feather. certificate is the path of a JSON
        file, default: that of the table with the ending .certificate.json. Return the certificate as written, with
        the SHA-256 of the table's file.
        """
        from shoal.io import write_release

        return write_release(self.table, self.certificate, path, certificate, escape_formulas=escape_formulas)

    def __str__(self) -> str:
        c = self.certificate
        clusters, measured = c["clusters"], c["measured"]
        how = f"{c['method']}, {c['recovery']}" if c["recovery"] else c["method"]
        people = (
            f"{c['people']:,} in {clusters['number']:,} clusters of {clusters['smallest']} to {clusters['largest']}"
        )
        kept = f"{measured['histogram_intersection']:.4f} of the joint histogram kept ({measured['cells']})"
        lines = [
            ("guaranteed", c["guarantee"]),
            ("not covered", "; ".join(item["what"] for item in c["not_covered"])),
            ("method", f"{how}, k = {c['k']}"),
            ("people", people),
            ("distribution", kept),
            ("status", c["status"]),
        ]
        return "\n".join(f"{name:<13} {text}" for name, text in lines)

    __repr__ = __str__


def make_certificate(
    *,
    schema: Schema,
    settings: dict[str, Any],
    rows: int,
    sizes: NDArray[np.int64],
    measured: dict[str, Any],
    leaks_allowed: list[str],
    seeded: bool,
) -> dict[str, Any]:
    """Return the certificate: no seed, no labels, no value of the data, no name of a column that stays at home."""
    k = settings["k"]
    exact = (settings["recovery"] or settings["method"]) in EXACT
    not_covered = {"presence": _PRESENCE[exact]} | _NOT_COVERED
    if schema.name("unit") is not None:
        not_covered["number of rows"] = _ROWS
    if settings["response_weight"] > 0:
        not_covered["replay of the clustering"] = _REPLAY
    return {
        "shoal": __version__,
        "status": "not for release: made with a fixed random_state" if seeded else "for release",
        "guarantee": f"From the quasi-identifiers alone, nobody's record can be picked out with a chance above 1/{k}.",
        "bound": 1 / k,
        "not_covered": [{"what": what, "why": why} for what, why in not_covered.items()],
        **settings,
        "people": int(sizes.sum()),
        "rows": rows,
        "clusters": {
            "number": len(sizes),
            "smallest": int(sizes.min()),
            "median": float(np.median(sizes)),
            "largest": int(sizes.max()),
        },
        "columns": {
            "quasi_identifiers": [{"name": c.name, "kind": c.kind} for c in schema.quasi_identifiers],
            "sensitive": schema.names("sensitive"),
            "weight": schema.name("weight"),
            "kept": schema.names("kept"),
            "removed": len(schema.names("identifier", "unit", "dropped")),
            "leaks_allowed": leaks_allowed,
        },
        "measured": measured,
    }


def to_json(certificate: dict[str, Any]) -> str:
    """Return the certificate as text."""
    return json.dumps(certificate, indent=2, ensure_ascii=False) + "\n"
