"""Risk against utility over k and methods: what each setting guarantees, what attackers achieve, what a model keeps.

The guarantee is the bound 1/k, and the bound alone meets a limit: no setting is preferred because a measured attacker
happens to fail on it. Among settings with the same bound the one with the best utility is taken, and among those that
are as good the one on which the optimal attacker, who knows the clusters, achieves least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.assessment.editions import round_numbers
from shoal.encoding import EncodedColumn, encode
from shoal.errors import InputError, suggest
from shoal.hiding import Hidden, hide
from shoal.people import People
from shoal.privacy.chances import hidden_columns
from shoal.privacy.risk import check_releases, measure_risk
from shoal.progress import Reporter
from shoal.schema import Column, Schema
from shoal.settings import METHODS, RECOVERIES, Settings
from shoal.utility.learning import can_be_predicted, least_explained, score_kept, shift_error
from shoal.utility.marginals import joint_of
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
TOLERANCE = 0.02
LOADINGS = (1 / 3, 0.1, 0.03)
_CANDIDATES = ("gaussian", "permute", "resample")  # of anonymize(max_risk=...)
_MOST_PEOPLE = 20_000


@dataclass(frozen=True)
class Outcome:
    """What one setting gives: averages over releases drawn for the purpose.

    Attributes
    ----------
    k, method, recovery, loading
        The setting, as `shoal.anonymize` takes it.
    bound : float
        1/k, which holds whatever is measured.
    optimal, optimal_max, nearest : float
        Share of people picked out by the attacker who knows the clusters, his highest chance with anybody, and share
        picked out by the nearest match. NaN where not measured (smoothed values have no optimal attacker).
    joint : float
        Share of the joint histogram of the quasi-identifiers kept, continuous columns in 20 bins.
    prediction : float
        Share of a model's R2 kept; NaN where there is nothing to predict, or hardly anything of it can be.
    shift : float
        Error of the mean response of a shifted population; NaN likewise.
    utility : float
        The least of what is kept: joint, prediction, 1 - shift.
    """

    k: int
    method: str
    recovery: str | None
    loading: float | None
    bound: float
    optimal: float
    optimal_max: float
    nearest: float
    joint: float
    prediction: float
    shift: float

    @property
    def utility(self) -> float:
        """The least of what is kept, between 0 and 1."""
        kept = [self.joint, self.prediction, 1 - self.shift]
        return float(np.clip(np.nanmin(kept), 0.0, 1.0))

    @property
    def name(self) -> str:
        """The setting but for k, in words."""
        parts = [self.method, *([] if self.recovery in (None, "transport") else [self.recovery])]
        return " ".join([*parts, *([] if self.loading is None else [f"{self.loading:.2g}"])])

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {"setting": self.name, **vars(self), "utility": self.utility}


def k_for(limit: float) -> int:
    """Return the smallest k whose bound 1/k meets a limit.

    Examples
    --------
    >>> k_for(0.05), k_for(0.09), k_for(1 / 3)
    (20, 12, 3)
    """
    return max(2, math.ceil(1 / float(limit) - 1e-9))


def read_k(k: int | None, max_risk: float | None) -> int:
    """Return k as given, or as the highest allowed chance asks for, or 10."""
    if max_risk is None:
        return 10 if k is None else k
    if k is not None:
        raise InputError(f"k={k!r} and max_risk={max_risk!r} say the same thing twice; give one of them.")
    if not isinstance(max_risk, Real) or isinstance(max_risk, bool) or not 0 < float(max_risk) <= 0.5:
        raise InputError(f"max_risk={max_risk!r} must be a chance above 0 and at most 0.5, such as 0.05.")
    return k_for(float(max_risk))


def spell_out(base: Settings, methods: Sequence[str], loadings: Sequence[float]) -> list[Settings]:
    """Return the settings of one k: every method, the Gaussian ones with every loading."""
    if isinstance(methods, str) or not len(methods):
        raise InputError("methods must be a list, such as ['gaussian', 'permute'].")
    found: list[Settings] = []
    for method in methods:
        if method not in (*METHODS, *RECOVERIES):
            raise InputError(f"methods names {method!r}, which is not known{suggest(method, (*METHODS, *RECOVERIES))}")
        if method == "gaussian" or method in RECOVERIES:
            way = "transport" if method == "gaussian" else method
            found += [replace(base, method="gaussian", recovery=way, loading=loading) for loading in loadings]
        else:
            found.append(replace(base, method=method, recovery=None))
    for settings in found:
        settings.check()
    return list(dict.fromkeys(found))


def is_nominal(column: Column) -> bool:
    """Return whether a column has classes only: it is predicted after those that are numbers or have an order."""
    return column.kind == "nominal"


def find_response(frame: Any, schema: Schema, people: People, target: str | None) -> EncodedColumn | None:
    """Return the sensitive column that a model is to predict, everybody's first row; None if there is none."""
    sensitive = [c for c in schema.columns if c.role == "sensitive" and c.kind is not None]
    if target is not None and target not in [c.name for c in sensitive]:
        raise InputError(f"target={target!r} is not a sensitive column{suggest(target, [c.name for c in sensitive])}")
    chosen = [c for c in sensitive if c.name == target] if target is not None else sorted(sensitive, key=is_nominal)
    for column in chosen:
        try:
            encoded = encode(frame[column.name], column).take(people.first)
        except InputError:
            if target is not None:
                raise
            continue
        if not encoded.missing.all() and can_be_predicted(encoded):
            return encoded
    if target is not None:
        raise InputError(f"target={target!r} must vary, and have at most 20 classes if it is nominal.")
    return None


