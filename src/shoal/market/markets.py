"""The existing and the new market: people or margins, compared at the members."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from shoal.coding import Coding, Floats, Kinds, read_keys
from shoal.encoding import joint_codes
from shoal.errors import InputError, suggest
from shoal.release import Release
from shoal.schema import read_frame
from shoal.shift.diagnostics import ShiftWarning
from shoal.shift.empirical import EmpiricalRatio
from shoal.shift.raking import RakedRatio, read_margins
from shoal.shift.ratio import DensityRatio, SampleRatio, read_weights

FEW = 10  # members a combination should have on average, to be looked for among them


@dataclass(frozen=True)
class Side:
    """The people of one market with their weights, or its margins."""

    name: str
    table: nw.DataFrame[Any] | None = None
    omega: Floats | None = None
    margins: Mapping[Any, Any] | None = None

    @property
    def columns(self) -> list[str]:
        """The demographics it tells of."""
        if self.table is not None:
            return self.table.columns
        return list(dict.fromkeys(c for margin in read_margins(self.margins or {}) for c in margin.columns))


def read_side(name: str, given: Any, weight: str | ArrayLike | None) -> Side | None:
    """Read one market: None, margins, a release, or a table of people, from which the column of weights is taken."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        if weight is not None:
            raise InputError(f"weight_{name} has no use where {name} is margins; leave it out.")
        read_margins(given)
        return Side(name, margins=given)
    if isinstance(given, Release):
        weight = given.schema.name("weight") if weight is None else weight
        quasi_identifiers = [column.name for column in given.schema.quasi_identifiers]
        table = read_frame(given.table).select([*quasi_identifiers, *([weight] if isinstance(weight, str) else [])])
    else:
        table = read_frame(given)
    omega = read_column_weight(table, weight, f"weight_{name}")
    return Side(name, table.drop([weight]) if isinstance(weight, str) else table, omega)


@dataclass(frozen=True)
class Comparison:
    """A fitted ratio at the members, to the power of 1 or -1, and whose weights it was fitted with."""

    ratio: DensityRatio
    power: int
    prepared_members: Any
    source: str
    target: str
    possible: NDArray[np.bool_]  # members who are like anybody in the new market

    def log_weights(self) -> Floats:
        """Return the log of the ratio, or of its inverse, for every member."""
        weights = self.ratio.weigh(self.prepared_members)
        if self.power < 0 and not weights[self.possible].all():
            raise InputError(
                "The margins of the existing market have nobody where members are; they would have infinite weight."
            )
        with np.errstate(divide="ignore"):
            return np.where(self.possible, self.power * np.log(weights), -np.inf)

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
    uncovered: float  # the share of the new market that has a level no member has

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
        ratio = np.exp(np.minimum(logs - logs[self.omega > 0].max(), 0.0))
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
        """The shares of the existing and of the new market that have no counterpart in the other, or in the members."""
        forward = [c.ratio.diagnostics_ for c in self.comparisons if c.power > 0]
        source, target = (forward[0].source_outside, forward[0].target_outside) if forward else (0.0, 0.0)
        return source, max(target, self.uncovered)


def read_markets(
    members: nw.DataFrame[Any],
    weight: str | None,
    new: Side,
    existing: Side | None,
    columns: Sequence[str] | None,
    ratio: DensityRatio | None,
    enrolment: Callable[[Any], ArrayLike] | None,
) -> Markets:
    """Fit what compares the two markets, at the members.

    Two tables are compared by `ratio`. Margins are met by raking the other side's people, or the members where there
    are none: raking people of the existing market to the new one's margins gives new / existing, raking people of the
    new market to the existing one's gives the inverse.
    """
    if not isinstance(ratio, SampleRatio | None):
        raise InputError("ratio must be an EmpiricalRatio, LogisticRatio or NeighborRatio; margins are raked anyway.")
    names = new.columns if columns is None else check_names("columns", columns)
    people = Side("members", members, read_column_weight(members, weight, "weight"))
    sides = [side for side in (people, existing, new) if side is not None and side.table is not None]
    for side in sides:
        for name in names:
            if name not in side.columns:
                what = "new" if columns is None else "columns"
                raise InputError(f"{what} has {name!r}, which {side.name} has not{suggest(name, side.columns)}")
    new, existing = _reduce(new, names), None if existing is None else _reduce(existing, names)
    if existing is not None and existing.margins is not None and getattr(ratio, "max_weight", None) is not None:
        raise InputError("max_weight cannot be kept where existing is margins; leave it out.")
    base = people if existing is None or existing.table is None else existing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShiftWarning)  # what is weak is said of the whole
        fitted = _compare(base, new, existing, names, EmpiricalRatio() if ratio is None else ratio)
        comparisons = []
        for model, power, source, target in fitted:
            prepared = model.prepare(members.to_native())
            possible = _find_possible(model, prepared) if power < 0 and source is new else np.ones(len(members), bool)
            comparisons.append(Comparison(model, power, prepared, source.name, target.name, possible))
    relative = np.ones(len(members)) if enrolment is None else _read_enrolment(enrolment, members)
    weights = {side.name: side.omega for side in sides if side.omega is not None}
    kinds = getattr(ratio, "kinds", None)
    return Markets(members, names, weights, comparisons, relative, _find_uncovered(people, new, names, kinds))


