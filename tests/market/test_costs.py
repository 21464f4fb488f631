"""Cost models: closed forms, weights, scikit-learn's checks."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import GammaRegressor, LinearRegression, TweedieRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import check_estimator

from shoal.datasets import load_cohort
from shoal.errors import InputError
from shoal.market import COST_MODELS, SmearedLogRegressor, TableCoder, TwoPartRegressor, make_cost_model
from shoal.shift import importance_weighted_fit
from shoal.utility import relative_bias

X_COLUMNS = ["sex", "age_group", "education", "income"]


@pytest.fixture(scope="module")
def cohort():
    return load_cohort(6000, 11)


@pytest.fixture
def weights():
    return np.random.default_rng(0).exponential(size=6000)


@pytest.mark.parametrize("coding", ["dummy", "numeric"])
@pytest.mark.parametrize("name", COST_MODELS)
def test_every_model_is_right_on_the_whole(name, coding, cohort, weights):
    """In the training weights: additive and multiplicative exactly, by their normal equations; the rest nearly."""
    table = cohort if name != "log" else cohort.filter(pl.col("cost") > 0)
    w = weights[: len(table)]
    model = importance_weighted_fit(make_cost_model(name, coding), table[X_COLUMNS], table["cost"].to_numpy(), ratio=w)
    bias = relative_bias(table["cost"], model.predict(table[X_COLUMNS]), w)
    exact = name in ("additive", "multiplicative")
    assert abs(bias) < (1e-6 if exact else 0.15)
    again = importance_weighted_fit(
        make_cost_model(name, coding), table[X_COLUMNS].to_pandas(), table["cost"].to_numpy(), ratio=w
    )
    np.testing.assert_allclose(again.predict(table[X_COLUMNS]), model.predict(table[X_COLUMNS]), rtol=1e-6)


def test_dummies_are_a_coefficient_a_level(cohort, weights):
    """The additive dummy-coded model by hand: indicator columns, weighted least squares."""
    y = cohort["cost"].to_numpy()
    model = importance_weighted_fit(make_cost_model("additive"), cohort[X_COLUMNS], y, ratio=weights)
    codes = [cohort[c].cast(pl.String).rank("dense").to_numpy() for c in X_COLUMNS]
    design = np.hstack([np.ones((6000, 1)), *[code[:, None] == np.unique(code)[1:] for code in codes]])
    root = np.sqrt(weights)
    beta = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose(model.predict(cohort[X_COLUMNS]), design @ beta, rtol=1e-6)


def test_numeric_is_one_slope_a_column(cohort):
    y = cohort["cost"].to_numpy()
    model = make_cost_model("additive", "numeric").fit(cohort[X_COLUMNS], y)
    design = np.column_stack([(cohort["sex"] == "male").to_numpy(), *[cohort[c].to_physical() for c in X_COLUMNS[1:]]])
    expected = LinearRegression().fit(design.astype(float), y).predict(design)
    np.testing.assert_allclose(model.predict(cohort[X_COLUMNS]), expected, rtol=1e-8)


def test_multiplicative_meets_the_total_of_every_level(cohort, weights):
    y = cohort["cost"].to_numpy()
    model = importance_weighted_fit(make_cost_model("multiplicative"), cohort[X_COLUMNS], y, ratio=weights)
    predicted = model.predict(cohort[X_COLUMNS])
    assert (predicted > 0).all()
    for column in X_COLUMNS:
        for level in cohort[column].unique():
            rows = (cohort[column] == level).to_numpy()
            assert weights[rows] @ predicted[rows] == pytest.approx(weights[rows] @ y[rows], rel=1e-5)


def test_smearing_by_hand(cohort, weights):
    X = np.random.default_rng(1).normal(size=(6000, 2))
    y = np.exp(X @ [0.5, -0.3] + np.random.default_rng(2).normal(size=6000))
    model = SmearedLogRegressor().fit(X, y, sample_weight=weights)
    line = LinearRegression().fit(X, np.log(y), sample_weight=weights)
    smear = np.average(np.exp(np.log(y) - line.predict(X)), weights=weights)
    np.testing.assert_allclose(model.predict(X), np.exp(line.predict(X)) * smear)
    assert model.smearing_ == pytest.approx(np.exp(0.5), rel=0.1)  # E exp(N(0, 1))
    assert abs(relative_bias(y, model.predict(X), weights)) < 0.05
    assert relative_bias(y, np.exp(line.predict(X)), weights) < -0.3  # without smearing


def test_two_parts_by_hand(cohort, weights):
    X = (cohort["sex"] == "male").to_numpy()[:, None].astype(float)
    y = cohort["cost"].to_numpy()
    model = TwoPartRegressor(regressor=LinearRegression()).fit(X, y, sample_weight=weights)
    for sex in (0.0, 1.0):
        rows = X[:, 0] == sex
        assert model.predict([[sex]])[0] == pytest.approx(np.average(y[rows], weights=weights[rows]), rel=1e-3)
    other = TwoPartRegressor(RandomForestClassifier(5, random_state=0), GammaRegressor()).fit(X, y)
    assert other.predict(X).mean() == pytest.approx(y.mean(), rel=0.05)


def test_two_parts_where_there_is_one():
    X = np.arange(20.0)[:, None]
    np.testing.assert_array_equal(TwoPartRegressor().fit(X, np.zeros(20)).predict(X), 0.0)
    unpaid = TwoPartRegressor().fit(X, X[:, 0], sample_weight=(X[:, 0] == 0).astype(float))
    np.testing.assert_array_equal(unpaid.predict(X), 0.0)
    np.testing.assert_allclose(TwoPartRegressor().fit(X, np.exp(X[:, 0] / 10)).predict(X), np.exp(X[:, 0] / 10))


def test_tweedie_is_that_of_scikit_learn(cohort):
    y = cohort["cost"].to_numpy()
    coder = TableCoder().fit(cohort[X_COLUMNS])
    design = coder.transform(cohort[X_COLUMNS])
    expected = TweedieRegressor(power=1.5, alpha=0, link="log", max_iter=5000, tol=1e-7).fit(design, y).predict(design)
    found = make_cost_model("tweedie").fit(cohort[X_COLUMNS], y).predict(cohort[X_COLUMNS])
    np.testing.assert_allclose(found, expected, rtol=2e-2)


def test_a_duplicate_is_twice_the_weight(cohort):
    table = cohort[:800]
    times = np.arange(800) % 3 + 1
    y = table["cost"].to_numpy()
    for name in ("additive", "two-part", "gamma", "tweedie", "multiplicative"):
        weighted = importance_weighted_fit(make_cost_model(name), table[X_COLUMNS], y, ratio=times)
        repeated = make_cost_model(name).fit(table[np.repeat(np.arange(800), times)][X_COLUMNS], np.repeat(y, times))
        np.testing.assert_allclose(
            weighted.predict(table[X_COLUMNS]), repeated.predict(table[X_COLUMNS]), rtol=1e-4, err_msg=name
        )


def test_levels_never_seen_are_the_average_person():
    table = pl.DataFrame({"zip": ["a", "a", "b", "c"]})
    model = make_cost_model("additive").fit(table, [1.0, 1.0, 3.0, 7.0])
    assert model.predict(pl.DataFrame({"zip": ["z"]}))[0] == pytest.approx(3.0)  # the mean
    np.testing.assert_allclose(model.predict(table), [1, 1, 3, 7])


def test_many_levels_have_a_bounded_number_of_columns(rng):
    table = pl.DataFrame(
        {"zip": rng.choice([f"{i:05}" for i in range(400)], 5000, p=np.r_[[0.9], np.full(399, 0.1 / 399)])}
    )
    design = TableCoder().fit_transform(table)
    assert design.shape[1] == 100
    assert np.abs(design[(table["zip"] == "00000").to_numpy()]).max() < 0.01  # the reference, centred
    ages = np.round(rng.normal(50, 20, (5000, 1)), 1)
    assert TableCoder(n_bins=7).fit_transform(ages).shape[1] == 6
    assert TableCoder("numeric").fit_transform(ages).shape[1] == 1


def test_missing_values_that_were_not_there_are_the_average_person():
    table = pl.DataFrame({"zip": ["a"] * 6 + ["b"] * 3 + ["c"] * 3})
    model = make_cost_model("additive").fit(table, [10.0] * 6 + [100.0] * 3 + [1000.0] * 3)
    np.testing.assert_allclose(model.predict(pl.DataFrame({"zip": ["a", "z", None]})), [10, 280, 280])


def test_a_constant_number_has_no_effect(rng):
    X = np.column_stack([np.full(1000, 0.3), rng.normal(size=1000)])
    model = make_cost_model("multiplicative", "numeric").fit(X, rng.gamma(1, 100, 1000))
    assert model.predict([[0.301, 0.0]])[0] == pytest.approx(model.predict([[0.3, 0.0]])[0], rel=0.01)


def test_a_record_without_weight_spoils_nothing():
    model = SmearedLogRegressor().fit([[0.0], [1.0], [2.0], [1e4]], [4.0, 2.0, 1.0, 1.0], sample_weight=[1, 1, 1, 0])
    assert model.predict([[1.0]])[0] == pytest.approx(2.0)


def test_missing_values_have_an_effect_of_their_own():
    table = pl.DataFrame({"age": [20.0, 30.0, None, None]})
    for coding in ("dummy", "numeric"):
        model = make_cost_model("additive", coding).fit(table, [2.0, 3.0, 9.0, 11.0])
        np.testing.assert_allclose(model.predict(table), [2, 3, 10, 10], atol=1e-9)


@pytest.mark.parametrize(
    "estimator", [SmearedLogRegressor(offset=1e4), TwoPartRegressor()], ids=lambda e: type(e).__name__
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:Can't check dok sparse matrix")
def test_scikit_learn_agrees(estimator):
    check_estimator(estimator)


def test_wrong_input_is_refused():
    X = np.ones((4, 1))
    with pytest.raises(InputError, match="use a two-part model"):
        make_cost_model("log").fit(X, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="must not be negative"):
        make_cost_model("two-part").fit(X, [-1.0, 1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="name='logg' is not a cost model; did you mean 'log'"):
        make_cost_model("logg")
    with pytest.raises(InputError, match="coding='onehot'"):
        TableCoder("onehot").fit(X)
    with pytest.raises(InputError, match="sample weights"):
        TwoPartRegressor(regressor=KNeighborsRegressor()).fit(X, [0.0, 1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="must have 1 columns"):
        TableCoder().fit(X).transform(np.ones((4, 2)))
    assert clone(make_cost_model("gamma")) is not None
