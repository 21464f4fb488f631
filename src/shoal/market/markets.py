"""The existing and the new market: people or margins, compared at the members."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from shoal.coding import Floats
from shoal.errors import InputError, suggest
from shoal.schema import read_frame
from shoal.shift.empirical import EmpiricalRatio
from shoal.shift.raking import RakedRatio, read_margins
from shoal.shift.ratio import DensityRatio, read_weights


@dataclass(frozen=True)
class Comparison:
    """A fitted ratio at the members, to the power of 1 or -1, and whose weights it was fitted with."""

    ratio: DensityRatio
    power: int
    prepared_members: Any
    source: str
    target: str

    def log_weights(self) -> Floats:
        """Return the log of the ratio, or of its inverse, for every member."""
        weights = self.ratio.weigh(self.prepared_members)
        if self.power < 0 and not weights.all():
            raise InputError(
                "The margins of the existing market have nobody where members are; they would have infinite weight."
            )
        with np.errstate(divide="ignore"):
            return self.power * np.log(weights)

    def refitted(self, weights: Mapping[str, Floats]) -> Self:
        """Return the comparison with other weights of the same people."""
        return replace(self, ratio=self.ratio.reweigh(weights[self.source], weights[self.target]))


@dataclass(frozen=True)
class Markets:
    """The members, and how likely somebody like them is in the new market rather than in the existing one."""

    members: nw.DataFrame[Any]
    columns: list[str]
    weights: Mapping[str, Floats]  # survey weights of members, existing, new: those that are tables
    comparisons: list[Comparison]
    enrolment: Floats

    @property
    def omega(self) -> Floats:
        """The members' survey weights."""
        return self.weights["members"]

    def compare(self) -> Floats:
        """Return p(x | enrolled, new) / p(x | enrolled, existing) for every member, of mean 1."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.enrolment) + sum(comparison.log_weights() for comparison in self.comparisons)
        if np.isneginf(logs[self.omega > 0]).all():
            raise InputError("No member is like anybody in the new market: there is nothing to learn from.")
        ratio = np.exp(logs - logs[self.omega > 0].max())
        return np.asarray(ratio / np.average(ratio, weights=self.omega))

    def redrawn(self, rng: np.random.Generator) -> Self:
        """Return the same markets with every table's people resampled: their weights drawn at random."""
        weights = {name: omega * rng.standard_exponential(len(omega)) for name, omega in self.weights.items()}
        return replace(self, weights=weights, comparisons=[c.refitted(weights) for c in self.comparisons])

    @property
    def clipped(self) -> float:
        """The share of the new market that a cap on the weights took off."""
        return max(c.ratio.diagnostics_.clipped_mass for c in self.comparisons)

    @property
    def outside(self) -> tuple[float, float]:
        """The shares of the existing and of the new market that have no counterpart in the other."""
        found = [c.ratio.diagnostics_ for c in self.comparisons if c.power > 0] or [
            replace(d, source_outside=d.target_outside, target_outside=d.source_outside)
            for d in (c.ratio.diagnostics_ for c in self.comparisons)
        ]
        return found[0].source_outside, found[0].target_outside


def read_markets(
    members: nw.DataFrame[Any],
    weight: str | None,
    new: Any,
    existing: Any,
    columns: Sequence[str] | None,
    weight_new: str | ArrayLike | None,
    weight_existing: str | ArrayLike | None,
    ratio: DensityRatio | None,
    enrolment: Callable[[Any], ArrayLike] | None,
) -> Markets:
    """Read the markets and fit what compares them.

    Two tables are compared by `ratio`. Margins are met by raking the other side's people, or the members where there
    are none: raking people of the existing market to the new one's margins gives new / existing, raking people of the
    new market to the existing one's gives the inverse.
    """
    tables = {"members": members}
    weights = {"members": _read_column_weight(members, weight, "weight")}
    for name, given, omega in (("existing", existing, weight_existing), ("new", new, weight_new)):
        if isinstance(given, Mapping):
            if omega is not None:
                raise InputError(f"weight_{name} has no use where {name} is margins; leave it out.")
        elif given is not None:
            tables[name] = read_frame(given)
            weights[name] = _read_column_weight(tables[name], omega, f"weight_{name}")
    if columns is None:
        named = [omega for omega in (weight_new,) if isinstance(omega, str)]
        if isinstance(new, Mapping):
            columns = list(dict.fromkeys(c for margin in read_margins(new) for c in margin.columns))
        else:
            columns = [c for c in tables["new"].columns if c not in named]
    for name, table in tables.items():
        for column in columns:
            if column not in table.columns:
                what = "columns" if name != "new" else "new"
                raise InputError(f"{what} has {column!r}, which {name} has not{suggest(column, table.columns)}")
    chosen = {name: table.select(list(columns)) for name, table in tables.items()}
    margins = {name: given for name, given in (("new", new), ("existing", existing)) if isinstance(given, Mapping)}
    fitted = _compare(chosen, weights, margins, EmpiricalRatio() if ratio is None else ratio)
    coded = [
        Comparison(model, power, model.prepare(chosen["members"].to_native()), source, target)
        for model, power, source, target in fitted
    ]
    relative = np.ones(len(members)) if enrolment is None else _read_enrolment(enrolment, members)
    return Markets(members, list(columns), weights, coded, relative)


def _compare(
    tables: Mapping[str, nw.DataFrame[Any]],
    weights: Mapping[str, Floats],
    margins: Mapping[str, Any],
    ratio: DensityRatio,
) -> list[tuple[DensityRatio, int, str, str]]:
    """Return fitted ratios, their powers, and whose people are their source and target."""
    base = "existing" if "existing" in tables else "members"
    if not margins:
        model = clone(ratio)
        model.fit(
            tables[base].to_native(),
            tables["new"].to_native(),
            weight_source=weights[base],
            weight_target=weights["new"],
        )
        return [(model, 1, base, "new")]
    if "new" in tables:  # the existing market is margins
        return [(_rake(tables["new"], margins["existing"], weights["new"]), -1, "new", "new")]
    raked = [(_rake(tables[base], margins["new"], weights[base]), 1, base, base)]
    if "existing" in margins:
        raked.append((_rake(tables[base], margins["existing"], weights[base]), -1, base, base))
    return raked


def _rake(table: nw.DataFrame[Any], margins: Any, weight: Floats) -> RakedRatio:
    return RakedRatio().fit(table.to_native(), margins, weight_source=weight)


def _read_column_weight(table: nw.DataFrame[Any], weight: str | ArrayLike | None, what: str) -> Floats:
    if isinstance(weight, str):
        if weight not in table.columns:
            raise InputError(f"{what} names {weight!r}, which is not a column{suggest(weight, table.columns)}")
        weight = table[weight].to_numpy()
    return read_weights(weight, len(table), what)


def _read_enrolment(enrolment: Callable[[Any], ArrayLike], members: nw.DataFrame[Any]) -> Floats:
    relative = np.asarray(enrolment(members.to_native()), dtype=np.float64)
    if relative.shape != (len(members),) or not np.isfinite(relative).all() or (relative < 0).any():
        raise InputError(
            f"enrolment must return {len(members)} numbers, one for every member, none missing or negative; it "
            f"returned an array of shape {relative.shape}."
        )
    return relative
