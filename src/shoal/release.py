"""What leaves the house: the table, and the certificate that says what is guaranteed and what is not."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal import __version__
from shoal.errors import InputError
from shoal.grouping import Grouping
from shoal.notebook import html_table
from shoal.progress import Progress
from shoal.schema import Schema
from shoal.settings import Settings

if TYPE_CHECKING:
    from shoal.assessment import Assessment
    from shoal.io import Labels
    from shoal.privacy.risk import Risk

# What everybody who reads a certificate relies on.
CERTIFICATE = (
    "k", "bound", "guarantee", "assumptions", "not_covered", "status", "risk", "people", "rows", "measured"
)  # fmt: skip
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
    "columns that together give a quasi-identifier away": "Released columns were checked one by one; what several of "
    "them tell together was not.",
    "leaked secrets": "The guarantee ends where the random numbers, the clusters or the original row order leak.",
}
_ONE_RELEASE = (
    "This certificate covers one release of this table. Two releases of the same people can be linked through unique "
    "sensitive values and intersected, unless a vault keeps their clusters."
)
_VAULT_RELEASE = (
    "The clusters are kept in a vault. Releases made with it share them, so that linking and comparing these releases "
    "tells nobody apart inside a cluster; releases of the same people made without it are not covered."
)
_ROWS = (
    "How many rows a person has is not hidden: all of them receive the same quasi-identifiers, so that whoever has "
    "more rows than anybody else, and is known to, is found by that."
)
_REPLAY = (
    "The clusters depend on the sensitive values (response_weight > 0): an attacker who replays the clustering under "
    "every assignment of sensitive values may learn more than 1/k. response_weight = 0 closes this."
)
_REPLAY_MODELS = (
    "The clusters were changed to meet models of the sensitive values: an attacker who replays that under every "
    "assignment of sensitive values may learn more than 1/k."
)
_AVERAGED = "Noise on a sensitive column averages out over several releases of the same people."
_EXPLAINED = {
    "bound": "1/k, the highest chance of picking out anybody's record by the released quasi-identifiers alone",
    "clusters": "groups of people whose quasi-identifiers were exchanged among them, or blurred together",
    "histogram_intersection": "the sum over all combinations of quasi-identifiers of the smaller of their shares in "
    "original and release: 1 means that every count is equal",
    "risk": "the chance to be picked out by two attackers who know everybody's true quasi-identifiers: 'nearest' "
    "takes the released record nearest to them; 'optimal' also knows the clusters and takes a record with the value "
    "that points most to the right one. mean: the share of records expected to be picked out; max: the highest chance "
    "of any record; above_0.09, above_0.05: the share of records whose chance is above that. Where not exact, they are "
    "estimated from releases drawn anew: then max leans upwards, and 'optimal' downwards, as he has few to learn from. "
    "Neither uses the weight; the bound holds for one who does",
    "information_loss": "the share, in percent, of the variance of the quasi-identifiers that lies inside clusters",
    "response_weight": "how much the sensitive columns counted in forming the clusters",
    "chosen": "why this method and loading were taken, and what was tried: figures are averages over releases drawn "
    "for the purpose",
    "loading": "variance added to every standardised column by the Gaussian dither",
}


@dataclass(frozen=True, repr=False)
class Origin:
    """What a release was made from, and how: for `Release.assess`, in memory only.

    Attributes
    ----------
    frame : the original table
    of_row : array or None
        The person of every row, where a person has several.
    order : array
        The row of the original from which each released row stems.
    risk : dict
        The attackers' risk of every record, by attacker.
    """

    frame: nw.DataFrame[Any]
    of_row: NDArray[np.int64] | None
    order: NDArray[np.int64]
    risk: Mapping[str, Risk]

    def __repr__(self) -> str:
        return "Origin(in memory only)"


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
    _origin: Origin | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what the release was made from: it is not for pickles and copies."""
        return {**self.__dict__, "_origin": None}

    def assess(
        self,
        *,
        target: str | None = None,
        model: Any = None,
        random_state: Any = 0,
        progress: bool | Progress | None = None,
    ) -> Assessment:
        """Return what the release risks and what it keeps, measured against the table it was made from.

        Only in the process that made the release; a loaded one has lost its original (`shoal.assess` takes both
        tables).

        Parameters
        ----------
        target, model, random_state, progress
            As in `shoal.assess`.

        Examples
        --------
        >>> import shoal
        >>> release = shoal.anonymize(
        ...     shoal.datasets.load_cohort(500), quasi_identifiers=["sex", "age"], sensitive=["cost"], others="drop")
        >>> release.assess().utility["joint_histogram"].value
        1.0
        """
        from shoal.assessment import assess_release

        if self._origin is None:
            raise InputError("This release was loaded or copied, so its original is not known; use shoal.assess.")
        return assess_release(
            self.table,
            self.schema,
            self.certificate,
            self._origin,
            target=target,
            model=model,
            random_state=random_state,
            progress=progress,
        )

    def write(
        self,
        path: str | os.PathLike[str],
        certificate: str | os.PathLike[str] | None = None,
        *,
        escape_formulas: bool = True,
        labels: Labels | None = None,
    ) -> dict[str, Any]:
        """Write the table, and its certificate beside it: both or neither, mode 0600.

        The ending of path says the format: .csv (also .gz, .zst), .parquet, .arrow, .xlsx or .dta. certificate is the
        path of a JSON file, default: that of the table with .certificate.json added. labels: what columns and codes
        mean, as `shoal.io.read_source` found them. Return the certificate as written, with the SHA-256 of the table's
        file.
        """
        from shoal.io import write_release

        return write_release(
            self.table, self.certificate, path, certificate, escape_formulas=escape_formulas, labels=labels
        )

    def write_database(
        self,
        database: Any,
        table: str,
        certificate: str | os.PathLike[str] | None = None,
        *,
        replace: bool = False,
    ) -> dict[str, Any]:
        """Write the table into a new table of a database, and its certificate into a file: both or neither.

        database is an address ("postgresql://user@host/name", "duckdb:///file", "sqlite:///file") or a connection, as
        `shoal.io.read_database` takes it; what is done is one transaction, and committed. A table that is there already
        is an error unless replace=True. Return the certificate as written.
        """
        from shoal.io import write_release_to_database

        return write_release_to_database(self.table, self.certificate, database, table, certificate, replace=replace)

    def write_bundle(
        self,
        folder: str | os.PathLike[str],
        *,
        form: str = "csv",
        labels: Labels | None = None,
        escape_formulas: bool = True,
    ) -> list[str]:
        """Write a folder that can be handed over, complete or not at all; return the names of its files.

        The data (form: csv, parquet, arrow, excel or stata), the certificate, the public report, a data dictionary, a
        README with the guarantee and its limits, and checksums, which `shoal verify` and `shoal.bundle.verify_bundle`
        check. The report needs the original, so only the process that made the release can write it. A folder that is
        there must be empty, or an earlier bundle, which is replaced.
        """
        from shoal.bundle import write_bundle

        return write_bundle(self, folder, form=form, labels=labels, escape_formulas=escape_formulas)

    def summary(self) -> list[tuple[str, str]]:
        """Return the certificate in a few lines: what each is about, and what it says."""
        c = self.certificate
        clusters, measured = c["clusters"], c["measured"]
        of_people = measured.get("histogram_intersection_of_people", measured["histogram_intersection"])
        kept = f"{of_people:.4f} of the joint histogram kept ({measured['cells']})"
        if "histogram_intersection_of_people" in measured:
            kept += f", counting people; {measured['histogram_intersection']:.4f} counting rows"
        sizes = f"{clusters['smallest']} to {clusters['largest']}"
        lines = [
            ("guaranteed", c["guarantee"]),
            ("attackers", _say_risk(c["risk"])),
            ("not covered", "; ".join(item["what"] for item in c["not_covered"])),
            ("method", f"{c['method']}{', ' + c['recovery'] if c['recovery'] else ''}, k = {c['k']}"),
            ("people", f"{c['people']:,} in {clusters['number']:,} clusters of {sizes}"),
            ("distribution", kept),
        ]
        if c["chosen"]:
            lines.append(("chosen", c["chosen"]["why"]))
        if c["models"]:
            lines.append(("models", _say_models(c["models"], c["models_cost"])))
        if c["protected"]:
            lines.append(("protected", "; ".join(f"{p['column']}: {p['done']}" for p in c["protected"])))
        return [*lines, ("status", c["status"])]

    def __str__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.summary())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = [c for c in self.schema.columns if c.role not in ("identifier", "unit", "dropped")]
        roles = html_table([(c.name, c.role.replace("_", "-"), c.kind or "") for c in told], ("column", "role", "kind"))
        columns = f"<details><summary>columns</summary>{roles}</details>"
        return f"<div><strong>shoal release</strong>{html_table(self.summary())}{columns}</div>"


