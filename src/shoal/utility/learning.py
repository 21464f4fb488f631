"""What a model learns from a release, tested on the original; the effects it finds; estimates for other populations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from shoal.encoding import EncodedColumn
from shoal.errors import InputError
from shoal.utility.designs import Effect, fits_dummies, make_design, predict, solve
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Measure = Callable[[NDArray[Any], Floats, Floats | None], float]
N_FOLDS = 5
N_RESAMPLES = 200
N_GROUPS = 10
RARE = 10  # people: fewer have no class, level or group of their own
_LEAST_EXPLAINED = 0.005  # R2, or 2 AUC - 1, of which a share means nothing
_MOST_CLASSES = 20


@dataclass(frozen=True)
class Kept:
    """How much of a model's score is left when it learns from the release instead of the original.

    Attributes
    ----------
    target, model, measure : str
        What is predicted, by which model, and how the score is measured.
    original, release : float
        Score on records of the original that were not learnt from.
    interval : (float, float)
        95 % interval of the share kept, over the records tested.
    groups : list of (float, float, float)
        Records in ten groups of expected response: means expected by the model of the original, by that of the
        release, and observed. Empty for classes.
    """

    target: str
    model: str
    measure: str
    original: float
    release: float
    interval: tuple[float, float]
    tested: int
    groups: list[tuple[float, float, float]]

    @property
    def share(self) -> float:
        """The score kept, as a share of the original's; NaN where the original explains next to nothing."""
        return self.release / self.original if self.original >= least_explained(self.tested) else float("nan")


@dataclass(frozen=True)
class Coefficient:
    """An effect in a linear model: on the original, on the release, and the original's standard error."""

    effect: Effect
    original: float
    release: float
    standard_error: float

    @property
    def shift(self) -> float:
        """By how many standard errors the effect has moved."""
        gap = self.release - self.original
        return gap / self.standard_error if self.standard_error > 0 else 0.0


def least_explained(n: int) -> float:
    """Return the score, R2 or 2 AUC - 1, from which on a share of it means something, when n records were tested.

    The standard error of R2 is about 2 sqrt(R2 / n): below 64 / n it is more than a quarter of R2 itself.
    """
    return max(_LEAST_EXPLAINED, 64 / max(n, 1))


def can_be_predicted(column: EncodedColumn) -> bool:
    """Return whether a column is a number or order that varies, or has 2 to 20 classes of ten rows or more."""
    if column.numbers is not None:
        known = column.numbers[~column.missing]
        return len(known) > 0 and bool(known.min() < known.max())
    return bool(2 <= (np.bincount(column.codes[~column.missing]) >= RARE).sum() <= _MOST_CLASSES)


def as_response(column: EncodedColumn) -> Floats:
    """Return a column as numbers, NaN where missing; of classes, whether it is the most frequent one."""
    if column.numbers is not None:
        return column.numbers
    commonest = np.bincount(column.codes[~column.missing]).argmax()
    return np.where(column.missing, np.nan, (column.codes == commonest).astype(np.float64))


def read_classes(column: EncodedColumn, n: int, rare: int) -> Index:
    """Return the classes of a column as 0, 1, ..., those of fewer than `rare` rows of the original together.

    If these are still few, they join the least frequent other class.
    """
    counts = np.bincount(column.codes[:n][~column.missing[:n]], minlength=column.n_levels)
    common = np.flatnonzero(counts >= rare)
    if not 2 <= len(common) <= _MOST_CLASSES:
        raise InputError(f"{column.name!r} must have 2 to {_MOST_CLASSES} classes of at least {rare} people.")
    place = np.full(column.n_levels, len(common) if counts.sum() - counts[common].sum() >= rare else -1)
    place[common] = np.arange(len(common))
    place[place < 0] = place[common[counts[common].argmin()]]
    return place[column.codes]