def try_settings(
    persons: list[EncodedColumn],
    labels: Index,
    response: EncodedColumn | None,
    settings: Sequence[Settings],
    n_releases: int | None,
    rng: np.random.Generator,
) -> Any:
    """Yield what each setting gives on these clusters, or on as many of them, drawn at random, as 20,000 people."""
    rows = _whole_clusters(labels, rng)
    persons, labels = [column.take(rows) for column in persons], np.unique(labels[rows], return_inverse=True)[1]
    response = None if response is None else response.take(rows)
    drawn = max(check_releases(n_releases, len(rows)), 2)
    for chosen in settings:
        yield _try(persons, labels, response, chosen, drawn, rng)


def count_tried(people: int) -> int:
    """Return on how many of so many people settings are tried."""
    return min(people, _MOST_PEOPLE)


def _whole_clusters(labels: Index, rng: np.random.Generator) -> Index:
    sizes = np.bincount(labels)
    if len(labels) <= _MOST_PEOPLE:
        return np.arange(len(labels))
    order = rng.permutation(len(sizes))
    chosen = order[: max(1, int(np.searchsorted(np.cumsum(sizes[order]), _MOST_PEOPLE, side="right")))]
    return np.flatnonzero(np.isin(labels, chosen))


def _try(
    persons: list[EncodedColumn],
    labels: Index,
    response: EncodedColumn | None,
    settings: Settings,
    n_releases: int,
    rng: np.random.Generator,
) -> Outcome:
    count = 1 if settings.method == "centroid" else n_releases
    releases = [hide(persons, labels, settings, rng, Reporter(progress=False)) for _ in range(count)]
    risk = measure_risk(persons, labels, settings, iter(releases), sample=rng)
    kept = np.array([_measure_utility(persons, hidden, response, rng) for hidden in releases])
    joint, original, released, shift = (float(value) for value in kept.mean(axis=0))
    if not original >= least_explained(len(labels)):  # of what cannot be predicted nothing can be lost
        released = shift = float("nan")
    optimal, nearest = risk.get("optimal"), risk["nearest"]
    gaussian = settings.method == "gaussian"
    return Outcome(
        k=settings.k,
        method=settings.method,
        recovery=settings.way if gaussian else None,
        loading=float(settings.loading) if gaussian else None,
        bound=1 / settings.k,
        optimal=float("nan") if optimal is None else optimal.mean,
        optimal_max=float("nan") if optimal is None else optimal.max,
        nearest=nearest.mean,
        joint=joint,
        prediction=released / original,
        shift=shift,
    )


