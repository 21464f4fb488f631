"""The paper's attack on aligned tables, its variants, and the attackers whom 1/k does not bind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal import Anonymizer, InputError
from shoal.privacy import compare_attackers, guess_linkage, reidentification_risk, simulate_linkage


def brute_force(X, released):
    """Nearest match on standardised columns, ties averaged."""
    mean, spread = X.mean(axis=0), np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    a, b = (X - mean) / spread, (released - mean) / spread
    distance = np.sqrt(((a[:, None] - b) ** 2).sum(axis=2))
    tied = distance <= distance.min(axis=1, keepdims=True) + 1e-9
    return tied.diagonal() / tied.sum(axis=1)


def test_it_is_the_brute_force_attack(rng):
    X = rng.integers(0, 4, (150, 3)).astype(float)
    released = X[rng.permutation(150)] + rng.integers(0, 2, (150, 3))
    found = simulate_linkage(X, released, n_trials=400, random_state=0)
    np.testing.assert_allclose(found.per_record, brute_force(X, released), atol=1e-12)
    trials = found.details["trials"]
    assert len(trials) == 400
    assert abs(trials.mean() - found.rate) < 4 * trials.std() / 20
    assert found.interval[0] <= found.rate <= found.interval[1]
    assert f"{found.rate:.2%} of 150 people" in str(found)


def test_untouched_unique_rows_are_all_found_and_the_exact_risk_is_met(rng):
    X = rng.standard_normal((300, 3))
    assert simulate_linkage(X, X).rate == 1.0
    model = Anonymizer(5, method="permute", random_state=0)
    hidden = model.fit_transform(X)
    labels = model.labels_
    rates = []
    for seed in range(200):
        released = Anonymizer(5, method="permute", random_state=seed).fit_transform(X) if seed < 3 else None
        if released is None:  # the same clusters, permuted anew
            order = np.lexsort((np.random.default_rng(seed).random(300), labels))
            released = np.empty_like(X)
            released[np.argsort(labels, kind="stable")] = X[order]
        rates.append(simulate_linkage(X, released, n_trials=1, random_state=seed).rate)
    exact = reidentification_risk(X, labels, method="permute").mean
    assert abs(np.mean(rates) - exact) < 4 * np.std(rates) / np.sqrt(200)
    assert hidden.shape == X.shape


def test_knowing_fewer_columns_finds_fewer(rng):
    X = rng.integers(0, 10, (400, 3)).astype(float)
    everything, some = simulate_linkage(X, X), simulate_linkage(X, X, columns=[0])
    np.testing.assert_allclose(some.per_record, 1 / np.bincount(X[:, 0].astype(int))[X[:, 0].astype(int)])
    assert some.rate < everything.rate / 5
    assert "1 of the quasi-identifiers" in str(some)
    people = pl.DataFrame({"age": X[:, 0], "sex": ["M", "F"] * 200})
    assert simulate_linkage(people, people, columns=["sex"]).rate == pytest.approx(1 / 200)


def test_noisy_knowledge_finds_fewer(rng):
    X = rng.standard_normal((300, 2))
    rates = [simulate_linkage(X, X, noise=noise, n_trials=5, random_state=0).rate for noise in (0.0, 0.01, 0.1, 1.0)]
    assert rates[0] == 1.0
    assert rates[0] > rates[1] > rates[2] > rates[3]
    levels = pl.DataFrame({"job": [f"job {i}" for i in range(50)]})
    blurred = simulate_linkage(levels, levels, noise=0.5, n_trials=60, random_state=0)
    assert blurred.rate == pytest.approx(0.5 + 0.5 / 50, abs=0.05)


def test_a_known_sensitive_value_narrows_the_candidates(rng):
    X, y = rng.integers(0, 3, (200, 2)).astype(float), np.arange(200) * 10.0
    released = Anonymizer(20, method="permute", random_state=0).fit_transform(X)
    assert simulate_linkage(X, released, sensitive=y).rate == 1.0  # everybody's y is unique
    wide = simulate_linkage(X, released, sensitive=y, tolerance=0.2)
    assert 1 / 20 < wide.rate < 1.0
    assert "not bound by 1/k" in str(wide)
    nothing = simulate_linkage(X, released, sensitive=np.zeros(200))
    np.testing.assert_allclose(nothing.per_record, simulate_linkage(X, released).per_record)
    text = simulate_linkage(X, released, sensitive=np.array(["flu", "cold"] * 100))
    assert simulate_linkage(X, released).rate < text.rate < 1


def test_candidates_are_those_within_the_tolerance():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([100.0, 104.0, 110.0, 300.0])
    swapped = X[[1, 0, 3, 2]]
    # of the first person, 100 and 104 agree within 5 %: the nearer is the record of the second
    found = simulate_linkage(X, swapped, sensitive=y, tolerance=0.05)
    np.testing.assert_allclose(found.per_record, [0.0, 0.0, 1.0, 1.0])
    other = simulate_linkage(X, swapped, sensitive=y, sensitive_released=y + 50, tolerance=0.05)
    assert other.rate == 0.0  # nothing agrees


def test_a_sample_of_people(rng):
    X = rng.standard_normal((500, 2))
    found = simulate_linkage(X, X, n_people=40, random_state=0)
    assert len(found.per_record) == len(found.details["people"]) == 40
    assert found.interval == pytest.approx((0.9124, 1.0), abs=1e-3)  # Wilson, 40 of 40


def test_tables_of_different_kinds_and_dtypes():
    original = pd.DataFrame({"age": [30, 40, 50, 60], "sex": pd.Categorical(["F", "M", "F", "M"])})
    released = pl.DataFrame({"sex": ["F", "M", "F", "M"], "age": [35.0, 35.0, 55.0, 55.0]})
    np.testing.assert_allclose(simulate_linkage(original, released).per_record, [1.0, 1.0, 1.0, 1.0])
    edu = pl.DataFrame({"edu": ["none", "school", "college"]})
    kinds = {"edu": ["none", "school", "college"]}
    moved = pl.DataFrame({"edu": ["school", "school", "none"]})
    np.testing.assert_allclose(simulate_linkage(edu, moved, kinds=kinds).per_record, [0.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X_released": [[1.0], [2.0]]}, "the same people in the same rows"),
        ({"columns": []}, "columns must be a list"),
        ({"columns": ["age"]}, "columns names 'age'"),
        ({"noise": -1}, "noise=-1 must be"),
        ({"noise": float("nan")}, "noise=nan must be"),
        ({"n_trials": 0}, "n_trials=0 must be"),
        ({"sensitive": [1.0]}, "sensitive must have 3 rows"),
        ({"sensitive": [1.0, 2.0, 3.0], "tolerance": -1}, "tolerance=-1 must be"),
    ],
)
def test_bad_input(options, message):
    given = {"X": [[1.0], [2.0], [3.0]], "X_released": [[1.0], [2.0], [3.0]]} | options
    with pytest.raises(InputError, match=message):
        simulate_linkage(given.pop("X"), given.pop("X_released"), **given)


def test_a_missing_column_is_named():
    with pytest.raises(InputError, match="X_released has no column 'age'"):
        simulate_linkage(pl.DataFrame({"age": [1, 2]}), pl.DataFrame({"sex": [1, 2]}))


# ---------------------------------------------------------------- learning p(y | x)


@pytest.fixture(scope="module")
def dependent():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 2))
    return X, X @ [2.0, 3.0] + 0.1 * rng.standard_normal(1500), rng.standard_normal(1500)


def test_whoever_guesses_a_value_that_depends_on_x_exceeds_one_over_k(dependent):
    X, y, noise = dependent
    found = compare_attackers(X, y, k=10, method="permute", random_state=0)
    rate = {table: {name: f.rate for name, f in by.items()} for table, by in found.findings.items()}
    assert rate["release"]["quasi-identifiers"] <= 0.1
    assert rate["release"]["learns y"] > 0.12  # not bound by 1/k, and the docs say so
    assert rate["centroid"]["learns y"] > rate["release"]["learns y"]
    assert rate["raw"]["learns y"] > 0.99
    assert rate["release"]["knows y"] > 0.3
    assert "above 1/k" in found.reading
    assert "raw" in str(found)
    nothing = compare_attackers(X, noise, k=10, method="permute", random_state=0)
    learnt = nothing.findings["release"]["learns y"]
    assert learnt.rate == pytest.approx(nothing.findings["release"]["quasi-identifiers"].rate, abs=0.02)


def test_the_dither_blunts_the_guess(dependent):
    X, y, _ = dependent
    permuted, dithered = (
        compare_attackers(X, y, k=10, method=method, random_state=0).findings["release"]["learns y"].rate
        for method in ("permute", "gaussian")
    )
    assert dithered < permuted / 3


def test_guessing_a_diagnosis(rng):
    X = np.repeat([[0.0], [1.0]], 100, axis=0)
    labels = np.tile(["young: measles", "old: gout"], 1)
    y = np.where(X[:, 0] == 0, labels[0], labels[1])
    mixed = X[rng.permutation(200)]  # one cluster of everybody
    found = guess_linkage(X, mixed, y, random_state=0)
    assert found.rate < 0.05
    assert "not bound by 1/k" in found.reading
    with pytest.raises(InputError, match="sensitive must have 200 rows"):
        guess_linkage(X, mixed, y[:10])
    with pytest.raises(InputError, match="sensitive must have 200 rows"):
        compare_attackers(X, y[:10])
    with pytest.raises(InputError, match="tolerance=-0.1 must be"):
        compare_attackers(X, y, tolerance=-0.1)
    with pytest.raises(InputError, match="sensitive must be a table, or values of everybody"):
        guess_linkage(X, mixed, None)


def test_constant_and_missing_sensitive_values(rng):
    X = rng.standard_normal((80, 2))
    values = pl.DataFrame({"ill": ["no"] * 80, "cost": [None if i % 7 == 0 else float(i) for i in range(80)]})
    found = guess_linkage(X, X, values, random_state=0)
    assert 0.5 < found.rate <= 1
