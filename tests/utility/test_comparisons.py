"""Distances between two samples: closed forms, scipy as oracle, and what an independent sample would score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp, spearmanr, wasserstein_distance
from sklearn.metrics import mutual_info_score

import shoal
from shoal import utility
from shoal.utility import dependence, marginals
from shoal.utility.pairs import Pair, reference

QI = ["sex", "age", "education", "income"]
samples = st.lists(st.integers(-5, 5).map(float), min_size=3, max_size=40)


@given(samples, samples)
def test_distances_agree_with_scipy(a, b):
    one, two = np.array(a)[:, None], np.array(b)[:, None]
    assert utility.ks_distance(one, two)[0] == pytest.approx(ks_2samp(a, b, method="asymp").statistic, abs=1e-12)
    if np.ptp(a) > 0:
        expected = wasserstein_distance(a, b) / np.std(a)
        assert utility.wasserstein_distance(one, two)[0] == pytest.approx(expected, abs=1e-12)


def test_missing_values_are_left_out_and_levels_have_no_such_distance():
    a = pl.DataFrame({"x": [1.0, 2.0, None, 4.0], "level": ["a", "b", "a", "b"]})
    b = pl.DataFrame({"x": [1.0, None, None, 4.0], "level": ["b", "b", "a", "b"]})
    assert utility.ks_distance(a, b)[0] == pytest.approx(1 / 6)
    assert np.isnan(utility.ks_distance(a, b)[1])
    assert np.isnan(utility.wasserstein_distance(a, b)[1])


def test_wasserstein_of_huge_and_constant_numbers():
    assert utility.wasserstein_distance([[1e300], [3e300]], [[1e300], [3e300]])[0] == 0
    assert utility.wasserstein_distance([[1e300], [3e300]], [[3e300], [3e300]])[0] == pytest.approx(1.0)
    assert utility.wasserstein_distance([[2.0], [2.0]], [[2.0], [3.0]])[0] == np.inf


def test_correlations_and_information_agree_with_scipy_and_sklearn(rng):
    x = np.column_stack([rng.integers(0, 6, 500), rng.integers(0, 4, 500)]).astype(float)
    x = np.column_stack([x, x[:, 0] + rng.integers(0, 3, 500)])
    y = np.column_stack([rng.permutation(column) for column in x.T])
    expected = spearmanr(y).statistic - spearmanr(x).statistic
    assert utility.correlation_difference(x, y) == pytest.approx(expected, abs=1e-12)
    found = dependence.informations([column.astype(np.int64) for column in x.T])
    for i in range(3):
        for j in range(3):
            bits = mutual_info_score(x[:, i], x[:, j]) / np.log(2)
            assert found[i, j] == pytest.approx(bits, abs=1e-12)


def test_shuffling_one_column_shows_in_dependence_and_nowhere_else(rng):
    cohort = shoal.datasets.load_cohort(4000)
    other = cohort.with_columns(cost=cohort["cost"].sample(fraction=1, shuffle=True, seed=1))
    assert utility.ks_distance(cohort[["age", "cost"]], other[["age", "cost"]]).max() == 0
    change = utility.correlation_difference(cohort[["age", "cost"]], other[["age", "cost"]])
    assert change[0, 1] < -0.3
    assert utility.information_difference(cohort[["age", "cost"]], other[["age", "cost"]])[0, 1] < -0.05
    assert utility.propensity(cohort[[*QI, "cost"]], other[[*QI, "cost"]]).z > 10


def test_propensity_of_an_independent_sample_is_that_of_random_labels():
    a, b = (shoal.datasets.load_cohort(3000, random_state=seed)[[*QI, "cost"]] for seed in (0, 1))
    found = utility.propensity(a, b)
    assert 0.3 < found.ratio < 2
    assert abs(found.z) < 3
    assert found.null.mean() == pytest.approx(np.mean(found.null))
    same = utility.propensity(a, a)
    assert same.pmse == pytest.approx(0, abs=1e-12)


def test_propensity_null_mean_is_that_of_theory(rng):
    """Of labels permuted at random, a projection on p dimensions explains p / (N - 1) of their variance."""
    a, b = rng.normal(size=(400, 1)), rng.normal(size=(400, 1))
    found = utility.propensity(a, b, n_permutations=2000)
    assert found.null.mean() == pytest.approx(0.25 * 2 / 799, rel=0.1)  # a number and its square


def test_propensity_of_many_columns_is_bounded_in_its_terms(rng):
    a, b = rng.normal(size=(300, 60)), rng.normal(size=(300, 60))
    assert 0 < utility.propensity(a, b, n_permutations=10).pmse < 0.25


@pytest.mark.parametrize("metric", [marginals.joint_of, marginals.marginals_of, marginals.ks_of])
def test_the_reference_is_what_an_independent_sample_scores(metric):
    """Made from one sample only, it agrees with what other samples of the same population do."""
    first = shoal.datasets.load_cohort(6000)[QI]
    real = np.mean(
        [metric(Pair.read(first, shoal.datasets.load_cohort(6000, random_state=s)[QI])) for s in (1, 2, 3, 4)], axis=0
    )
    expected = reference(Pair.read(first, first), metric, np.random.default_rng(0))
    assert np.nanmean(expected) == pytest.approx(np.nanmean(real), rel=0.25)
    if metric is marginals.joint_of:
        assert expected[0] == pytest.approx(real[0], rel=0.05)


def test_a_reference_from_smaller_samples_goes_on_from_there():
    first = shoal.datasets.load_cohort(20_000)[QI]
    pair = Pair.read(first, first)
    whole = reference(pair, marginals.marginals_of, np.random.default_rng(0))
    part = reference(pair, marginals.marginals_of, np.random.default_rng(1), most=2000)
    assert part.mean() == pytest.approx(whole.mean(), rel=0.4)


def test_nobody_is_in_both_halves():
    person = np.repeat(np.arange(50), 4)
    columns = Pair.read(person[:, None].astype(float), person[:, None].astype(float)).columns
    half = Pair(columns, 200, person=person).independent(100, np.random.default_rng(0))
    one, two = (set(column.numbers.tolist()) for column in (half.of(0)[0], half.of(1)[0]))
    assert not one & two
    assert len(one) == len(two) == 25


def test_samples_of_aligned_pairs_stay_aligned(rng):
    x = rng.normal(size=(500, 1))
    pair = replace(Pair.read(x, x), aligned=True).sampled(60, rng)
    assert pair.n == 60
    assert (pair.of(0)[0].numbers == pair.of(1)[0].numbers).all()
    loose = Pair.read(x, x[:100]).sampled(60, rng)
    assert (loose.n, loose.n_released) == (60, 60)


def test_of_too_few_people_nothing_is_known_about_chance():
    rng, one = np.random.default_rng(0), Pair.read([[1.0]] * 7, [[1.0]] * 7)
    assert np.isnan(reference(one, marginals.joint_of, rng)).all()
    many_rows = Pair(Pair.read([[1.0]] * 70, [[1.0]] * 70).columns, 70, person=np.repeat(np.arange(7), 10))
    assert np.isnan(reference(many_rows, marginals.joint_of, rng)).all()


def test_one_row_of_everybody(rng):
    person = np.repeat(np.arange(50), np.arange(50) % 4 + 1)
    x = (person * 10.0 + rng.integers(0, 10, len(person)))[:, None]
    pair = replace(Pair.read(x, x + 0.5), person=person, aligned=True).one_row_each(rng)
    assert pair.n == pair.n_released == 50
    assert (np.floor(pair.of(0)[0].numbers / 10) == np.arange(50)).all()
    assert (pair.of(1)[0].numbers - pair.of(0)[0].numbers == 0.5).all()
    loose = replace(Pair.read(x, x[:30]), person=person).one_row_each(rng)
    assert (loose.n, loose.n_released) == (50, 30)


def test_levels_are_the_same_in_tables_of_other_dtypes():
    a = pl.DataFrame({"zip": [1, 2, 2, 3]})
    b = pl.DataFrame({"zip": [1.0, 2.0, 2.0, 3.0]})
    pair = Pair.read(a, b, {"zip": "nominal"})
    assert marginals.joint_of(pair)[0] == 0
