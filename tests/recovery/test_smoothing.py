from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from shoal.recovery.smoothing import _find_bins, smooth_values


def smoothed(values, k, seed=0):
    values = np.asarray(values, dtype=float)
    return smooth_values(values, np.arange(len(values)), k, np.random.default_rng(seed))


def test_values_are_new_near_and_of_the_same_distribution(rng):
    values = rng.lognormal(10, 1, 5000).round()
    new = smoothed(values, 10)
    assert np.isin(new, values).mean() < 0.01
    assert kstest(new, values).pvalue > 0.9
    assert new.mean() == pytest.approx(values.mean(), rel=0.02)
    assert np.corrcoef(np.argsort(np.argsort(new)), np.argsort(np.argsort(values)))[0, 1] > 0.999


def test_shared_values_stay_and_rare_ones_do_not(rng):
    values = np.concatenate([np.zeros(50), rng.uniform(1, 2, 50), np.full(20, 2.5), [7.0]])
    new = smoothed(values, 10)
    assert np.isnan(new[:50]).all()  # to be kept
    assert np.isnan(new[100:120]).all()
    assert not np.isin(new[50:100], values).any()
    assert new[120] != 7.0
    assert new[120] >= 2.5


def test_the_largest_value_neither_appears_nor_bounds(rng):
    values = np.append(rng.uniform(0, 1, 1000), 1000.0)
    tops = [smoothed(values, 10, seed).max() for seed in range(200)]
    assert max(tops) < 1000
    further = np.append(values[:-1], 1e6)  # how far out the largest is shows only through the mean of ten
    assert np.quantile(tops, 0.5) < 300 < np.quantile([smoothed(further, 10, seed).max() for seed in range(200)], 0.5)
    means = [smoothed(values, 10, seed).mean() for seed in range(200)]
    assert np.mean(means) == pytest.approx(values.mean(), rel=0.1)  # yet the tail is not cut off


def test_missing_stays_missing_and_never_negative_stays_so():
    new = smoothed([np.nan, 0.0, 0.1, 5.0, 9.0, 9.5], 3)
    assert np.isnan(new[0])
    assert (new[1:] >= 0).all()


@given(counts=st.lists(st.integers(1, 12), min_size=1, max_size=40), k=st.integers(2, 9))
def test_bins_hold_k_rows_wherever_their_run_does(counts, k):
    counts = np.array(counts)
    bins = _find_bins(counts, k)
    covered = [i for start, stop in bins for i in range(start, stop)]
    assert covered == [i for i, c in enumerate(counts) if c < k]  # every rare value once, no shared one
    for start, stop in bins:
        run_start, run_stop = start, stop
        while run_start > 0 and counts[run_start - 1] < k:
            run_start -= 1
        while run_stop < len(counts) and counts[run_stop] < k:
            run_stop += 1
        assert counts[start:stop].sum() >= min(k, counts[run_start:run_stop].sum())
