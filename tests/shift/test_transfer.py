"""Transfer weights against their closed form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from shoal.errors import InputError
from shoal.shift import EmpiricalRatio, LogisticRatio, ShiftWarning, TransferWeights, importance_weighted_fit

MEANS, INTERCEPTS, SLOPES = np.array([0.0, 1.0, -0.5]), np.array([0.0, 0.5, 0.2]), np.array([1.0, 0.6, 1.4])
SIZES = np.array([9000, 2500, 5500])


@pytest.fixture(scope="module")
def tasks():
    """Three tasks of different size: x normal with a mean of its own, y linear in x with coefficients of its own."""
    rng = np.random.default_rng(6)
    task = rng.permutation(np.repeat([0, 1, 2], SIZES))
    x = rng.normal(MEANS[task], 1.0)
    y = rng.normal(INTERCEPTS[task] + SLOPES[task] * x, 1.0)
    joint = np.column_stack(
        [norm.pdf(x, m) * norm.pdf(y, a + b * x) for m, a, b in zip(MEANS, INTERCEPTS, SLOPES, strict=True)]
    )
    first = joint / (joint @ (SIZES / SIZES.sum()))[:, None]
    return x[:, None], y, np.array(["a", "b", "c"])[task], first


def test_first_factor_is_the_closed_form(tasks):
    X, y, task, truth = tasks
    fitted = TransferWeights().fit(X, y, task)
    assert fitted.tasks_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(fitted.weights_.mean(axis=0), 1)
    for t in range(3):
        logs = np.log(fitted.weights_[:, t]), np.log(truth[:, t])
        assert np.corrcoef(*logs)[0, 1] > 0.99
        assert np.abs(fitted.weights_[:, t] - truth[:, t]).mean() < 0.05
        np.testing.assert_array_equal(fitted.weights_of("abc"[t]), fitted.weights_[:, t])
    mixture = fitted.weights_ @ (SIZES / SIZES.sum())
    np.testing.assert_allclose(mixture, 1, atol=0.02)  # sum over tasks of p(t) p(t | x, y) / p(t)


def test_both_factors_are_the_closed_form(tasks):
    """Task b is tested where x is smaller by 0.7; the others as they were."""
    X, y, task, truth = tasks
    rng = np.random.default_rng(7)
    target = rng.normal(MEANS[1] - 0.7, 1.0, (4000, 1))
    fitted = TransferWeights(ratio=LogisticRatio()).fit(X, y, task, {"b": target})
    second = np.exp(-0.7 * (X[:, 0] - MEANS[1]) - 0.245)
    expected = truth[:, 1] * second
    assert np.corrcoef(np.log(fitted.weights_of("b")), np.log(expected))[0, 1] > 0.99
    np.testing.assert_array_equal(fitted.weights_of("a"), TransferWeights().fit(X, y, task).weights_of("a"))
    assert set(fitted.ratios_) == {"b"}
    # what is learnt for the test population of b, from all tasks: nearly as good as with the true weights
    y_target = INTERCEPTS[1] + SLOPES[1] * target[:, 0]
    errors = {}
    for what, weights in (("ours", fitted.weights_of("b")), ("true", expected), ("none", np.ones(len(y)))):
        model = importance_weighted_fit(LinearRegression(), X, y, ratio=weights)
        errors[what] = np.mean((model.predict(target) - y_target - 0) ** 2)
    noise = 1.0  # of y itself: the errors on the target are 1 plus these
    assert noise + errors["ours"] < 1.02 * (noise + errors["true"])
    assert errors["none"] > 10 * errors["ours"]


def test_any_classifier_and_weights_on_records(tasks):
    X, y, task, truth = tasks
    with threadpool_limits(1):
        boosted = TransferWeights(HistGradientBoostingClassifier(max_depth=3, max_iter=50, random_state=0)).fit(
            X, y, task
        )
    assert np.corrcoef(np.log(boosted.weights_[:, 1]), np.log(truth[:, 1]))[0, 1] > 0.95
    keep = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = TransferWeights().fit(X, y, task, sample_weight=keep)
    repeated = TransferWeights().fit(np.repeat(X, keep, axis=0), np.repeat(y, keep), np.repeat(task, keep))
    np.testing.assert_allclose(repeated.weights_, np.repeat(weighted.weights_, keep, axis=0), rtol=1e-5)
    order = np.random.default_rng(1).permutation(len(y))
    shuffled = TransferWeights().fit(X[order], y[order], task[order], sample_weight=keep[order])
    np.testing.assert_allclose(shuffled.weights_, weighted.weights_[order], rtol=1e-5)


def test_tables_with_levels_and_classes():
    rng = np.random.default_rng(2)
    n = 6000
    task = rng.choice([2004, 2005], n, p=[0.7, 0.3])
    sex = np.where(rng.random(n) < np.where(task == 2004, 0.3, 0.6), "f", "m")
    ill = np.where(rng.random(n) < np.where(sex == "f", 0.5, 0.2), "ill", "well")
    table = pl.DataFrame({"sex": sex})
    fitted = TransferWeights("linear").fit(table, ill, task)
    for s in ("f", "m"):
        share = {t: np.mean(sex[task == t] == s) for t in (2004, 2005)}
        overall = np.mean(sex == s)
        assert fitted.weights_of(2005)[sex == s].mean() == pytest.approx(share[2005] / overall, rel=0.02)
    target = pl.DataFrame({"sex": ["f"] * 90 + ["m"] * 10})
    shifted = TransferWeights("linear", ratio=EmpiricalRatio()).fit(table, ill, task, {2005: target})
    assert np.average(sex == "f", weights=shifted.weights_of(2005)) == pytest.approx(0.9, abs=0.01)
    assert shifted.diagnostics_[2005].effective_sample_size < fitted.diagnostics_[2005].effective_sample_size


def test_weak_weights_are_warned_of():
    rng = np.random.default_rng(3)
    task = np.repeat([0, 1], [5000, 40])
    X = rng.normal(8.0 * task)[:, None]
    with pytest.warns(ShiftWarning, match="TransferWeights, task 1"):
        fitted = TransferWeights().fit(X, X[:, 0], task)
    assert np.isfinite(fitted.weights_).all()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"task": np.zeros(20)}, "one task only"),
        ({"task": np.zeros(3)}, "task must have 20 values"),
        ({"task": [None] * 20}, "missing"),
        ({"task": pd.Series(["a", None] * 10, dtype="string")}, "missing"),
        ({"y": np.r_[np.zeros(19), np.nan]}, "y has missing"),
        ({"X_target": np.ones((3, 1))}, "X_target must map"),
        ({"y": np.zeros(3)}, "y must have 20 values"),
        ({"X_target": {"z": np.ones((3, 1))}}, "X_target names the task 'z'"),
        ({"sample_weight": np.r_[np.ones(10), np.zeros(10)]}, "weight 0 only"),
        ({"X": pl.DataFrame({"response": np.arange(20.0)})}, "'response'"),
    ],
)
def test_wrong_input_is_refused(change, text):
    given = {"X": np.arange(20.0)[:, None], "y": np.arange(20.0), "task": np.repeat(["a", "b"], 10), **change}
    with pytest.raises(InputError, match=text):
        TransferWeights().fit(given.pop("X"), given.pop("y"), given.pop("task"), **given)


@pytest.mark.parametrize(
    ("options", "text"), [({"ridge": 0}, "ridge"), ({"n_folds": 1}, "n_folds"), ({"ratio": "x"}, "ratio must be")]
)
def test_wrong_options_are_refused(options, text, tasks):
    X, y, task, _ = tasks
    with pytest.raises(InputError, match=text):
        TransferWeights(**options).fit(X[:300], y[:300], task[:300])


def test_classes_may_be_numbers(tasks):
    X, y, task, _ = tasks
    labels = (y > 0).astype(int) * 7
    fitted = TransferWeights("linear", kinds={"response": "nominal"}).fit(X, labels, task, {"a": X[:500]})
    assert np.isfinite(fitted.weights_).all()


def test_unknown_tasks_are_refused(tasks):
    X, y, task, _ = tasks
    with pytest.raises(InputError, match="task='d' is not known"):
        TransferWeights().fit(X[:500], y[:500], task[:500]).weights_of("d")
