"""Fitting and cross-validating for another population."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, max_error, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from shoal.errors import InputError
from shoal.shift import EmpiricalRatio, LogisticRatio, RakedRatio, importance_weighted_cv, importance_weighted_fit
from shoal.utility import relative_bias


@pytest.fixture
def data(gaussian):
    shift = gaussian(4000, 3000, d=1)
    rng = np.random.default_rng(5)

    def respond(X):
        return np.sin(X[:, 0]) * 3 + X[:, 0] ** 2 + rng.normal(size=len(X)) / 2

    return shift.source, respond(shift.source), shift.target, respond(shift.target)


def weighted_line(X, y, weights):
    design = np.column_stack([np.ones(len(X)), X]) * np.sqrt(weights)[:, None]
    return np.linalg.lstsq(design, y * np.sqrt(weights), rcond=None)[0]


def test_a_fit_is_weighted_least_squares(data):
    X, y, target, _ = data
    omega = np.linspace(1, 3, len(y))
    ratio = LogisticRatio().fit(X, target, weight_source=omega)
    expected = weighted_line(X, y, omega * ratio.weights_)
    for model in (
        importance_weighted_fit(LinearRegression(), X, y, target, sample_weight=omega),
        importance_weighted_fit(LinearRegression(), X, y, ratio=ratio, sample_weight=omega),
        importance_weighted_fit(LinearRegression(), X, y, ratio=ratio.weights_, sample_weight=omega),
    ):
        np.testing.assert_allclose([model.intercept_, model.coef_[0]], expected, rtol=1e-6)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), LinearRegression()),
        make_pipeline(StandardScaler(), make_pipeline(PolynomialFeatures(1, include_bias=False), LinearRegression())),
        TransformedTargetRegressor(LinearRegression()),
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1e-12]}),
        VotingRegressor([("a", LinearRegression()), ("b", LinearRegression())]),
        TransformedTargetRegressor(),
        StackingRegressor([("a", LinearRegression())], final_estimator=LinearRegression()),
    ],
    ids=["pipeline", "nested", "transformed", "search", "voting", "transformed by default", "stacking"],
)
def test_weights_reach_the_model_inside(estimator, data):
    X, y, target, _ = data
    weights = LogisticRatio().fit(X, target).weights_
    intercept, slope = weighted_line(X, y, weights)
    model = importance_weighted_fit(estimator, X, y, target)
    np.testing.assert_allclose(model.predict([[2.0]]), intercept + 2 * slope, rtol=1e-3)  # stacking: fitted in folds
    assert not hasattr(estimator, "n_features_in_")  # a clone was fitted


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsRegressor(),
        make_pipeline(StandardScaler(), KNeighborsRegressor()),
        GaussianProcessRegressor(),
        TransformedTargetRegressor(KNeighborsRegressor()),
        GridSearchCV(KNeighborsRegressor(), {"n_neighbors": [3]}),
        VotingRegressor([("a", LinearRegression()), ("b", KNeighborsRegressor())]),
        CalibratedClassifierCV(KNeighborsClassifier()),  # scikit-learn would warn, and leave the weights out
        CalibratedClassifierCV(make_pipeline(StandardScaler(), LogisticRegression())),  # likewise
        VotingRegressor([("a", make_pipeline(StandardScaler(), LinearRegression()))]),  # scikit-learn cannot
        StackingRegressor([("a", LinearRegression())], final_estimator=KNeighborsRegressor()),
        MultiOutputRegressor(make_pipeline(StandardScaler(), LinearRegression())),
        OneVsRestClassifier(LogisticRegression()),
        BaggingRegressor(KNeighborsRegressor()),
        make_pipeline(StandardScaler(), "passthrough"),
        "no estimator",
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_estimator_without_weights_is_an_error(estimator, data):
    X, y, target, _ = data
    with pytest.raises((InputError, TypeError), match="sample weights|Cannot clone"):
        importance_weighted_fit(estimator, X, y, target)


def test_metadata_routing_is_followed(data):
    X, y, target, _ = data
    expected = importance_weighted_fit(make_pipeline(StandardScaler(), LinearRegression()), X, y, target).predict(X[:5])
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(StandardScaler(), LinearRegression().set_fit_request(sample_weight=True))
        model.steps[0][1].set_fit_request(sample_weight=False)
        np.testing.assert_allclose(importance_weighted_fit(model, X, y, target).predict(X[:5]), expected)
        asked = LinearRegression().set_fit_request(sample_weight=True)
        for silent in (
            make_pipeline(StandardScaler().set_fit_request(sample_weight=True), KNeighborsRegressor()),
            VotingRegressor([("a", asked), ("b", KNeighborsRegressor())]),
            BaggingRegressor(KNeighborsRegressor()),
        ):
            with pytest.raises(InputError, match="sample weights"):
                importance_weighted_fit(silent, X, y, target)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            importance_weighted_fit(make_pipeline(StandardScaler(), LinearRegression()), X, y, target)


def test_tables_margins_and_columns_the_target_does_not_have():
    rng = np.random.default_rng(1)
    source = pl.DataFrame({"sex": rng.choice(["f", "m"], 500), "height": rng.normal(170, 9, 500)})
    y = source["height"].to_numpy() / 10 + (source["sex"] == "f").to_numpy() * rng.normal(3, 1, 500)
    target = pl.DataFrame({"sex": ["f"] * 80 + ["m"] * 20})
    coder = make_column_transformer((OneHotEncoder(), ["sex"]), remainder="passthrough")
    model = make_pipeline(coder, LinearRegression())
    women = (source["sex"] == "f").to_numpy()
    weights = np.where(women, 0.8 / women.mean(), 0.2 / (1 - women.mean()))
    expected = importance_weighted_fit(model, source, y, ratio=weights).predict(source[:3])
    for options in (
        {"X_target": target, "ratio": EmpiricalRatio()},
        {"X_target": {"sex": {"f": 80, "m": 20}}},
        {"X_target": {"sex": {"f": 80, "m": 20}}, "ratio": RakedRatio()},
    ):
        for X in (source, source.to_pandas()):
            np.testing.assert_allclose(importance_weighted_fit(model, X, y, **options).predict(X[:3]), expected)


def test_cross_validation_sees_the_target(data):
    """The held-out error in the weights is that on the target, the plain one is not (Sugiyama et al.)."""
    X, y, target, y_target = data
    for weighted_fit in (True, False):
        found = importance_weighted_cv(
            LinearRegression(), X, y, target, scoring="neg_mean_squared_error", weighted_fit=weighted_fit
        )
        weights = LogisticRatio().fit(X, target).weights_ if weighted_fit else np.ones(len(y))
        model = importance_weighted_fit(LinearRegression(), X, y, ratio=weights)
        truth = -mean_squared_error(y_target, model.predict(target))
        assert found.mean == pytest.approx(truth, rel=0.1)
        assert abs(found.source_scores.mean() / truth - 1) > 0.2
        assert 0 < found.standard_error < abs(found.mean)
        assert found.weights.mean() == pytest.approx(1)


def test_cross_validation_by_hand(data):
    X, y, target, _ = data
    X, y = X[:300], y[:300]
    omega = np.linspace(1, 2, 300)
    ratio = LogisticRatio().fit(X, target, weight_source=omega)
    folds = KFold(3)
    found = importance_weighted_cv(
        LinearRegression(), X, y, ratio=ratio, sample_weight=omega, cv=folds, scoring=relative_bias
    )
    total = omega * ratio.weights_
    for f, (train, test) in enumerate(folds.split(X)):
        a, b = weighted_line(X[train], y[train], total[train])
        predicted = a + b * X[test, 0]
        np.testing.assert_allclose(found.predicted[test], predicted)
        assert found.scores[f] == pytest.approx(relative_bias(y[test], predicted, total[test]))
        assert found.source_scores[f] == pytest.approx(relative_bias(y[test], predicted, omega[test]))


def test_cross_validation_of_classifiers_tables_and_sparse_matrices():
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=900), "b": rng.normal(size=900)})
    y = np.where(rng.random(900) < 1 / (1 + np.exp(-2 * X["a"])), "yes", "no")
    target = X.sample(400, random_state=0, weights=np.exp(X["a"]), replace=True)
    found = importance_weighted_cv(DecisionTreeClassifier(max_depth=2), X, y, target)
    assert set(found.predicted) == {"yes", "no"}
    assert 0.6 < found.mean < 1
    auc = importance_weighted_cv(LogisticRegression(), X, y, target, scoring="roc_auc", random_state=1)
    assert 0.7 < auc.mean < 1
    same = importance_weighted_cv(LogisticRegression(), X, y, target, scoring="roc_auc", random_state=1)
    np.testing.assert_array_equal(same.scores, auc.scores)
    matrix = importance_weighted_cv(LogisticRegression(), sparse.csr_array(X), y, ratio=np.ones(900), scoring="roc_auc")
    assert 0.7 < matrix.mean < 1
    rows = importance_weighted_cv(LinearRegression(), X.to_numpy().tolist(), X["a"] * 2, ratio=np.ones(900))
    assert rows.mean == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "X_target is needed"),
        ({"ratio": EmpiricalRatio()}, "X_target is needed"),
        ({"ratio": np.ones(3)}, "ratio must be"),
        ({"ratio": np.ones(40), "X_target": np.ones((4, 1))}, "X_target has no use"),
        ({"ratio": EmpiricalRatio(), "X_target": {"x0": {1: 1}}}, "EmpiricalRatio does not take"),
        ({"X_target": pl.DataFrame({"z": [1.0]})}, "X_target has"),
        ({"X_target": pl.DataFrame({"x": [1.0]}), "ratio": RakedRatio()}, "needs X_target to be a mapping"),
        ({"ratio": np.r_[np.ones(8), np.zeros(32)], "cv": KFold(5)}, "weight 0 only"),
        ({"ratio": np.ones(40), "scoring": "r3"}, "scoring='r3'"),
        ({"ratio": np.ones(40), "scoring": max_error}, "scoring must take sample_weight"),
        ({"ratio": np.ones(40), "cv": 1}, "cv=1 must lie"),
        ({"ratio": np.ones(40), "cv": ShuffleSplit(3)}, "every record exactly once"),
        ({"ratio": np.r_[np.ones(20), np.zeros(20)], "sample_weight": np.r_[np.zeros(20), np.ones(20)]}, "any weight"),
    ],
)
def test_wrong_input_is_refused(options, text):
    X = pl.DataFrame({"x": np.arange(40.0)})
    with pytest.raises(InputError, match=text):
        importance_weighted_cv(LinearRegression(), X, np.arange(40.0), **options)


def test_folds_and_scores_in_other_forms(data):
    X, y, target, _ = data
    expected = importance_weighted_cv(LinearRegression(), X, y, target, cv=KFold(3), scoring="neg_mean_squared_error")
    scorer = make_scorer(mean_squared_error, greater_is_better=False)
    for cv in (list(KFold(3).split(X)), KFold(np.int64(3))):
        found = importance_weighted_cv(LinearRegression(), X, y, target, cv=cv, scoring=scorer)
        np.testing.assert_allclose(found.scores, expected.scores)
    assert len(importance_weighted_cv(LinearRegression(), X, y, target, cv=np.int64(4)).scores) == 4
    plain = importance_weighted_cv(KNeighborsRegressor(), X, y, target, weighted_fit=False)  # no weights are needed
    assert plain.mean > 0.5


def test_responses_of_another_length_are_refused():
    with pytest.raises(InputError, match="y must have 40 values"):
        importance_weighted_cv(LinearRegression(), np.ones((40, 1)), np.ones(3), ratio=np.ones(40))