def _reduce(side: Side, names: list[str]) -> Side:
    """Return a market with margins of these columns only, refusing one that lacks any of them."""
    if side.margins is None:
        return side
    for name in names:
        if name not in side.columns:
            raise InputError(
                f"{side.name} has no margin of {name!r}; add one, or name in columns what is to be compared."
            )
    kept = {}
    for margin in read_margins(side.margins):
        shared = [column for column in margin.columns if column in names]
        if shared:
            kept[tuple(shared)] = margin.of(shared)
    return replace(side, margins=kept)


def _compare(
    base: Side, new: Side, existing: Side | None, names: list[str], ratio: DensityRatio
) -> list[tuple[DensityRatio, int, Side, Side]]:
    """Return fitted ratios, their powers, and whose people are their source and target."""
    known = existing.margins if existing is not None else None
    if new.table is not None and known is not None:
        return [(_rake(new, known, ratio), -1, new, new)]
    if new.table is not None:
        assert base.table is not None
        tables = (side.select(names).to_native() for side in (base.table, new.table))
        return [(clone(ratio).fit(*tables, weight_source=base.omega, weight_target=new.omega), 1, base, new)]
    raked: list[tuple[DensityRatio, int, Side, Side]] = [(_rake(base, new.margins, ratio), 1, base, base)]
    if known is not None:
        raked.append((_rake(base, known, ratio), -1, base, base))
    return raked


def _rake(side: Side, margins: Any, ratio: DensityRatio) -> RakedRatio:
    assert side.table is not None
    return RakedRatio(max_weight=ratio.max_weight).fit(side.table.to_native(), margins, weight_source=side.omega)


def _find_possible(ratio: Any, prepared: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which members share a combination of levels with anybody who was raked: margins do not tell."""
    seen = {tuple(row) for row in ratio.cells_.tolist()}
    return np.array([tuple(row) in seen for row in prepared.tolist()])


def _find_uncovered(members: Side, new: Side, names: list[str], kinds: Kinds | None) -> float:
    """Return the largest share of the new market that has levels, in one column or margin, that no member has.

    Where there are few combinations of levels, also the share in those that no member has.
    """
    assert members.table is not None
    assert members.omega is not None
    here = members.omega > 0
    if new.table is None:
        shares = []
        for margin in read_margins(new.margins or {}):
            keys = zip(*(read_keys(members.table[column]) for column in margin.columns), strict=True)
            seen = {key for key, present in zip(keys, here, strict=True) if present}
            shares.append(sum(share for key, share in margin.shares.items() if key not in seen))
        return max(shares)
    assert new.omega is not None
    tables = {"members": members.table.select(names), "new": new.table.select(names)}
    coding = Coding(tables, (members.omega, new.omega), kinds)
    ours, theirs = (coding.codes(table) for table in tables.values())
    absent = [~np.isin(theirs[:, j], ours[here, j]) for j in range(len(names))]
    cell = joint_codes([np.concatenate([ours[:, j], theirs[:, j]]) for j in range(len(names))])
    if len(np.unique(cell)) * FEW <= len(ours):  # few enough combinations for each to have members
        absent.append(~np.isin(cell[len(ours) :], cell[: len(ours)][here]))
    return max(float(new.omega[rows].sum() / new.omega.sum()) for rows in absent)


def check_names(what: str, names: Sequence[str]) -> list[str]:
    """Return a list of names of columns, refusing a text and an empty list."""
    if isinstance(names, str) or not len(names):
        raise InputError(f"{what} must be a list of column names, at least one; it is {names!r}.")
    return list(names)


def read_column_weight(table: nw.DataFrame[Any], weight: str | ArrayLike | None, what: str) -> Floats:
    """Return weights that are given as a column's name, or as they are."""
    if isinstance(weight, str):
        if weight not in table.columns:
            raise InputError(f"{what} names {weight!r}, which is not a column{suggest(weight, table.columns)}")
        weight = table[weight].to_numpy()
    return read_weights(weight, len(table), what)


def _read_enrolment(enrolment: Callable[[Any], ArrayLike], members: nw.DataFrame[Any]) -> Floats:
    given = enrolment(members.to_native())
    try:
        relative = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("enrolment must return numbers, one for every member.") from None
    if relative.shape != (len(members),) or not np.isfinite(relative).all() or (relative < 0).any():
        raise InputError(
            f"enrolment must return {len(members)} numbers, one for every member, none missing or negative; it "
            f"returned an array of shape {relative.shape}."
        )
    return relative
