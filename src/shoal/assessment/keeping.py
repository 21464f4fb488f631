"""What a release keeps, as scores: distributions, dependence, and what a model learns from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.assessment.scores import Score, write_number
from shoal.utility import dependence, marginals
from shoal.utility.learning import Coefficient, Kept
from shoal.utility.pairs import Pair, reference
from shoal.utility.propensity import Propensity

Floats = NDArray[np.float64]
_REFERENCE_ROWS = 100_000  # of a half of the original, for columns and pairs of columns
_EXPECTED_SHIFT = 2 / np.sqrt(np.pi)  # mean absolute difference of two estimates, in standard errors of one


@dataclass(frozen=True)
class Distances:
    """How far every column is from the original, and how far an independent sample would be.

    marginal, ks, wasserstein : arrays of shape (d,)
    reference : array of shape (3, d)
        What an independent sample would have, by these three distances.
    worst_reference : array of shape (3,)
        How far its farthest column would be.
    """

    marginal: Floats
    ks: Floats
    wasserstein: Floats
    reference: Floats
    worst_reference: Floats


@dataclass(frozen=True)
class Dependence:
    """Every pair of columns: rank correlation and mutual information (bits), of original and release."""

    names: tuple[str, ...]
    correlation: Floats
    correlation_released: Floats
    information: Floats
    information_released: Floats
    correlation_reference: float
    information_reference: float
    rows: int


def measure_distances(pair: Pair, rng: np.random.Generator) -> Distances:
    """Compare every column by itself."""
    metrics = marginals.marginals_of, marginals.ks_of, marginals.wasserstein_of
    found = [metric(pair) for metric in metrics]

    def all_three(part: Pair) -> Floats:
        each = np.stack([metric(part) for metric in metrics])
        return np.column_stack([each, [_largest(distance) for distance in each]])

    expected = reference(pair, all_three, rng, _REFERENCE_ROWS)
    return Distances(found[0], found[1], found[2], expected[:, :-1], expected[:, -1])


def measure_dependence(pair: Pair, rng: np.random.Generator) -> Dependence:
    """Compare every pair of columns."""
    part = pair.sampled(dependence.rows_for(len(pair.columns)), rng)
    one, two = dependence.both_informations(part)
    before, after = (dependence.correlations(part.of(which)) for which in (0, 1))

    def largest(half: Pair) -> Floats:
        changes = dependence.correlation_of(half), dependence.information_of(half)
        return np.array([_largest(change[np.triu_indices(len(change), 1)]) for change in changes])

    expected = reference(part, largest, rng, _REFERENCE_ROWS)
    return Dependence(
        tuple(pair.names), before, after, one, two, float(expected[0]), float(expected[1]), min(part.n, part.n_released)
    )


def _largest(distances: Floats) -> float:
    """Return the largest of some distances, 0 where there is none."""
    return float(np.nanmax(distances)) if np.isfinite(distances).any() else 0.0


def score_joint(pair: Pair, rng: np.random.Generator) -> list[Score]:
    """Return how much of the joint distribution of the quasi-identifiers is kept."""
    ways = [("joint_histogram", "Joint distribution of the quasi-identifiers", "exact values")]
    if any(column.is_continuous for column in pair.columns):
        ways.append(("joint_histogram_in_bins", "... continuous columns in 20 bins", "in bins"))
    found = []
    for name, title, how in ways:
        cells = pair.as_one(binned=how == "in bins")
        value = 1 - float(marginals.joint_of(cells)[0])
        expected = 1 - float(reference(cells, marginals.joint_of, rng)[0])
        reading = (
            f"Every joint count is kept ({how})."
            if value == 1
            else f"{value:.1%} of the rows have a counterpart in the same cell ({how})."
        )
        found.append(Score(name, title, value, "higher", expected, reading))
    return found


def score_weighted(measured: Mapping[str, Any], joint: Score) -> Score:
    """Return how much of the joint distribution is kept in the survey's weights."""
    value = float(measured["weighted_histogram_intersection"])
    reading = "The weight travels with the quasi-identifiers; as the certificate says."
    return replace(joint, name="weighted_joint_histogram", title="... in survey weights", value=value, reading=reading)


