"""Every density ratio: known ratios, direction, weights on records, invariances, tables of any kind, errors."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from shoal.errors import InputError
from shoal.shift import EmpiricalRatio, LogisticRatio, NeighborRatio, RakedRatio, ShiftWarning, importance_weighted_fit

pytestmark = pytest.mark.filterwarnings("ignore::shoal.shift.ShiftWarning")  # asserted where they are meant
RATIOS = [EmpiricalRatio(), LogisticRatio(), LogisticRatio("quadratic"), NeighborRatio()]


def name(ratio):
    return type(ratio).__name__ + ("-quadratic" if getattr(ratio, "classifier", "") == "quadratic" else "")


def fit(ratio, shift):
    return clone(ratio).fit(
        shift.source, shift.target, weight_source=shift.weight_source, weight_target=shift.weight_target
    )


def mean_weight(ratio, shift):
    return np.average(ratio.weights_, weights=shift.weight_source)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", RATIOS[1:], ids=name)
def test_gaussian_shift_is_found(ratio, weighted, gaussian):
    shift = gaussian(weighted=weighted)
    fitted = fit(ratio, shift)
    assert np.corrcoef(np.log(fitted.weights_), shift.log_ratio)[0, 1] > 0.99
    assert mean_weight(fitted, shift) == pytest.approx(1, abs=1e-12)
    high, low = fitted.predict([[2.0, 0.0], [-2.0, 0.0]])
    assert high > 2 > 0.5 > low  # target / source, not the inverse
    assert np.log(high) == pytest.approx(0.8 * 2 - 0.32, abs=0.25)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ratio", [EmpiricalRatio(), EmpiricalRatio(smoothing=0.01)], ids=["plain", "smoothed"])
def test_discrete_shift_is_found(ratio, weighted, discrete):
    shift = discrete(weighted=weighted)
    fitted = fit(ratio, shift)
    assert np.corrcoef(np.log(fitted.weights_), shift.log_ratio)[0, 1] > 0.99
    assert mean_weight(fitted, shift) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(fitted.predict(shift.source), fitted.weights_, rtol=1e-12)
    if not ratio.smoothing:  # the weighted source has exactly the target's shares
        omega = np.ones(len(shift.source)) if shift.weight_source is None else shift.weight_source
        target = np.ones(len(shift.target)) if shift.weight_target is None else shift.weight_target
        for cell in np.unique(shift.source, axis=0):
            here, there = (shift.source == cell).all(axis=1), (shift.target == cell).all(axis=1)
            share = np.average(here, weights=omega * fitted.weights_)
            assert share == pytest.approx(np.average(there, weights=target), abs=1e-12)


def test_discrete_shift_by_logistic_regression_with_products(discrete):
    shift = discrete()
    tables = [pl.DataFrame(rows.astype(int).astype(str), schema=["a", "b"]) for rows in (shift.source, shift.target)]
    fitted = LogisticRatio("quadratic").fit(*tables)  # dummies and all their products: saturated
    exact = EmpiricalRatio().fit(*tables)
    np.testing.assert_allclose(fitted.weights_, exact.weights_, rtol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_ratios_converge(d, gaussian):
    """More records, smaller error: of the logistic ratio as 1 / sqrt(n), of neighbours more slowly."""
    for ratio, factor in ((LogisticRatio(), 0.6), (NeighborRatio(), 0.9)):
        errors = []
        for n in (1000, 16_000):
            shift = gaussian(n, n, d=d)
            errors.append(np.sqrt(np.mean((np.log(fit(ratio, shift).weights_) - shift.log_ratio) ** 2)))
        assert errors[1] < factor * errors[0]


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_target_error_is_that_of_the_true_ratio(ratio, gaussian, discrete):
    """A model of the wrong form, fitted with our weights, does as well on the target as with the true ones: 2 %."""
    shift = (discrete if isinstance(ratio, EmpiricalRatio) else gaussian)()
    rng = np.random.default_rng(8)

    def respond(X):
        return X[:, 0] ** 2 + X[:, 0] * X[:, 1] + rng.normal(size=len(X)) / 2

    y, y_target = respond(shift.source), respond(shift.target)
    errors = {}
    for what, weights in (
        ("ours", fit(ratio, shift).weights_),
        ("true", np.exp(shift.log_ratio)),
        ("none", np.ones(len(y))),
    ):
        model = importance_weighted_fit(LinearRegression(), shift.source, y, ratio=weights)
        errors[what] = np.mean((model.predict(shift.target) - y_target) ** 2)
    assert errors["ours"] < 1.02 * errors["true"]
    assert errors["none"] > 1.02 * errors["true"]  # so that the weights matter here


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_order_of_rows_does_not_matter(ratio, gaussian, rng):
    shift = gaussian(600, 500, weighted=True)
    fitted = fit(ratio, shift)
    s, t = rng.permutation(600), rng.permutation(500)
    shuffled = clone(ratio).fit(
        shift.source[s], shift.target[t], weight_source=shift.weight_source[s], weight_target=shift.weight_target[t]
    )
    np.testing.assert_allclose(shuffled.weights_, fitted.weights_[s], rtol=1e-6)


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_a_record_twice_is_a_record_of_twice_the_weight(ratio, gaussian, rng):
    shift = gaussian(500, 400)
    shift.source, shift.target = shift.source.round(1), shift.target.round(1)
    times_s, times_t = rng.integers(1, 4, 500), rng.integers(1, 4, 400)
    doubled = clone(ratio).fit(np.repeat(shift.source, times_s, axis=0), np.repeat(shift.target, times_t, axis=0))
    weighted = clone(ratio).fit(shift.source, shift.target, weight_source=times_s, weight_target=times_t)
    np.testing.assert_allclose(doubled.weights_, np.repeat(weighted.weights_, times_s), rtol=1e-6)
    scaled = clone(ratio).fit(shift.source, shift.target, weight_source=9e5 * times_s, weight_target=times_t / 7)
    np.testing.assert_allclose(scaled.weights_, weighted.weights_, rtol=1e-6)


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_weights_again_are_those_of_a_new_fit(ratio, gaussian, rng):
    """A bootstrap refits by weights, without reading the tables again: bins and scales stay, weights do not."""
    shift = gaussian(400, 300)
    shift.source, shift.target = shift.source.round(0), shift.target.round(0)  # so that bins cannot differ
    omega, eta = rng.exponential(size=400), rng.exponential(size=300)
    fitted = fit(ratio, shift)
    before = fitted.weights_.copy()
    again = fitted.reweigh(omega, eta)
    anew = clone(ratio).fit(shift.source, shift.target, weight_source=omega, weight_target=eta)
    if not isinstance(ratio, NeighborRatio):  # whose distances are in units of the first fit
        np.testing.assert_allclose(again.weights_, anew.weights_, rtol=1e-4)
    assert np.average(again.weights_, weights=omega) == pytest.approx(1)
    np.testing.assert_array_equal(fitted.weights_, before)


def mixed(n, seed, older=0.0):
    rng = np.random.default_rng(seed)
    age = rng.normal(45 + 10 * older, 15, n).round()
    return pl.DataFrame(
        {
            "age": pl.Series(np.where(rng.random(n) < 0.05, np.nan, age)).fill_nan(None),
            "sex": rng.choice(["f", "m"], n),
            "education": pl.Series(
                rng.choice(["low", "mid", "high"], n, p=[0.5, 0.3, 0.2] if older else [0.3, 0.3, 0.4])
            ).cast(pl.Enum(["low", "mid", "high"])),
            "region": pl.Series(rng.choice(["north", "south", None], n, p=[0.5, 0.4, 0.1])).cast(pl.Categorical),
            "moved": rng.random(n) < (0.2 if older else 0.4),
        }
    )


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_tables_of_every_kind_are_read_alike(ratio):
    source, target = mixed(800, 1), mixed(700, 2, older=1.0)
    expected = clone(ratio).fit(source, target)
    reordered = target.select(source.columns[::-1])
    for s, t in (
        (source.to_pandas(), reordered.to_pandas()),
        (source.to_arrow(), reordered),
        (source, reordered.to_pandas()),
        (source.with_columns(pl.col("region").cast(pl.String)), target),
    ):
        found = clone(ratio).fit(s, t)
        np.testing.assert_allclose(found.weights_, expected.weights_, rtol=1e-6)
        np.testing.assert_allclose(found.predict(t), expected.predict(target), rtol=1e-6)
    assert list(expected.feature_names_in_) == source.columns
    assert expected.weights_[source["education"].to_numpy() == "low"].mean() > 1


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_levels_never_seen_have_a_weight(ratio):
    source, target = mixed(800, 1), mixed(700, 2, older=1.0)
    fitted = clone(ratio).fit(source, target)
    fresh = source.head(5).with_columns(
        pl.lit("nowhere").alias("region"), pl.lit(400.0).alias("age"), pl.lit("x").alias("sex")
    )
    weights = fitted.predict(fresh)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_wrong_input_is_refused(ratio, gaussian):
    X, Z = gaussian(200, 150).source, gaussian(200, 150).target
    source, target = mixed(200, 1), mixed(200, 2)
    wrong = [
        ((X, Z[:, :1]), {}, "X_target has no column 'x1'"),
        ((X[:, :1], Z), {}, "X_source has no column 'x1'"),
        ((source, target.rename({"sex": "gender"})), {}, "X_target has no column 'sex'"),
        ((source, target.with_columns(pl.col("age").cast(pl.String))), {}, "'age' holds numbers in X_source but texts"),
        ((X, Z), {"weight_source": np.ones(3)}, "weight_source"),
        ((X, Z), {"weight_target": -np.ones(150)}, "weight_target"),
        ((X, Z), {"weight_target": np.full(150, np.nan)}, "weight_target"),
        ((X, Z), {"weight_source": ["a"] * 200}, "weight_source must be 200 numbers"),
        ((X, np.where(Z > 2, np.inf, Z)), {}, "infinite"),
        ((X, Z[:0]), {}, "X_target"),
    ]
    for tables, options, text in wrong:
        with pytest.raises(InputError, match=text):
            clone(ratio).fit(*tables, **options)
    with pytest.raises(InputError, match="max_weight"):
        clone(ratio).set_params(max_weight=0.5).fit(X, Z)
    fitted = clone(ratio).fit(X, Z)
    with pytest.raises(InputError, match="must have 2 columns"):
        fitted.predict(np.ones((3, 3)))
    with pytest.raises(InputError, match="no column 'region'"):
        clone(ratio).fit(source, target).predict(source.drop("region"))


def test_errors_show_no_value_of_the_data():
    source = mixed(200, 1)
    for target in (mixed(200, 2).with_columns(pl.lit("77-secret").alias("age")), pl.DataFrame({"z": ["77-secret"]})):
        with pytest.raises(InputError) as error:
            EmpiricalRatio().fit(source, target)
        assert "77-secret" not in str(error.value)


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_capped_weights_keep_mean_one(ratio, gaussian):
    shift = gaussian(3000, 2000)
    fitted, capped = fit(ratio, shift), fit(clone(ratio).set_params(max_weight=2.0), shift)
    assert fitted.weights_.max() > 2
    assert capped.weights_.max() == pytest.approx(2.0, abs=1e-9)
    assert capped.weights_.mean() == pytest.approx(1.0)
    assert fitted.diagnostics_.clipped_mass == 0
    assert 0 < capped.diagnostics_.clipped_mass < 0.3
    assert capped.diagnostics_.effective_sample_size > fitted.diagnostics_.effective_sample_size
    np.testing.assert_allclose(capped.predict(shift.source), capped.weights_)


def test_a_cap_that_cannot_be_met_makes_positive_weights_equal():
    with pytest.warns(ShiftWarning, match="took off"):
        fitted = EmpiricalRatio(max_weight=1.0).fit([[0], [0], [0], [1], [2]], [[1], [1], [2]])
    np.testing.assert_allclose(fitted.weights_, [0, 0, 0, 2.5, 2.5])


# ---------------------------------------------------------------- each of them


def test_empty_cells_back_off_to_those_that_agree_in_most_columns():
    source = pl.DataFrame({"a": ["x", "x", "y", "y"], "b": ["0", "1", "0", "0"]})
    target = pl.DataFrame({"a": ["x", "y", "y", "y"], "b": ["0", "0", "1", "1"]})
    with pytest.warns(ShiftWarning, match="50% of the target is unlike anything"):
        fitted = EmpiricalRatio().fit(source, target)
    # (y, 1) is nowhere in the source: its half goes to y (giving up b) or to 1 (giving up a): both place it all, so the
    # last column is given up, and the two records of y share it
    assert fitted.backoff_ == ["b", "a"]
    np.testing.assert_allclose(fitted.weights_, [1.0, 0.0, 1.5, 1.5])
    assert fitted.diagnostics_.target_outside == pytest.approx(0.5)
    assert fitted.diagnostics_.source_outside == pytest.approx(0.25)
    # at (y, 1) itself: the mean weight of y; at (z, 1), given up b and a: of everybody
    np.testing.assert_allclose(fitted.predict(pl.DataFrame({"a": ["y", "z"], "b": ["1", "1"]})), [1.5, 1.0])


def test_the_column_that_differs_least_is_given_up_first():
    source = pl.DataFrame({"a": ["x", "x", "y"], "b": ["0", "1", "1"]})
    target = pl.DataFrame({"a": ["z", "z", "x", "y"], "b": ["0", "0", "0", "0"]})  # a: a half moves, b: two thirds
    with pytest.warns(ShiftWarning):
        fitted = EmpiricalRatio().fit(source, target)
    assert fitted.backoff_ == ["a", "b"]  # without a, all three orphans find (x, 0)
    np.testing.assert_allclose(fitted.weights_, [3.0, 0.0, 0.0])


def test_smoothing_shrinks_towards_the_level_above():
    source, target = [[0.0]] * 9 + [[1.0]], [[0.0]] * 5 + [[1.0]] * 5
    plain = EmpiricalRatio().fit(source, target).weights_
    np.testing.assert_allclose(plain[[0, -1]], [5 / 9, 5.0])
    m = 0.5 / 2  # half an average cell, of two
    smoothed = EmpiricalRatio(smoothing=0.5).fit(source, target).weights_
    expected = np.array([(0.5 + m) / (0.9 + m), (0.5 + m) / (0.1 + m)])  # towards 1, the ratio of everybody
    np.testing.assert_allclose(smoothed[[0, -1]], expected / (expected @ [0.9, 0.1]))
    heavy = EmpiricalRatio(smoothing=1e9).fit(source, target).weights_
    np.testing.assert_allclose(heavy, 1.0, rtol=1e-6)


@given(
    cells=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=2, max_size=30),
    cut=st.integers(1, 29),
)
def test_no_target_mass_is_lost(cells, cut):
    """Whatever the two samples: weights are finite, of mean 1, and every margin is met where the source has it."""
    cut = min(cut, len(cells) - 1)
    source, target = np.array(cells[:cut], dtype=float), np.array(cells[cut:], dtype=float)
    fitted = EmpiricalRatio().fit(source, target)
    assert np.isfinite(fitted.weights_).all()
    assert fitted.weights_.mean() == pytest.approx(1)
    here = {tuple(row) for row in source}
    for cell in here:
        weighted = fitted.weights_[(source == cell).all(axis=1)].sum() / len(source)
        assert weighted >= (target == cell).all(axis=1).mean() - 1e-12
    outside = np.mean([tuple(row) not in here for row in target])
    assert fitted.diagnostics_.target_outside == pytest.approx(outside)


def test_logistic_odds_stay_in_log_space(gaussian):
    """Samples that are nearly or wholly apart: huge log-odds, finite weights, the right order."""
    rng = np.random.default_rng(0)
    source, target = rng.normal(0, 1, (500, 1)), rng.normal(9, 1, (500, 1))
    with pytest.warns(ShiftWarning) as caught:
        fitted = LogisticRatio().fit(source, target)
    assert np.isfinite(fitted.weights_).all()
    assert np.corrcoef(np.argsort(np.argsort(fitted.weights_)), np.argsort(np.argsort(source[:, 0])))[0, 1] > 0.999
    assert np.isfinite(fitted.predict([[1e6], [-1e6]])).all()
    assert any("records' worth of information" in str(w.message) for w in caught)
    assert fitted.diagnostics_.target_outside > 0.9


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(C=1e3),
        make_pipeline(StandardScaler(), LogisticRegression(C=1e3)),
        HistGradientBoostingClassifier(max_depth=3, max_iter=60, random_state=0),
    ],
    ids=["logit", "pipeline", "boosting"],
)
def test_any_classifier_will_do(classifier, gaussian):
    shift = gaussian(8000, 3000, weighted=True)
    with threadpool_limits(1):
        fitted = fit(LogisticRatio(classifier), shift)
    assert np.corrcoef(np.log(fitted.weights_), shift.log_ratio)[0, 1] > 0.97
    assert np.polyfit(shift.log_ratio, np.log(fitted.weights_), 1)[0] == pytest.approx(1, abs=0.15)


def test_calibration_tames_an_overconfident_classifier(gaussian):
    """A nearest-neighbour vote knows its own records by heart; calibrated on others, it does not."""
    shift = gaussian(3000, 2000, d=1)
    errors = []
    for calibrate in (False, True):
        fitted = LogisticRatio(KNeighborsClassifier(5), calibrate=calibrate).fit(shift.source, shift.target)
        errors.append(np.sqrt(np.mean((np.log(fitted.weights_) - shift.log_ratio) ** 2)))
    assert errors[1] < 0.8 < 2 < errors[0]


def test_a_classifier_without_weights_is_shown_records_as_often_as_they_occur(gaussian):
    shift = gaussian(6000, 1500, d=1)  # of unequal size: the sizes must be divided out
    fitted = LogisticRatio(KNeighborsClassifier(400), calibrate=False).fit(shift.source, shift.target)
    middle = np.abs(shift.source[:, 0]) < 1
    assert np.mean(np.log(fitted.weights_[middle]) - shift.log_ratio[middle]) == pytest.approx(0, abs=0.1)
    with pytest.raises(InputError, match="KNeighborsClassifier takes no sample_weight"):
        LogisticRatio(KNeighborsClassifier()).fit(shift.source, shift.target, weight_source=np.linspace(1, 2, 6000))


@pytest.mark.parametrize("wrong", ["cubic", LinearRegression(), 3])
def test_wrong_classifiers_are_refused(wrong, gaussian):
    shift = gaussian(100, 100)
    with pytest.raises(InputError, match="classifier"):
        LogisticRatio(wrong).fit(shift.source, shift.target)


def test_wrong_options_are_refused(gaussian):
    shift = gaussian(100, 100)
    for ratio, text in (
        (LogisticRatio(ridge=0), "ridge"),
        (LogisticRatio(n_folds=1), "n_folds"),
        (NeighborRatio(0), "n_neighbors"),
        (EmpiricalRatio(smoothing=-1), "smoothing"),
        (EmpiricalRatio(n_bins=1), "n_bins"),
    ):
        with pytest.raises(InputError, match=text):
            fit(ratio, shift)


def plain_neighbor_ratio(points, masses, at, k):
    """What NeighborRatio does at one anchor, by sorting all distances."""
    away = points - at
    distance = np.sqrt((away**2).sum(axis=1))
    order = np.argsort(distance, kind="stable")
    last = distance[order[k]] if k < len(order) else np.inf
    near = distance < last
    p, q = masses[near].T
    m0, m1 = p @ away[near] / p.sum(), q @ away[near] / q.sum()
    share = (p / p.sum() + q / q.sum()) / 2
    spread = (away[near] * share[:, None]).T @ away[near] - (np.outer(m0, m0) + np.outer(m1, m1)) / 2
    spread += np.eye(len(at)) * 1e-3 * np.trace(spread) / len(at)
    slope = np.linalg.solve(spread, m1 - m0)
    few = 0.5 * (p.sum() + q.sum()) / 2 / near.sum()
    return np.log(q.sum() + few) - np.log(p.sum() + few) - slope @ (m0 + m1) / 2


def test_neighbours_are_those_of_a_scan(gaussian, rng):
    shift = gaussian(300, 200, weighted=True)
    fitted = NeighborRatio(60, n_jobs=2).fit(
        shift.source, shift.target, weight_source=shift.weight_source, weight_target=shift.weight_target
    )
    both = np.vstack([shift.source, shift.target])
    omega = [w / w.sum() for w in (shift.weight_source, shift.weight_target)]
    mass = np.concatenate(omega) / 2
    centre = mass @ both
    points = (both - centre) / np.sqrt(mass @ (both - centre) ** 2)
    masses = np.zeros((500, 2))
    masses[:300, 0], masses[300:, 1] = omega
    expected = np.array([plain_neighbor_ratio(points, masses, at, 60) for at in points[:300]])
    np.testing.assert_allclose(np.log(fitted.weights_), expected - np.log(omega[0] @ np.exp(expected)), atol=1e-8)
    alone = NeighborRatio(60, n_jobs=1).fit(
        shift.source, shift.target, weight_source=shift.weight_source, weight_target=shift.weight_target
    )
    np.testing.assert_array_equal(alone.weights_, fitted.weights_)


def test_neighbours_follow_the_nearest_anchor(gaussian, monkeypatch):
    shift = gaussian(4000, 3000)
    exact = fit(NeighborRatio(), shift)
    monkeypatch.setattr("shoal.shift.neighbors.MOST_ANCHORS", 700)
    few = fit(NeighborRatio(), shift)
    assert np.corrcoef(np.log(few.weights_), np.log(exact.weights_))[0, 1] > 0.99
    assert np.abs(np.log(few.predict([[60.0, 0.0]]))) < 8  # a slope is not followed for ever


def test_neighbours_alone_are_outside():
    rng = np.random.default_rng(0)
    source = np.concatenate([rng.normal(0, 1, 900), rng.normal(50, 1, 100)])[:, None]
    target = np.concatenate([rng.normal(0, 1, 800), rng.normal(-50, 1, 200)])[:, None]
    with pytest.warns(ShiftWarning, match="20% of the target is unlike anything"):
        fitted = NeighborRatio(50).fit(source, target)
    assert fitted.diagnostics_.source_outside == pytest.approx(0.1)
    assert fitted.diagnostics_.target_outside == pytest.approx(0.2)


# ---------------------------------------------------------------- raking


@pytest.fixture
def people(rng):
    n = 3000
    sex = rng.choice(["f", "m"], n)
    age = rng.choice(["young", "middle", "old"], n, p=[0.5, 0.3, 0.2])
    region = np.where(rng.random(n) < 0.3 + 0.3 * (age == "old"), "south", "north")
    return pl.DataFrame({"sex": sex, "age": age, "region": region})


MARGINS = {
    ("age", "sex"): {
        ("young", "f"): 10,
        ("young", "m"): 12,
        ("middle", "f"): 20,
        ("middle", "m"): 16,
        ("old", "f"): 25,
        ("old", "m"): 17,
    },
    "region": {"north": 0.35, "south": 0.65},
}


def test_margins_are_met(people, rng):
    omega = rng.exponential(size=len(people))
    fitted = RakedRatio().fit(people, MARGINS, weight_source=omega)
    total = omega * fitted.weights_
    assert np.average(fitted.weights_, weights=omega) == pytest.approx(1)
    for (age, sex), count in MARGINS["age", "sex"].items():
        rows = ((people["age"] == age) & (people["sex"] == sex)).to_numpy()
        assert total[rows].sum() / total.sum() == pytest.approx(count / 100, abs=1e-8)
    assert total[(people["region"] == "south").to_numpy()].sum() / total.sum() == pytest.approx(0.65, abs=1e-8)
    np.testing.assert_allclose(fitted.predict(people.to_pandas()), fitted.weights_)


def test_raked_weights_are_a_product_and_keep_the_associations(people):
    """Odds ratios between age x sex and region, which no margin tells, stay those of the sample."""
    fitted = RakedRatio().fit(people, MARGINS)

    def odds_ratio(weights):
        mass = {}
        for age, region in (("young", "north"), ("young", "south"), ("old", "north"), ("old", "south")):
            rows = ((people["age"] == age) & (people["region"] == region) & (people["sex"] == "f")).to_numpy()
            mass[age, region] = weights[rows].sum()
        return mass["young", "north"] * mass["old", "south"] / mass["young", "south"] / mass["old", "north"]

    assert odds_ratio(fitted.weights_) == pytest.approx(odds_ratio(np.ones(len(people))))


def test_raking_recovers_a_shift_that_is_a_product(people):
    """Weights drawn as a product of factors are found again from their margins alone."""
    factor = {"young": 0.5, "middle": 1.0, "old": 2.0}
    truth = np.array([factor[a] * (3 if r == "south" else 1) for a, r in people[["age", "region"]].iter_rows()])
    margins = {
        column: {level: truth[(people[column] == level).to_numpy()].sum() for level in people[column].unique()}
        for column in ("age", "region")
    }
    fitted = RakedRatio().fit(people, margins)
    np.testing.assert_allclose(fitted.weights_, truth / truth.mean(), rtol=1e-7)


def test_margins_may_be_tables_and_numbers(people):
    table = pl.DataFrame(
        [(age, sex, count) for (age, sex), count in MARGINS["age", "sex"].items()],
        schema=["age", "sex", "people"],
        orient="row",
    )
    expected = RakedRatio().fit(people, MARGINS).weights_
    for margin in (table, table.to_pandas(), table.to_arrow()):
        found = RakedRatio().fit(people, {("age", "sex"): margin, "region": {"north": 35, "south": 65}})
        np.testing.assert_allclose(found.weights_, expected, rtol=1e-7)
    coded = people.with_columns(old=(people["age"] == "old").cast(pl.Int8))
    fitted = RakedRatio().fit(coded, {"old": {0: 1, 1.0: 1}})
    assert fitted.weights_[(people["age"] == "old").to_numpy()].sum() == pytest.approx(len(people) / 2)


def test_a_level_that_the_target_has_not_is_not_used(people):
    fitted = RakedRatio().fit(people, {"age": {"young": 0.0, "middle": 1, "old": 1}})
    young = (people["age"] == "young").to_numpy()
    assert (fitted.weights_[young] == 0).all()
    assert fitted.diagnostics_.source_outside == pytest.approx(young.mean())


@pytest.mark.parametrize(
    ("margins", "text"),
    [
        ({"age": {"young": 3, "middle": 3, "old": 4}, "sex": {"f": 5, "m": 6}}, "'age' and 'sex' count different"),
        (
            {("age", "sex"): MARGINS["age", "sex"], "sex": {"f": 0.5, "m": 0.5}},
            "'age' x 'sex' and 'sex' disagree about 'sex'",
        ),
        (
            {"age": {"young": 3, "middle": 3, "old": 4, "ancient": 1}},
            "'age' has people where X_source has nobody",
        ),
        ({"age": {"young": 3, "middle": 3}}, "'age' says nothing of the levels"),
        ({"age": {"young": 3, "middle": -3, "old": 1}}, "'age' must hold counts"),
        ({"age": {"young": 3, "middle": None, "old": 1}}, "'age' must hold counts"),
        ({"age": {"young": 0, "middle": 0, "old": 0}}, "'age' is zero"),
        ({("age", "sex"): {"young": 1}}, "needs 2 levels"),
        ({"colour": {"red": 1}}, "margins name 'colour'"),
        ({}, "margins must map"),
        ([1], "margins must map"),
        ({"age": pl.DataFrame({"age": ["young"], "a": [1], "b": [2]})}, "one more with the counts"),
    ],
)
def test_inconsistent_margins_are_named(people, margins, text):
    with pytest.raises(InputError, match=text):
        RakedRatio().fit(people, margins)


def test_margins_that_no_weights_meet_are_named():
    """Each margin alone can be met, both together not: all of x are in a, yet x has more than a."""
    table = pl.DataFrame({"u": ["x", "y", "y"], "v": ["a", "a", "b"]})
    with pytest.raises(InputError, match="'u' and 'v' cannot be met together"):
        RakedRatio().fit(table, {"u": {"x": 0.6, "y": 0.4}, "v": {"a": 0.3, "b": 0.7}})


# ---------------------------------------------------------------- diagnostics


def test_diagnostics_say_what_the_weights_are_worth(discrete):
    shift = discrete(4000, 3000, weighted=True)
    fitted = fit(EmpiricalRatio(), shift)
    total = shift.weight_source * fitted.weights_
    found = fitted.diagnostics_
    assert found.effective_sample_size == pytest.approx(total.sum() ** 2 / (total**2).sum())
    baseline = shift.weight_source.sum() ** 2 / (shift.weight_source**2).sum()
    assert found.effective_share == pytest.approx(found.effective_sample_size / baseline)
    assert found.largest_share == pytest.approx((total / total.sum()).max())
    assert not found.warnings
    assert "of 4,000" in str(found)


def test_one_heavy_record_is_warned_of():
    source, target = [[0.0]] * 999 + [[1.0]], [[0.0]] * 5 + [[1.0]] * 5
    with pytest.warns(ShiftWarning, match="EmpiricalRatio: a single record has 50% of the weight"):
        fitted = EmpiricalRatio().fit(source, target)
    assert "weak: " in str(fitted.diagnostics_)


@pytest.mark.slow
def test_no_shift_has_weights_near_one(gaussian):
    shift = gaussian()
    same = np.random.default_rng(9).normal(size=(15_000, 2))
    for ratio in RATIOS[1:]:
        fitted = clone(ratio).fit(shift.source, same)
        assert fitted.diagnostics_.effective_share > 0.98
        assert not fitted.diagnostics_.warnings


def test_a_column_of_one_value_has_no_effect():
    X = np.column_stack([np.ones(50), np.ones(50)])
    for ratio in RATIOS:
        np.testing.assert_allclose(clone(ratio).fit(X, X[:20]).weights_, 1.0)


def test_pandas_may_name_columns_by_numbers():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(100, 2)))
    expected = LogisticRatio().fit(X.to_numpy(), X.to_numpy() + 0.1).weights_
    np.testing.assert_allclose(LogisticRatio().fit(X, X + 0.1).weights_, expected, rtol=1e-6)
    assert pa.Table.from_pandas(X) is not None


# ---------------------------------------------------------------- what once went wrong, silently


def test_the_column_that_shifted_is_not_given_up():
    """Many columns, mostly empty cells: the one that differs between source and target must still be balanced."""
    rng = np.random.default_rng(0)

    def make(n, mean):
        return np.column_stack([rng.normal(mean, 12, n).round(), *rng.integers(0, 6, (3, n))])

    source, target = make(4000, 42), make(3000, 54)
    fitted = EmpiricalRatio().fit(source, target)
    assert fitted.backoff_[-1] == "x0"
    assert np.average(source[:, 0], weights=fitted.weights_) == pytest.approx(target[:, 0].mean(), abs=1.0)


def test_a_flexible_classifier_is_asked_about_records_it_has_not_seen():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(2000, 3)), rng.normal([0.5, 0, 0], size=(2000, 3))
    fitted = LogisticRatio(RandomForestClassifier(60, min_samples_leaf=60, random_state=0)).fit(source, target)
    assert np.average(source[:, 0], weights=fitted.weights_) == pytest.approx(0.5, abs=0.15)
    assert fitted.diagnostics_.target_outside < 0.05


def test_a_cap_above_all_weights_changes_nothing(gaussian):
    shift = gaussian(2000, 1500, d=1)
    free, capped = LogisticRatio(), LogisticRatio(max_weight=1000.0)
    far = [[4.5], [5.0]]
    np.testing.assert_allclose(
        capped.fit(shift.source, shift.target).predict(far), free.fit(shift.source, shift.target).predict(far)
    )


def test_few_different_records_are_not_for_neighbours():
    X = np.repeat([[0.0], [1.0]], 200, axis=0)
    with pytest.warns(ShiftWarning, match="only 2 different records"):
        NeighborRatio().fit(X, X[100:])


def test_folds_do_not_follow_the_levels_of_a_column():
    """Five folds and five levels: if folds were levels, calibration would turn the weights round."""
    rng = np.random.default_rng(0)
    n, shares = 6000, [0.1, 0.4, 0.1, 0.3, 0.1]
    source = np.column_stack([np.arange(n) % 8, rng.integers(0, 5, n)]).astype(float)
    target = np.column_stack([np.arange(n) % 8, rng.choice(5, n, p=shares)]).astype(float)
    for classifier in (DecisionTreeClassifier(random_state=0), RandomForestClassifier(20, random_state=0)):
        fitted = LogisticRatio(classifier).fit(source, target)
        means = [fitted.weights_[source[:, 1] == level].mean() for level in range(5)]
        np.testing.assert_allclose(means, np.array(shares) / 0.2, rtol=0.15)


def test_a_forest_sees_the_records_of_a_cell_one_by_one():
    """Two columns of four levels are 16 points; a classifier that counts records must see 12,000 of them."""
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 4, (6000, 2)).astype(float), rng.integers(0, 4, (6000, 2)).astype(float)
    target[:, 1] = rng.choice(4, 6000, p=[0.1, 0.5, 0.1, 0.3])
    with threadpool_limits(1):
        for classifier in (
            RandomForestClassifier(20, min_samples_leaf=20, random_state=0),
            HistGradientBoostingClassifier(),
        ):
            fitted = LogisticRatio(classifier).fit(source, target)
            means = [fitted.weights_[source[:, 1] == level].mean() for level in range(4)]
            np.testing.assert_allclose(means, [0.4, 2.0, 0.4, 1.2], rtol=0.15)


def test_small_samples_are_calibrated_or_refused():
    X = np.arange(40.0)[:, None]
    few = LogisticRatio(LogisticRegression()).fit(X, X[::15])  # three records: three folds
    assert np.isfinite(few.weights_).all()
    with pytest.raises(InputError, match="calibrate=False"):
        LogisticRatio(LogisticRegression()).fit(X, X[:1])
    assert np.isfinite(LogisticRatio(LogisticRegression(), calibrate=False).fit(X, X[:1]).weights_).all()


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_values_of_another_family_are_refused(ratio):
    texts, numbers = pl.DataFrame({"x": ["1", "2"] * 20}), pl.DataFrame({"x": [1, 2] * 20})
    categories = pd.DataFrame({"x": pd.Categorical([1, 2] * 20)})
    days = pl.DataFrame({"x": [datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)] * 20})
    hours = pl.DataFrame({"x": [datetime.time(1), datetime.time(2)] * 20})
    for source, target in ((texts, numbers), (numbers, texts), (texts, categories), (days, numbers), (days, hours)):
        with pytest.raises(InputError, match="'x' holds"):
            clone(ratio).fit(source, target)
        with pytest.raises(InputError, match="'x' holds"):
            clone(ratio).fit(source, source).predict(target)


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_dates_are_the_same_in_every_dtype(ratio):
    rng = np.random.default_rng(0)
    offsets = [rng.integers(0, 20, 300), rng.integers(5, 25, 200)]
    dates = [[datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in part] for part in offsets]
    expected = clone(ratio).fit(*(pl.DataFrame({"x": part}) for part in dates)).weights_
    objects = [pd.DataFrame({"x": pd.Series(part, dtype=object)}) for part in dates]
    stamps = [pd.DataFrame({"x": pd.to_datetime(pd.Series(part))}) for part in dates]
    for source, target in (objects, stamps, (objects[0], stamps[1]), (stamps[0], objects[1])):
        np.testing.assert_allclose(clone(ratio).fit(source, target).weights_, expected, rtol=1e-6)


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_one_record_is_weighed_as_it_is_among_others(ratio):
    source, target = mixed(300, 1), mixed(300, 2, older=1.0)
    fitted = clone(ratio).fit(source, target)
    weights = fitted.predict(source)
    for row in (0, int(source["age"].is_null().arg_true()[0]), int(source["region"].is_null().arg_true()[0])):
        np.testing.assert_allclose(fitted.predict(source[row]), weights[[row]])


@pytest.mark.parametrize("ratio", RATIOS, ids=name)
def test_a_record_of_weight_zero_is_not_there(ratio, rng):
    X, Z = rng.integers(0, 32, (400, 1)).astype(float), rng.integers(4, 32, (300, 1)).astype(float)
    expected = clone(ratio).fit(X, Z).weights_
    more = clone(ratio).fit(np.vstack([X, [[99.5]]]), Z, weight_source=np.append(np.ones(400), 0.0)).weights_
    np.testing.assert_allclose(more[:-1], expected, rtol=1e-6)
    assert np.isfinite(more).all()


@pytest.mark.parametrize("ratio", RATIOS[1:], ids=name)
def test_values_of_any_size(ratio, gaussian):
    shift = gaussian(500, 400, d=1)
    expected = clone(ratio).fit(shift.source, shift.target).weights_
    for unit in (1e200, 1e-200):
        found = clone(ratio).fit(shift.source * unit, shift.target * unit).weights_
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_samples_that_lie_apart_are_seen_to():
    rng = np.random.default_rng(0)
    source, target = rng.normal(0, 1, (1000, 1)), rng.normal(100, 0.1, (100, 1))
    with pytest.warns(ShiftWarning, match="100% of the target is unlike anything"):
        fitted = NeighborRatio().fit(source, target)
    assert fitted.predict([[100.0]])[0] < 1e5


def test_ordered_levels_may_be_more_in_one_table():
    low = pl.Enum(["lo", "hi"])
    source = pl.DataFrame({"x": pl.Series(["lo", "hi"] * 20, dtype=low)})
    target = pl.DataFrame({"x": pl.Series(["lo", "hi", "top", "hi"] * 10, dtype=pl.Enum(["lo", "hi", "top"]))})
    fitted = EmpiricalRatio().fit(source, target)
    assert fitted.diagnostics_.target_outside == pytest.approx(0.25)
    other = pl.DataFrame({"x": pl.Series(["hi", "lo"] * 20, dtype=pl.Enum(["hi", "lo"]))})
    with pytest.raises(InputError, match="ordered levels of column 'x' differ"):
        EmpiricalRatio().fit(source, other)


def test_too_many_products_are_refused(rng):
    source = pl.DataFrame({c: rng.choice([f"{i:02}" for i in range(90)], 8_000) for c in "abc"})
    with pytest.raises(InputError, match="needs .* features"):
        LogisticRatio("quadratic").fit(source, source)
    two = LogisticRatio("quadratic").fit(source[:300, :1], source[300:600, :1])  # dummies of one column: no products
    assert len(two._products[0]) == 0


def test_the_margins_that_contradict_each_other_are_named():
    table = pd.DataFrame({"a": list("1212"), "b": list("1212"), "c": list("1122")})
    with pytest.raises(InputError, match="The margins 'a' and 'b' cannot be met together"):
        RakedRatio().fit(table, {"a": {"1": 0.5, "2": 0.5}, "b": {"1": 0.4, "2": 0.6}, "c": {"1": 0.5, "2": 0.5}})


def test_margins_from_pandas_and_of_missing_values():
    table = pd.DataFrame({"a": pd.Series(["x", "y", None, "y"], dtype="string"), 3: [1, 1, 2, 2]})
    fitted = RakedRatio().fit(table, {"a": table["a"].value_counts(dropna=False), 3: {1: 0.4, 2: 0.6}})
    assert fitted.weights_[2:].sum() == pytest.approx(2.4)
    array = np.array([[0.0, 5.0], [1.0, 6.0]])
    np.testing.assert_allclose(RakedRatio().fit(array, {"x0": {0: 3, 1: 1}}).predict(array), [1.5, 0.5])