def _and_not(schema: Schema) -> str:
    return "" if schema.name("unit") is None else ", and not from how many rows somebody has"


def _assume(schema: Schema) -> list[str]:
    """Return what the guarantee takes for granted."""
    unit = schema.name("unit")
    return [
        "The attacker may know everybody's true quasi-identifiers, who is in the table, the source code, these "
        "settings, this certificate, and which people form a cluster.",
        "He uses the released quasi-identifiers (and the weight, which travels with them), not the other columns.",
        "Random numbers come from the operating system and stay secret, as does the original order of the rows.",
        "Every row is another person." if unit is None else "Rows of one person share the person's identifier.",
    ]


def _say_risk(risk: Mapping[str, Any]) -> str:
    if not risk:
        return "not measured (n_releases=0); the bound holds"
    words = {"optimal": "one who knows the clusters picks out", "nearest": "the nearest match"}
    about = {name: "" if found["exact"] else "about " for name, found in risk.items()}
    said = [f"{words[name]} {about[name]}{found['mean']:.2%} of the records" for name, found in risk.items()]
    if all(found["exact"] for found in risk.values()):  # of few releases the highest is mostly noise
        said.append(f"the record most at risk {max(found['max'] for found in risk.values()):.3g}")
    return ", ".join(said)


def _say_models(models: Sequence[Mapping[str, Any]], cost: Mapping[str, Any]) -> str:
    said = "; ".join(f"{m['model']} of {m['column']}: {m['reached']:.4g} (asked {m['asked']:g})" for m in models)
    if not cost:
        return said
    return (
        f"{said}. Cost: {cost['clusters_without']:,} -> {cost['clusters_with']:,} clusters, information loss "
        f"{cost['information_loss_without']:.2f} -> {cost['information_loss_with']:.2f} %"
    )