def _measure_utility(
    persons: list[EncodedColumn], hidden: Hidden, response: EncodedColumn | None, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return what is kept of the joint distribution, R2 on original and release, and the error under a shift."""
    n = len(persons[0].codes)
    received = hidden_columns(persons, hidden, np.arange(n))
    pair = Pair(share_codes(persons, received), n, aligned=True)
    joint = 1 - float(joint_of(pair.as_one(binned=True))[0])
    if response is None or not any(len(np.unique(column.codes)) > 1 for column in persons):
        return joint, float("nan"), float("nan"), float("nan")
    as_number = response if response.numbers is not None else _commonest(response)
    both = as_number.followed_by(as_number)
    try:
        kept = score_kept(pair, both, rng)
    except InputError:  # too few people or levels to learn from: there is nothing that could be lost
        return joint, float("nan"), float("nan"), float("nan")
    return joint, kept.original, kept.release, shift_error(pair, both, rng)[0]


def _commonest(column: EncodedColumn) -> EncodedColumn:
    """Return a nominal column as whether it is its most frequent level: one measure for all kinds of responses."""
    here = column.codes == np.bincount(column.codes[~column.missing]).argmax()
    numbers = np.where(column.missing, np.nan, here.astype(np.float64))
    return replace(column, kind="ordinal", codes=np.where(column.missing, 2, here), n_levels=3, numbers=numbers)


def share_codes(before: list[EncodedColumn], after: list[EncodedColumn]) -> list[EncodedColumn]:
    """Return columns one below the other; where numbers are fresh ones (means), codes are made for both."""
    found = []
    for one, two in zip(before, after, strict=True):
        both = one.followed_by(two)
        if one.numbers is not None and two.numbers is not None:
            numbers = np.concatenate([one.numbers, two.numbers])
            codes = np.unique(np.where(both.missing, np.inf, numbers), return_inverse=True)[1]
            both = replace(both, codes=codes.astype(np.int64), n_levels=int(codes.max()) + 1)
        found.append(both)
    return found


def recommend(outcomes: Sequence[Outcome], limit: float, tolerance: float = TOLERANCE) -> tuple[Outcome | None, str]:
    """Return the setting to take under a limit on the bound 1/k, and why.

    The bound alone meets the limit. Of the smallest k that does, settings within the tolerance of the best utility
    count as equally good; of these the one on which the optimal attacker achieves least.
    """
    allowed = [outcome for outcome in outcomes if outcome.bound <= limit + 1e-12]
    if not allowed:
        return None, f"No setting has a bound 1/k of {limit:g} or less; try k = {k_for(limit)} or more."
    k = min(outcome.k for outcome in allowed)
    candidates = [outcome for outcome in allowed if outcome.k == k]
    best = max(candidates, key=lambda outcome: outcome.utility)
    good = [outcome for outcome in candidates if outcome.utility >= best.utility - tolerance]
    chosen = min(good, key=lambda o: (math.inf if math.isnan(o.optimal) else o.optimal, -o.utility))
    why = (
        f"k = {k} is the smallest k tried whose bound 1/{k} = {1 / k:.4g} meets the limit of {limit:g}. Of "
        f"{len(candidates)} settings with this bound, {chosen.name} keeps {chosen.utility:.1%}"
    )
    if chosen is best and len(good) == 1:
        return chosen, f"{why}, and no other comes within {tolerance:.1%} of that."
    why += f" (best: {best.name}, {best.utility:.1%})" if chosen is not best else ", the most of all"
    return chosen, (
        f"{why}; {len(good)} settings are within {tolerance:.1%} of the best, and among these the attacker who knows "
        f"the clusters achieves least on it: {chosen.optimal:.2%} of the people."
    )


def choose_settings(
    persons: list[EncodedColumn],
    labels: Index,
    response: EncodedColumn | None,
    settings: Settings,
    given: Mapping[str, Any],
    limit: float,
    rng: np.random.Generator,
    reporter: Reporter,
) -> tuple[Settings, dict[str, Any]]:
    """Return the method and loading for these clusters that meet a limit with the best utility; and what was tried.

    given: what the caller fixed, of method, recovery and loading.
    """
    methods = _CANDIDATES if given["method"] is None else (given["method"],)
    if given["recovery"] is not None:
        methods = (given["recovery"],)
    loadings = LOADINGS if given["loading"] is None else (given["loading"],)
    candidates = spell_out(settings, methods, loadings)
    report = reporter.stage("choosing")
    outcomes = []
    for outcome in try_settings(persons, labels, response, candidates, None, rng):
        outcomes.append(outcome)
        report(len(outcomes) / len(candidates))
    chosen, why = recommend(outcomes, limit)
    assert chosen is not None  # k was made from the limit
    picked = candidates[outcomes.index(chosen)]
    told = [{name: v for name, v in o.to_dict().items() if name != "optimal_max"} for o in outcomes]
    about = {
        "max_risk": float(limit),
        "why": why,
        "tried_on": count_tried(len(labels)),
        "target": None if response is None else response.name,
        "outcomes": [{**row, "recommended": o is chosen} for row, o in zip(told, outcomes, strict=True)],
    }
    return picked, dict(round_numbers(about, 4))