def score_columns(names: Sequence[str], distances: Distances) -> list[Score]:
    """Return the worst of the columns: shares in common, Kolmogorov-Smirnov, Wasserstein."""
    ways = (
        ("marginal_histogram", "Distribution of the column kept least", distances.marginal, "higher"),
        ("ks", "Largest Kolmogorov-Smirnov distance of a column", distances.ks, "lower"),
        ("wasserstein", "Largest Wasserstein distance of a column", distances.wasserstein, "lower"),
    )
    found = []
    for (name, title, distance, better), expected in zip(ways, distances.worst_reference, strict=True):
        if not np.isfinite(distance).any():
            continue
        worst = int(np.nanargmax(distance))
        value, chance = float(distance[worst]), float(expected)
        equal = value == 0
        if better == "higher":
            value, chance = 1 - value, 1 - chance
        unit = " standard deviations" if name == "wasserstein" else ""
        reading = (
            "No column differs." if equal else f"{names[worst]!r}; an independent sample would differ by chance too."
        )
        form = "number" if name == "wasserstein" else "share"
        found.append(Score(name, f"{title}{',' + unit if unit else ''}", value, better, chance, reading, form))  # type: ignore[arg-type]
    return found


def score_dependence(found: Dependence) -> list[Score]:
    """Return the largest change of a correlation and of a mutual information."""
    scores = []
    for name, title, before, after, expected, unit in (
        ("correlation", "Largest change of a rank correlation", found.correlation, found.correlation_released,
         found.correlation_reference, ""),
        ("mutual_information", "Largest change of a mutual information, bits", found.information,
         found.information_released, found.information_reference, " bits"),
    ):  # fmt: skip
        change = np.abs(after - before)
        np.fill_diagonal(change, np.nan)
        if not np.isfinite(change).any():
            continue
        i, j = np.unravel_index(int(np.nanargmax(change)), change.shape)
        value = float(change[i, j])
        reading = (
            f"{found.names[i]!r} with {found.names[j]!r}: {before[i, j]:.3f} -> {after[i, j]:.3f}{unit}."
            if value > 0
            else "No pair of columns differs."
        )
        scores.append(Score(name, title, value, "lower", expected, reading, "number"))
    return scores


def score_propensity(found: Propensity) -> Score:
    """Return whether original and release can be told apart."""
    low, high = np.quantile(found.null / found.null.mean(), [0.025, 0.975]) if found.null.any() else (0.0, 0.0)
    reading = (
        f"pMSE {found.pmse:.3g}, {found.ratio:.2f} times its mean under random labels (95 % of which lie from "
        f"{low:.2f} to {high:.2f}): "
    )
    reading += (
        "original and release can be told apart."
        if found.ratio > high
        else "original and release cannot be told apart by means, variances and products of two columns."
    )
    return Score("pmse_ratio", "Propensity: pMSE over its null mean", found.ratio, "lower", 1.0, reading, "number")


def score_prediction(kept: Kept) -> list[Score]:
    """Return how much of a model's score is kept."""
    low, high = kept.interval
    return [
        Score(
            "prediction_kept",
            f"Prediction of {kept.target}: share of the score kept",
            None if np.isnan(kept.share) else kept.share,
            "higher",
            1.0,
            f"{kept.measure} {kept.release:.4f} when {kept.model} learns from the release, {kept.original:.4f} from "
            f"the original, both tested on the original (95 % interval of the share {low:.1%} to {high:.1%})."
            if not np.isnan(kept.share)
            else f"The quasi-identifiers explain too little of it in the original ({kept.measure} {kept.original:.4f} "
            f"of {kept.tested:,} records) for a share of that to mean anything.",
        )
    ]


def score_coefficients(effects: Sequence[Coefficient], target: str) -> list[Score]:
    """Return by how much the effects of a linear model move."""
    if not effects:
        return []
    shifts = np.array([effect.shift for effect in effects])
    worst = effects[int(np.abs(shifts).argmax())]
    return [
        Score(
            "coefficient_shift",
            f"Effects on {target}: mean shift in standard errors",
            float(np.abs(shifts).mean()),
            "lower",
            float(_EXPECTED_SHIFT),
            f"The effect that moves most, of {worst.effect.column!r}, moves by {write_number(abs(worst.shift))} "
            f"standard errors ({worst.original:.3f} -> {worst.release:.3f}).",
            "number",
        )
    ]


def score_shift(error: float, chance: float, target: str) -> Score:
    """Return how wrong an estimate for another population is."""
    return Score(
        "shift_error",
        f"Error of the mean of {target} in another population",
        None if np.isnan(error) else error,
        "lower",
        chance,
        "A population with up to twice as many of the people for whom high (or low) values are expected. Dither that "
        "flattens a relation shows here.",
    )