def make_certificate(
    *,
    schema: Schema,
    settings: Settings,
    chosen: Mapping[str, Any] | None,
    rows: int,
    groups: Grouping,
    risk: Mapping[str, Any],
    measured: Mapping[str, Any],
    smoothed: Sequence[str],
    protected: Sequence[Mapping[str, str]],
    leaks_allowed: Mapping[str, Sequence[str]],
    look_like_identifiers: Sequence[str],
    seeded: bool,
) -> dict[str, Any]:
    """Return the certificate: no seed, no labels, no value of the data, no name of a column that stays at home."""
    k, sizes = settings.k, groups.sizes
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
    not_covered["several releases"] = _ONE_RELEASE if groups.vault is None else _VAULT_RELEASE
    if schema.name("unit") is not None:
        not_covered["number of rows"] = _ROWS
    if settings.response_weight > 0:
        not_covered["replay of the clustering"] = _REPLAY
    if groups.models:
        not_covered["replay of the models"] = _REPLAY_MODELS
    if any("noise" in step["done"] for step in protected):
        not_covered["noise on sensitive columns"] = _AVERAGED
    return {
        "shoal": __version__,
        "made": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "status": "not for release: made with a fixed random_state" if seeded else "for release",
        "guarantee": f"From the quasi-identifiers alone, nobody's record can be picked out with a chance above 1/{k}.",
        "bound": 1 / k,
        "assumptions": _assume(schema),
        "risk": dict(risk),
        "insiders": [{"colluding": m, "bound": 1 / (k - m)} for m in range(1, min(k, 4))],
        "models": groups.models,
        "models_cost": groups.cost,
        "protected": list(protected),
        "vault": groups.vault,
        "not_covered": [{"what": what, "why": why} for what, why in not_covered.items()],
        **settings.describe(),
        "chosen": chosen,
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
