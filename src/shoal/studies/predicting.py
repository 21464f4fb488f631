"""Predicting the cost of enrollees: models, weights for another market, and how far off they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.shift.diagnostics import ShiftWarning
from shoal.shift.empirical import EmpiricalRatio
from shoal.shift.logistic import LogisticRatio
from shoal.shift.ratio import SampleRatio
from shoal.studies.population import Population, Split
from shoal.studies.releasing import KS, UNTOUCHED, WAYS, Sample, release_members

Floats = NDArray[np.float64]
Row = dict[str, Any]

CODINGS = ("dummy", "numeric")
SHIFTS = ("none", "logistic", "nonparametric")
AREA = "18"  # of which the paper shows privacy and shift together


@dataclass(frozen=True)
class Market:
    """Enrollees to be predicted: per cell how many, and the sums of their costs and squared costs."""

    mass: Floats
    total: Floats
    squares: float

    @classmethod
    def of(cls, people: Population, split: Split, relative: Floats) -> Market:
        """Return the second half of the survey, cells weighted by how frequent they are among the enrollees."""
        weight = split.test_weight * relative[split.test_cell]
        return cls(
            people.sum_by_cell(split.test_cell, weight),
            people.sum_by_cell(split.test_cell, weight * split.test_cost),
            float(weight @ split.test_cost**2),
        )

    def score(self, predicted: Floats) -> Row:
        """Return the mean cost as predicted and as it is, and R2, from sums what `shoal.utility` has from records."""
        mass, total = float(self.mass.sum()), float(self.total.sum())
        spread = self.squares - total**2 / mass
        left = self.squares - 2 * float(self.total @ predicted) + float(self.mass @ predicted**2)
        return {"predicted": float(self.mass @ predicted) / mass, "actual": total / mass, "r2": 1 - left / spread}

    def intersect(self, sample: Sample, weight: Floats) -> float:
        """Return the histogram intersection of a weighted sample with the enrollees."""
        known = sample.cell >= 0
        mass = np.bincount(sample.cell[known], (sample.mass * weight)[known], minlength=len(self.mass))
        return float(np.minimum(mass / (sample.mass @ weight), self.mass / self.mass.sum()).sum())


def design(points: Floats, coding: str, levels: Sequence[Sequence[str]]) -> Floats:
    """Return the additive model's columns: an intercept, and a slope a column or an effect a level but the first.

    A point between two levels, as a mean is, has no level: all its effects are 0.
    """
    ones = np.ones((len(points), 1))
    if coding == "numeric":
        return np.hstack([ones, points])
    dummies = [np.abs(points[:, [j]] - np.arange(1, len(own))) < 1e-9 for j, own in enumerate(levels)]
    return np.hstack([ones, *dummies]).astype(np.float64)


def fit_least_squares(people: Population, sample: Sample, weight: Floats, coding: str) -> Floats:
    """Return the costs that an additive model, learnt from a weighted sample, expects in the cells, shape (C,)."""
    mass = sample.mass * weight
    used = mass > 0
    root = np.sqrt(mass[used])
    mean = sample.total[used] / sample.mass[used]
    columns = design(sample.points[used], coding, people.levels)
    effects = np.linalg.lstsq(columns * root[:, None], mean * root, rcond=None)[0]
    return np.asarray(design(people.cells, coding, people.levels) @ effects)


class Ratios:
    """Weights p(x | area) / p(x | existing market), estimated from the two halves of the survey."""

    def __init__(self, people: Population, split: Split) -> None:
        self._people = people
        self._split = split
        self._known: dict[str, dict[str, Callable[[Sample], Floats]]] = {}
        given = {
            "weight_source": split.existing,
            "weight_target": np.ones(len(people.cells)),
        }  # read once, weighed later
        with warnings.catch_warnings(action="ignore", category=ShiftWarning):
            self._read: dict[str, SampleRatio] = {
                "logistic": LogisticRatio("linear").fit(people.cells, people.cells, **given),
                "nonparametric": EmpiricalRatio().fit(people.cells, people.cells, **given),
            }

    def estimate(self, area: str) -> dict[str, Callable[[Sample], Floats]]:
        """Return for every kind of weights a function that weighs a sample."""
        if area not in self._known:
            self._known[area] = self._estimate(area)
        return self._known[area]

    def _estimate(self, area: str) -> dict[str, Callable[[Sample], Floats]]:
        weight = self._split.test_weight * self._people.areas[area][self._split.test_cell]
        target = self._people.sum_by_cell(self._split.test_cell, weight)
        fitted = {name: ratio.reweigh(self._split.existing, target) for name, ratio in self._read.items()}
        return {"none": lambda sample: np.ones(len(sample.mass))} | {
            name: _weigher(ratio) for name, ratio in fitted.items()
        }


def _weigher(ratio: SampleRatio) -> Callable[[Sample], Floats]:
    def weigh(sample: Sample) -> Floats:
        known = sample.cell >= 0
        weights = np.empty(len(sample.mass))
        weights[known] = ratio.weights_[sample.cell[known]]
        if not known.all():  # means, which are nobody's values
            weights[~known] = ratio.predict(sample.points[~known])
        return weights

    return weigh


def predict_without_shift(people: Population, split: Split, released: Mapping[tuple[str, int], Sample]) -> list[Row]:
    """Learn from every release and predict enrollees of the same market."""
    market = Market.of(people, split, people.enrols)
    rows = []
    for (way, k), sample in released.items():
        weight = np.ones(len(sample.mass))
        kept = market.intersect(sample, weight)
        for coding in CODINGS:
            found = market.score(fit_least_squares(people, sample, weight, coding))
            rows.append({"way": way, "k": k, "coding": coding, **found, "kept": kept})
    return rows


def predict_areas(people: Population, split: Split, ratios: Ratios) -> list[Row]:
    """Learn from the insurer's members, with and without weights, and predict enrollees of every rating area.

    Nothing is released here, so nobody has to be drawn: the members are the first half, weighted by who enrols.
    """
    every = np.arange(len(people.cells))
    sample = Sample(people.cells, every, split.existing * people.enrols, split.existing_cost * people.enrols)
    rows = []
    for area in people.areas:
        rows += _predict_shifted(people, split, sample, ratios, area)
    return rows


def predict_released_area(
    people: Population, split: Split, released: Mapping[tuple[str, int], Sample], ratios: Ratios
) -> list[Row]:
    """Learn from every release, with and without weights, and predict enrollees of rating area 18."""
    rows = []
    for (way, k), sample in released.items():
        rows += [{"way": way, "k": k, **row} for row in _predict_shifted(people, split, sample, ratios, AREA)]
    return rows


def _predict_shifted(people: Population, split: Split, sample: Sample, ratios: Ratios, area: str) -> list[Row]:
    market = Market.of(people, split, people.enrols * people.areas[area])
    rows = []
    for shift, weigh in ratios.estimate(area).items():
        weight = weigh(sample)
        kept = market.intersect(sample, weight)
        for coding in CODINGS:
            found = market.score(fit_least_squares(people, sample, weight, coding))
            rows.append({"area": area, "shift": shift, "coding": coding, **found, "kept": kept})
    return rows


def bootstrap_areas(people: Population, n_replicates: int, rng: np.random.Generator) -> list[Row]:
    """Return the bias without weights in every area on the whole survey, in sample, and its sampling error.

    Nothing is halved: what is left of bias is that the model is not the truth. The error is that of a Bayesian
    bootstrap over respondents; strata and clusters of the survey's design are not known here.
    """
    asked = [(area, coding) for area in people.areas for coding in CODINGS]
    weights = [people.weight * rng.standard_exponential(len(people.weight)) for _ in range(n_replicates)]
    drawn = {one: [_bias_on_all(people, weight, *one) for weight in [people.weight, *weights]] for one in asked}
    return [
        {"area": area, "coding": coding, "survey_bias": biases[0], "survey_error": float(np.std(biases[1:], ddof=1))}
        for (area, coding), biases in drawn.items()
    ]


def _bias_on_all(people: Population, weight: Floats, area: str, coding: str) -> float:
    mass = people.sum_by_cell(people.cell, weight) * people.enrols
    total = people.sum_by_cell(people.cell, weight * people.cost) * people.enrols
    every = np.arange(len(mass))
    predicted = fit_least_squares(people, Sample(people.cells, every, mass, total), np.ones(len(mass)), coding)
    there = people.areas[area]
    return float(mass * there @ predicted) / float(there @ total) - 1


def run_split(
    people: Population,
    split: Split,
    rng: np.random.Generator,
    ks: Sequence[int] = KS,
    ways: Sequence[str] = tuple(WAYS),
) -> dict[str, Any]:
    """Run the three experiments on prediction on one split of the survey."""
    released = dict(release_members(people, split, ks, ways, rng))
    released[UNTOUCHED, 1] = Sample.of_cells(people, split.member_cell, split.member_cost)
    ratios = Ratios(people, split)
    return {
        "without_shift": predict_without_shift(people, split, released),
        "areas": predict_areas(people, split, ratios),
        "area_18": predict_released_area(people, split, released, ratios),
    }