def score_kept(
    pair: Pair, target: EncodedColumn, rng: np.random.Generator, model: Any = None, rare: int = RARE
) -> Kept:
    """Train on the release and on the original, test on records of the original that neither has learnt from.

    Five folds of people. Where the release is aligned, it learns without the rows that stem from the people tested;
    else without as many rows drawn at random. Default: least squares, or logistic regression for classes, on a dummy
    for every level and ten bins of every number. Any other model, and the default where that would be more than some
    hundred columns, receives standardised numbers and dummies of nominal levels. Groups of expected response hold at
    least `rare` records, and so does every class. A row is a person.
    """
    _check_model(model, target)
    classes = target.numbers is None if model is None else is_classifier(model)
    y = read_classes(target, pair.n, rare) if classes else as_response(target)
    known = ~target.missing
    n, tested = pair.n, np.flatnonzero(known[: pair.n])
    if min(len(tested), known[n:].sum()) < 2 * rare:
        raise InputError(f"{target.name!r} is known of fewer than {2 * rare} people.")
    design = make_design(pair, dummies=model is None and fits_dummies(pair), rare=rare).matrix
    if design.shape[1] == 0:
        raise InputError(f"no quasi-identifier has numbers or levels that {rare} people have")
    folds = _folds(pair, rng)
    n_classes = int(y[known].max()) + 1 if classes else 0
    expected = np.zeros((2, n, n_classes) if classes else (2, n))
    for i in range(N_FOLDS):
        here = tested[folds[0][tested] == i]
        learners = np.flatnonzero(known[:n] & (folds[0] != i)), n + np.flatnonzero(known[n:] & (folds[1] != i))
        for which, rows in enumerate(learners if len(here) else ()):
            expected[which, here] = _learn(model, design, y, rows, here, n_classes)
    truth: NDArray[Any] = y[tested]
    one, two = expected[:, tested]
    measure: Measure = _gini if classes else _explained
    draws = [[measure(truth, found, weight) for found in (one, two)] for weight in _weights(len(tested), rng, classes)]
    ratios = [b / a for a, b in draws if a > 0]
    low, high = np.quantile(ratios, [0.025, 0.975]) if ratios else (np.nan, np.nan)
    default = "logistic regression" if classes else "least squares"
    return Kept(
        target.name,
        f"{default} on levels" if model is None else type(model).__name__,
        "2 AUC - 1" if classes else "R2",
        measure(truth, one, None),
        measure(truth, two, None),
        (float(low), float(high)),
        len(tested),
        [] if classes else _groups(one, two, truth, min(N_GROUPS, len(tested) // rare)),
    )


def _check_model(model: Any, target: EncodedColumn) -> None:
    if model is None:
        return
    if isinstance(model, type) or not hasattr(model, "fit") or not hasattr(model, "predict"):
        raise InputError(f"model must be a scikit-learn estimator, but it is {type(model).__name__}.")
    if target.numbers is None and not is_classifier(model):
        raise InputError(f"target={target.name!r} has classes, so model must be a classifier.")


def _folds(pair: Pair, rng: np.random.Generator) -> tuple[Index, Index]:
    """Return the fold of every row of original and release: aligned rows share it."""
    fold = rng.permutation(pair.n) % N_FOLDS
    return fold, fold if pair.aligned else rng.permutation(pair.n_released) % N_FOLDS


def _learn(model: Any, design: Floats, y: NDArray[Any], rows: Index, tested: Index, n_classes: int) -> Floats:
    """Return what is expected of the rows tested: numbers, or the chance of every class."""
    if n_classes and len(np.unique(y[rows])) == 1:  # in a tiny table, by chance
        return np.eye(n_classes)[y[rows[:1]].repeat(len(tested))]
    if model is None and not n_classes:
        return predict(design[tested], solve(design[rows], y[rows])[0])
    learner = LogisticRegression(max_iter=1000) if model is None else clone(model)
    learner.fit(design[rows], y[rows])
    if not n_classes:
        return np.asarray(learner.predict(design[tested]), dtype=np.float64)
    if not hasattr(learner, "predict_proba"):
        raise InputError(f"{type(learner).__name__} gives no probabilities (predict_proba); choose another classifier.")
    chances = np.zeros((len(tested), n_classes))
    chances[:, learner.classes_] = learner.predict_proba(design[tested])
    return chances


def _weights(n: int, rng: np.random.Generator, classes: bool) -> list[Floats]:
    """Return weights of resampled records (the Bayesian bootstrap); fewer for classes, whose score takes a sort."""
    return [rng.standard_exponential(n) for _ in range(N_RESAMPLES // 4 if classes else N_RESAMPLES)]


def _explained(y: NDArray[Any], predicted: Floats, weight: Floats | None) -> float:
    """Return R2."""
    centre = np.average(y, weights=weight)
    spread = np.average((y - centre) ** 2, weights=weight)
    return float(1 - np.average((y - predicted) ** 2, weights=weight) / spread) if spread > 0 else 0.0


def _gini(y: NDArray[Any], chances: Floats, weight: Floats | None) -> float:
    """Return 2 AUC - 1, 0 for guessing and 1 for certainty: every class against the others, by its share."""
    shares = np.bincount(y, minlength=chances.shape[1]) / len(y)
    there = np.flatnonzero((shares > 0) & (shares < 1))
    each = [2 * roc_auc_score(y == level, chances[:, level], sample_weight=weight) - 1 for level in there]
    return float(np.average(each, weights=shares[there])) if len(there) else 0.0


def _groups(one: Floats, two: Floats, truth: NDArray[Any], count: int) -> list[tuple[float, float, float]]:
    parts = np.array_split(np.argsort(one, kind="stable"), count) if count > 1 else []
    return [(float(one[p].mean()), float(two[p].mean()), float(truth[p].mean())) for p in parts]


def coefficients(pair: Pair, target: EncodedColumn, rare: int = RARE) -> list[Coefficient]:
    """Return the effects of a linear model of the response on original and release, in the response's deviations.

    Numbers count per standard deviation, levels against the most frequent one. A row is a person. Effects that rest on
    fewer than `rare` people are left out: an effect is a sum of responses times a_i, and where few a_i make up the
    whole, as for a level that one person has beyond what other columns say, it tells that person's response. They
    count as sum a^2 / max a^2 people.
    """
    y, n = as_response(target), pair.n
    design = make_design(pair, rare=rare)
    spread = float(np.nanstd(y[:n])) or 1.0
    parts = [np.flatnonzero(~np.isnan(y[:n])), n + np.flatnonzero(~np.isnan(y[n:]))]
    fits, told = [], np.ones(len(design.effects), dtype=bool)
    for rows in parts:
        fitted, inverse = solve(design.matrix[rows], y[rows] / spread)
        whole = np.column_stack([np.ones(len(rows)), design.matrix[rows]])
        parts_squared = (whole @ inverse[:, 1:]) ** 2
        most = parts_squared.max(axis=0, initial=0.0)
        told &= parts_squared.sum(axis=0) >= rare * np.where(most > 0, most, np.inf)
        fits.append(fitted[1:])
        if len(fits) == 1:
            freedom = len(rows) / max(len(rows) - whole.shape[1], 1)
            rest = y[rows] / spread - whole @ fitted
            errors = np.sqrt(freedom * (parts_squared * rest[:, None] ** 2).sum(axis=0))
    return [
        Coefficient(effect, float(fits[0][j]), float(fits[1][j]), float(errors[j]))
        for j, effect in enumerate(design.effects)
        if told[j]
    ]


def shift_error(pair: Pair, target: EncodedColumn, rng: np.random.Generator, rare: int = RARE) -> tuple[float, float]:
    """Return how wrong the mean response of another population is when estimated from the release, and by chance.

    The other population has more of the people of whom a model of the original expects high responses, or low ones
    (the mean of both errors): weights 1 + r and 1 - r, r the rank of the expectation from -1 to 1, learnt from other
    folds than the record's. The second number is the error to be expected of an independent sample. Relative to the
    mean of responses that are never negative, as costs are; else to their standard deviation. A dither that flattens
    the response against the quasi-identifiers shows here and in no margin.
    """
    y, n = as_response(target), pair.n
    design = make_design(pair, dummies=fits_dummies(pair), rare=rare).matrix
    known = ~np.isnan(y)
    rows, released = np.flatnonzero(known[:n]), n + np.flatnonzero(known[n:])
    if design.shape[1] == 0 or not len(rows) or not len(released):
        return float("nan"), float("nan")
    fold = np.concatenate(_folds(pair, rng))
    expected = np.zeros(len(y))
    for i in range(N_FOLDS):
        expected[fold == i] = predict(design[fold == i], solve(design[rows], y[rows], fold[rows] != i)[0])
    levels = np.sort(expected[rows])
    rank = (np.searchsorted(levels, expected, "left") + np.searchsorted(levels, expected, "right")) / len(levels) - 1
    scale = float(np.mean(y[rows])) if y[rows].min() >= 0 else float(np.std(y[rows]))
    errors, noise = [], []
    for weight in (1 + rank, 1 - rank):
        one, two = (float(np.average(y[part], weights=weight[part])) for part in (rows, released))
        deviation = weight[rows] * (y[rows] - one) / weight[rows].mean()
        errors.append(abs(two - one))
        noise.append(np.sqrt(2 / np.pi * 2 * np.mean(deviation**2) / len(rows)))
    return float(np.mean(errors)) / max(scale, 1e-300), float(np.mean(noise)) / max(scale, 1e-300)
