"""What leaves the house: the table, and the certificate that says what is guaranteed and what is not."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal import __version__
from shoal.schema import Schema
from shoal.settings import Settings

_PRESENCE_SHOWN = (
    "The rows of quasi-identifiers in the release are original rows, only re-assigned: a rare combination betrays that "
    "such a person is in the data."
)
_PRESENCE_BLURRED = (
    "Means or smoothed values stand for the original numbers, but a rare combination may still betray that such a "
    "person is in the data."
)
_NOT_COVERED = {
    "sensitive values used by the attacker": "Whoever knows or can guess somebody's sensitive or kept value may find "
    "the record by it, with more certainty than 1/k.",
    "insiders": "A member of a cluster who recognises the own record faces one person fewer: 1/(k-1); m who "
    "collude: 1/(k-m).",
    "equal rows": "The table need not hold k equal rows per combination, so a tool that counts class sizes may read "
    "k = 1; the guarantee is about which record is whose, not about class sizes.",
    "several releases": "This certificate covers one release of this table. Two releases of the same people can be "
    "linked through unique sensitive values and intersected.",
    "columns that together give a quasi-identifier away": "Released columns were checked one by one; what several of "
    "them tell together was not.",
    "leaked secrets": "The guarantee ends where the random numbers, the clusters or the original row order leak.",
}
_ROWS = "How many rows a person has is not hidden, and may recognise whoever has unusually many."
_REPLAY = (
    "The clusters depend on the sensitive values (response_weight > 0): an attacker who replays the clustering under "
    "every assignment of sensitive values may learn more than 1/k. response_weight = 0 closes this."
)
_EXPLAINED = {
    "bound": "1/k, the highest chance of picking out anybody's record by the released quasi-identifiers alone",
    "clusters": "groups of people whose quasi-identifiers were exchanged among them, or blurred together",
    "histogram_intersection": "the sum over all combinations of quasi-identifiers of the smaller of their shares in "
    "original and release: 1 means that every count is equal",
    "response_weight": "how much the sensitive columns counted in forming the clusters",
    "loading": "variance added to every standardised column by the Gaussian dither",
}


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
        file, default: that of the table with .certificate.json added. Return the certificate as written, with the
        SHA-256 of the table's file.
        """
        from shoal.io import write_release

        return write_release(self.table, self.certificate, path, certificate, escape_formulas=escape_formulas)

    def summary(self) -> list[tuple[str, str]]:
        """Return the certificate in a few lines: what each is about, and what it says."""
        c = self.certificate
        clusters, measured = c["clusters"], c["measured"]
        kept = f"{measured['histogram_intersection']:.4f} of the joint histogram kept ({measured['cells']})"
        if "histogram_intersection_of_people" in measured:
            kept += f"; {measured['histogram_intersection_of_people']:.4f} counting people instead of rows"
        sizes = f"{clusters['smallest']} to {clusters['largest']}"
        return [
            ("guaranteed", c["guarantee"]),
            ("not covered", "; ".join(item["what"] for item in c["not_covered"])),
            ("method", f"{c['method']}{', ' + c['recovery'] if c['recovery'] else ''}, k = {c['k']}"),
            ("people", f"{c['people']:,} in {clusters['number']:,} clusters of {sizes}"),
            ("distribution", kept),
            ("status", c["status"]),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.summary())

    __repr__ = __str__


def make_certificate(
    *,
    schema: Schema,
    settings: Settings,
    rows: int,
    sizes: NDArray[np.int64],
    measured: Mapping[str, Any],
    smoothed: Sequence[str],
    leaks_allowed: Mapping[str, Sequence[str]],
    look_like_identifiers: Sequence[str],
    seeded: bool,
) -> dict[str, Any]:
    """Return the certificate: no seed, no labels, no value of the data, no name of a column that stays at home."""
    blurred = settings.method == "centroid" or bool(smoothed)
    not_covered = {"presence": _PRESENCE_BLURRED if blurred else _PRESENCE_SHOWN}
    for name, hidden in ((name, hidden) for name, all_hidden in leaks_allowed.items() for hidden in all_hidden):
        not_covered[f"{hidden!r} can be read off {name!r}"] = (
            f"Column {name!r} is released and gives the quasi-identifier {hidden!r} away: 1/k does not bind whoever "
            "uses it."
        )
    for name in look_like_identifiers:
        not_covered[f"{name!r} looks like an identifier"] = (
            f"Column {name!r} is kept and different for nearly everybody: if it tells who somebody is, nothing is "
            "hidden."
        )
    not_covered |= _NOT_COVERED
    if schema.name("unit") is not None:
        not_covered["number of rows"] = _ROWS
    if settings.response_weight > 0:
        not_covered["replay of the clustering"] = _REPLAY
    return {
        "shoal": __version__,
        "made": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "status": "not for release: made with a fixed random_state" if seeded else "for release",
        "guarantee": "From the quasi-identifiers alone, nobody's record can be picked out with a chance above "
        f"1/{settings.k}.",
        "bound": 1 / settings.k,
        "not_covered": [{"what": what, "why": why} for what, why in not_covered.items()],
        **settings.describe(),
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
            "smoothed": list(smoothed),
            "removed": len(schema.names("identifier", "unit", "dropped")),
            "leaks_allowed": list(leaks_allowed),
        },
        "measured": {**measured, "smallest_cluster": int(sizes.min())},
        "explained": _EXPLAINED,
    }
