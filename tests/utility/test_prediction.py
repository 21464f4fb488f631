"""Bias, R2 and their intervals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import r2_score

from shoal.errors import InputError
from shoal.utility import bootstrap, r_squared, relative_bias


@pytest.fixture
def sample(rng):
    y = rng.exponential(1000, 400)
    return y, 0.5 * y + rng.normal(600, 200, 400), rng.exponential(size=400)


def test_weighted_values(sample):
    y, predicted, weight = sample
    assert r_squared(y, predicted, weight) == pytest.approx(r2_score(y, predicted, sample_weight=weight))
    assert relative_bias(y, predicted, weight) == pytest.approx((weight @ predicted) / (weight @ y) - 1)
    assert relative_bias(y, 1.1 * y) == pytest.approx(0.1)  # too high is positive
    counts = np.arange(400) % 3
    for metric in (relative_bias, r_squared):
        assert metric(np.repeat(y, counts), np.repeat(predicted, counts)) == pytest.approx(metric(y, predicted, counts))


def test_intervals_cover(rng):
    """Of 300 samples about 95 % have the true bias inside, and the interval has the width of theory."""
    inside, widths = [], []
    for _ in range(300):
        y = rng.exponential(size=200)
        found = bootstrap(relative_bias, y, np.full(200, 1.2), n_resamples=300, random_state=rng)
        inside.append(found.interval[0] < 0.2 < found.interval[1])
        widths.append(found.interval[1] - found.interval[0])
    assert 0.90 < np.mean(inside) < 0.98
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 1.2 / np.sqrt(200), rel=0.1)  # of 1.2 / mean(y), by delta


def test_intervals_are_repeatable_and_narrow_with_n(sample):
    y, predicted, weight = sample
    one = bootstrap(r_squared, y, predicted, weight)
    assert one == bootstrap(r_squared, y, predicted, weight)
    assert one.interval[0] < one.value < one.interval[1]
    more = bootstrap(r_squared, np.tile(y, 9), np.tile(predicted, 9), np.tile(weight, 9))
    assert np.diff(more.interval)[0] < 0.5 * np.diff(one.interval)[0]
    half = bootstrap(r_squared, y, predicted, weight, confidence=0.5)
    assert one.interval[0] < half.interval[0] < half.interval[1] < one.interval[1]
    assert str(half).endswith(")")
    assert one.times(2).interval == (2 * one.interval[0], 2 * one.interval[1])


@pytest.mark.parametrize(
    ("y", "predicted", "options", "text"),
    [
        ([1.0], [1.0, 2.0], {}, "same shape"),
        ([1.0, np.nan], [1.0, 2.0], {}, "missing"),
        (["a", "b"], [1.0, 2.0], {}, "numbers"),
        ([1.0, 2.0], [1.0, 2.0], {"sample_weight": ["secret", 1]}, "must be numbers, one for"),
        ([1.0, 2.0], [1.0, 2.0], {"sample_weight": [1.0]}, "sample_weight"),
        ([1.0, 2.0], [1.0, 2.0], {"n_resamples": 3}, "n_resamples"),
        ([1.0, 2.0], [1.0, 2.0], {"confidence": 95}, "confidence"),
    ],
)
def test_wrong_input_is_refused(y, predicted, options, text):
    with pytest.raises(InputError, match=text):
        bootstrap(relative_bias, y, predicted, **options)


def test_nothing_to_be_relative_to():
    with pytest.raises(InputError, match="sum to 0"):
        relative_bias([1.0, -1.0], [0.0, 0.0])
    with pytest.raises(InputError, match="All responses are equal"):
        r_squared([1.0, 1.0], [0.0, 0.0])
    with pytest.raises(InputError, match="sum to 0"):
        relative_bias([0.1, 0.2, -0.3], [1.0, 1.0, 1.0])  # but for rounding
    with pytest.raises(InputError, match="All responses are equal"):
        r_squared([0.1] * 3, [0.1, 0.2, 0.3])
