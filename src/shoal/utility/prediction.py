"""How well costs are predicted, record by record and on the whole, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError
from shoal.people import read_weight
from shoal.randomness import make_generator

Floats = NDArray[np.float64]
Metric = Callable[..., float]


@dataclass(frozen=True)
class Measured:
    """A number and its interval."""

    value: float
    interval: tuple[float, float]
    confidence: float = 0.95

    def times(self, factor: float) -> Self:
        """Return the number and its interval, multiplied."""
        low, high = self.interval
        return replace(self, value=self.value * factor, interval=(low * factor, high * factor))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.4g} ({self.confidence:.0%} interval {low:.4g} to {high:.4g})"


def relative_bias(y: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return by how much predictions are too high on average, as a share of the mean response.

    sum w (predicted - y) / sum w y: 0.02 is two per cent too high. What counts where predictions are added up: errors
    of single records average out, the bias stays.

    Examples
    --------
    >>> relative_bias([1.0, 3.0], [2.0, 2.5])
    0.125
    """
    truth, guess, weight = _read(y, predicted, sample_weight)
    total = float(weight @ truth)
    if abs(total) <= 1e-12 * float(weight @ np.abs(truth)):
        raise InputError("The responses sum to 0, so there is no bias relative to them.")
    return float(weight @ (guess - truth)) / total


def r_squared(y: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Return the share of the responses' variance that predictions explain; below 0 if the mean would do better.

    Examples
    --------
    >>> r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.5
    """
    truth, guess, weight = _read(y, predicted, sample_weight)
    centre = float(weight @ truth) / float(weight.sum())
    spread = float(weight @ (truth - centre) ** 2)
    if spread <= 1e-24 * float(weight @ truth**2):
        raise InputError("All responses are equal, so there is no variance to explain.")
    return 1 - float(weight @ (guess - truth) ** 2) / spread


def bootstrap(
    metric: Metric,
    y: ArrayLike,
    predicted: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> Measured:
    """Return a metric with a bootstrap interval over records.

    Records are resampled by drawing their weights (the Bayesian bootstrap: Rubin 1981), so that no record ever
    vanishes. The model is taken as given: the interval is about the records it is tested on.

    Parameters
    ----------
    metric : relative_bias, r_squared, or any metric(y, predicted, sample_weight=...)
    y, predicted, sample_weight : arrays of shape (n,)
    n_resamples : int, default 1000
    confidence : float, default 0.95
    random_state : int or numpy.random.Generator, default 0

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).exponential(size=1000)
    >>> bias = bootstrap(relative_bias, y, np.ones(1000))
    >>> bias.interval[0] < bias.value < bias.interval[1]
    True
    """
    truth, guess, weight = _read(y, predicted, sample_weight)
    check_resampling(n_resamples, confidence)
    rng, n = make_generator(random_state), len(truth)
    draws = [metric(truth, guess, sample_weight=weight * rng.standard_exponential(n)) for _ in range(n_resamples)]
    return summarise(metric(truth, guess, sample_weight=weight), draws, confidence)


def check_resampling(n_resamples: int, confidence: float) -> None:
    """Refuse a number of resamples or a confidence that make no interval."""
    if n_resamples < 20:
        raise InputError(f"n_resamples={n_resamples!r} must be at least 20.")
    if not 0 < confidence < 1:
        raise InputError(f"confidence={confidence!r} must lie between 0 and 1.")


def summarise(value: float, draws: Sequence[float] | Floats, confidence: float) -> Measured:
    """Return a number with the quantiles of its resampled values."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Measured(float(value), (float(low), float(high)), confidence)


def _read(y: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Floats, Floats, Floats]:
    try:
        truth, guess = np.asarray(y, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
        given = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("y, predicted and sample_weight must be numbers, one for every record.") from None
    if truth.ndim != 1 or truth.shape != guess.shape or len(truth) == 0:
        raise InputError(f"y and predicted must have the same shape (n,), but have {truth.shape} and {guess.shape}.")
    if not np.isfinite(truth).all() or not np.isfinite(guess).all():
        raise InputError("y and predicted must not have missing or infinite values.")
    return truth, guess, read_weight(given, len(truth), "sample_weight")
