"""The pattern of the paper, and of our own results, on real data: MEPS 2004 adults, weighted draws of 7,500 + 7,500.

Figures in comments are those of method S3 and S1b (six splits); two splits are drawn here, so tolerances are wider.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from shoal import Anonymizer
from shoal.utility import histogram_intersection

SPLITS = 2
WAYS = {
    "centroid": ("centroid", None),
    "resample": ("resample", None),
    "permute": ("permute", None),
    "cdf": ("gaussian", "cdf"),
    "rank": ("gaussian", "rank"),
    "transport": ("gaussian", "transport"),
}


def nearest_match_risk(X, hidden):
    """The paper's attack, its random tie-breaking averaged exactly."""
    Z, R = (X - X.mean(axis=0)) / X.std(axis=0), (hidden - X.mean(axis=0)) / X.std(axis=0)
    seen, where, count = np.unique(R.round(9), axis=0, return_inverse=True, return_counts=True)
    known, person = np.unique(Z, axis=0, return_inverse=True)
    distance = ((known[:, None] - seen) ** 2).sum(axis=2)
    nearest = distance <= distance.min(axis=1, keepdims=True) + 1e-9
    matches = (nearest * count).sum(axis=1)
    return (nearest[person.ravel(), where.ravel()] / matches[person.ravel()]).mean()


@pytest.fixture(scope="module")
def results(meps):
    X = np.column_stack(
        [meps["female"], np.digitize(meps["age"], [25, 35, 45, 55, 65, 75, 85]), meps["educ5"], meps["povcat"]]
    ).astype(float)
    y, odds = meps["exp_tot"].to_numpy(), meps["wtdper"].to_numpy() / meps["wtdper"].sum()
    levels = [np.unique(column)[1:] for column in X.T]

    def dummies(rows):
        return np.hstack([rows[:, [j]] == levels[j] for j in range(4)]).astype(float)

    def evaluate(train_x, train_y, test):
        model = LinearRegression().fit(dummies(train_x), train_y)
        predicted = model.predict(dummies(X[test]))
        numeric = LinearRegression().fit(train_x, train_y).predict(X[test])
        return {
            "kept": histogram_intersection(train_x.round(6), X[test]),
            "bias": 100 * (predicted.mean() / y[test].mean() - 1),
            "r2": 1 - ((y[test] - predicted) ** 2).mean() / y[test].var(),
            "numeric bias": 100 * (numeric.mean() / y[test].mean() - 1),
        }

    @functools.cache
    def run(way, k, w):
        found = []
        for split in range(SPLITS):
            rows = np.random.default_rng(split).choice(len(X), 15_000, p=odds)
            train, test = rows[:7500], rows[7500:]
            if way == "original":
                found.append(evaluate(X[train], y[train], test) | {"risk": np.nan})
                continue
            method, recovery = WAYS[way]
            model = Anonymizer(
                k=k,
                method=method,
                recovery=recovery,
                clustering="greedy",  # the paper's
                response_weight=w,
                random_state=split,
            )
            hidden = model.fit_transform(X[train], y[train])
            found.append(evaluate(hidden, y[train], test) | {"risk": nearest_match_risk(X[train], hidden)})
        return {name: np.mean([f[name] for f in found]) for name in found[0]}

    return run


def test_the_distribution_is_kept_by_all_but_centroids(results):
    untouched = results("original", 0, 0)["kept"]  # 0.894
    assert untouched == pytest.approx(0.894, abs=0.01)
    assert results("centroid", 5, 1)["kept"] == pytest.approx(0.73, abs=0.04)
    assert results("centroid", 50, 1)["kept"] == pytest.approx(0.06, abs=0.04)
    assert results("cdf", 5, 1)["kept"] == pytest.approx(0.871, abs=0.01)
    assert results("resample", 5, 1)["kept"] == pytest.approx(0.890, abs=0.01)
    assert results("resample", 100, 1)["kept"] == pytest.approx(0.873, abs=0.01)
    for way in ("permute", "rank", "transport"):
        for k in (5, 50):
            assert results(way, k, 1)["kept"] == pytest.approx(untouched, abs=1e-12)


@pytest.mark.parametrize(
    ("way", "at_5", "at_50"),
    [("centroid", 0.0375, 0.0129), ("resample", 0.0332, 0.0117), ("cdf", 0.0058, 0.0031), ("rank", 0.0057, 0.0031)],
)
def test_mean_risk_of_the_nearest_match(results, way, at_5, at_50):
    assert results(way, 5, 1)["risk"] == pytest.approx(at_5, rel=0.1)
    assert results(way, 50, 1)["risk"] == pytest.approx(at_50, rel=0.15)


def test_dummy_coded_bias_collapses_for_centroids_only(results):
    untouched = results("original", 0, 0)["bias"]
    for k, expected in ((5, -20), (50, -72), (100, -93)):
        assert results("centroid", k, 1)["bias"] == pytest.approx(expected, abs=8)
    for way in ("resample", "permute", "cdf", "rank", "transport"):
        for k in (5, 50, 100):
            assert results(way, k, 1)["bias"] == pytest.approx(untouched, abs=0.8)
            assert results(way, k, 1)["numeric bias"] == pytest.approx(untouched, abs=1.2)


def test_leaving_the_response_out_costs_nothing_and_gains_at_large_k(results):
    """S1b, w = 1 against 0 at k = 100: permute 0.0506 / 0.0546, transport 0.0492 / 0.0516 (original 0.0547)."""
    untouched = results("original", 0, 0)["r2"]
    for way in ("permute", "transport"):
        assert results(way, 100, 0)["r2"] > results(way, 100, 1)["r2"] + 0.001
        assert results(way, 20, 0)["r2"] > results(way, 20, 1)["r2"] - 0.001
        assert results(way, 100, 0)["bias"] == pytest.approx(results(way, 100, 1)["bias"], abs=0.8)
    assert results("permute", 100, 0)["r2"] > untouched - 0.004
    assert untouched - 0.006 < results("transport", 100, 0)["r2"] < untouched
