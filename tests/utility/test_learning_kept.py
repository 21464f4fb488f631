"""What a model learns from a release: closed forms, known attenuation, folds that do not peek."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeClassifier

import shoal
from shoal.errors import InputError
from shoal.utility.designs import make_design
from shoal.utility.learning import (
    as_response,
    can_be_predicted,
    coefficients,
    read_classes,
    score_kept,
    shift_error,
)
from shoal.utility.pairs import Pair

QI = ["sex", "age", "education", "income"]


def make_pair(before, after, names, *, aligned=True):
    whole = replace(Pair.read(before, after), aligned=aligned)
    return whole.only(names), next(column for column in whole.columns if column.name not in names)


def linear(n, rng, noise=1.0):
    x = rng.normal(size=(n, 2))
    y = 2 * x[:, 0] - x[:, 1] + noise * rng.normal(size=n)
    return pl.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y})


def test_an_untouched_table_keeps_all(rng):
    table = linear(2000, rng)
    pair, y = make_pair(table, table, ["a", "b"])
    kept = score_kept(pair, y, rng, LinearRegression())
    assert kept.share == pytest.approx(1.0, abs=1e-12)
    assert kept.original == pytest.approx(5 / 6, abs=0.03)  # variance 5 of 6 is explained
    assert kept.model == "LinearRegression"
    assert [round(effect.release, 12) for effect in coefficients(pair, y)] == [
        round(effect.original, 12) for effect in coefficients(pair, y)
    ]
    assert shift_error(pair, y, np.random.default_rng(0))[0] == pytest.approx(0, abs=1e-12)


def test_a_share_of_noise_is_not_told(rng):
    """R2 of 1,000 records has a standard error of about 2 sqrt(R2 / n): a share of 0.01 would be anything."""
    shares = []
    for noise, told in ((20.0, False), (2.0, True)):
        table = linear(1_000, rng, noise)
        pair, y = make_pair(table, table.sample(fraction=1, shuffle=True, seed=1), ["a", "b"], aligned=False)
        kept = score_kept(pair, y, rng, LinearRegression())
        assert np.isfinite(kept.share) == told
        shares.append(kept.original)
    assert shares[0] < 0.05 < 0.3 < shares[1]


def test_noise_on_x_attenuates_effects_as_theory_says(rng):
    table = linear(20_000, rng)
    noisy = table.with_columns(a=table["a"] + rng.normal(size=len(table)))  # variance 2: half of the effect is left
    pair, y = make_pair(table, noisy, ["a", "b"])
    effects = {effect.effect.column: effect for effect in coefficients(pair, y)}
    assert effects["a"].release / effects["a"].original == pytest.approx(0.5, abs=0.03)
    assert effects["b"].release / effects["b"].original == pytest.approx(1.0, abs=0.03)
    assert effects["a"].shift < -50
    assert abs(effects["b"].shift) < 5
    assert shift_error(pair, y, np.random.default_rng(0))[0] > 5 * shift_error(pair, y, np.random.default_rng(0))[1]


def test_standard_errors_are_those_of_repeated_samples(rng):
    estimates, errors = [], []
    for _ in range(60):
        table = linear(400, rng)
        pair, y = make_pair(table, table, ["a", "b"])
        first = coefficients(pair, y)[0]
        estimates.append(first.original)
        errors.append(first.standard_error)
    assert np.std(estimates) == pytest.approx(np.mean(errors), rel=0.35)


def test_nothing_is_learnt_from_the_people_tested(rng):
    """Pure noise cannot be predicted, unless a forest has seen the answers."""
    table = linear(600, rng).with_columns(y=pl.Series(rng.normal(size=600)))
    forest = RandomForestRegressor(20, random_state=0)
    pair, y = make_pair(table, table, ["a", "b"])
    assert score_kept(pair, y, rng, forest).release < 0.05
    assert score_kept(replace(pair, aligned=False), y, rng, forest).release > 0.3  # as docs say: it has seen them


def test_classes_are_scored_by_their_ranks(rng):
    table = linear(1500, rng)
    table = table.with_columns(y=pl.Series(np.where(table["y"] > 0, "yes", "no")))
    other = table.with_columns(y=table["y"].sample(fraction=1, shuffle=True, seed=0))
    pair, y = make_pair(table, table, ["a", "b"])
    kept = score_kept(pair, y, rng)
    assert kept.measure == "2 AUC - 1"
    assert kept.original > 0.8
    assert kept.share == pytest.approx(1.0)
    assert kept.groups == []
    pair, y = make_pair(table, other, ["a", "b"])
    assert abs(score_kept(pair, y, rng, RandomForestClassifier(20, random_state=0)).share) < 0.4
    with pytest.raises(InputError, match="gives no probabilities"):
        score_kept(pair, y, rng, RidgeClassifier())


def test_groups_of_expected_response_are_never_small(rng):
    table = linear(45, rng)
    pair, y = make_pair(table, table, ["a", "b"])
    assert len(score_kept(pair, y, rng, rare=10).groups) == 4
    assert len(score_kept(pair, y, rng, rare=20).groups) == 2
    with pytest.raises(InputError, match="known of fewer than 60 people"):
        score_kept(pair, y, rng, rare=30)


def test_rare_levels_have_no_effect_of_their_own(rng):
    levels = ["common"] * 60 + ["usual"] * 30 + ["only one"] + ["two"] * 2 + ["eight"] * 8
    table = pl.DataFrame({"level": levels, "y": rng.normal(size=101)})
    pair, _ = make_pair(table, table, ["level"])
    assert [effect.what for effect in make_design(pair, rare=10).effects] == ["level", "rare levels"]
    assert [effect.what for effect in make_design(pair, rare=12).effects] == ["level"]


LONE = {
    "a number that one person has": lambda n: {"a": np.eye(n)[7] * 3, "b": np.arange(n) % 2},
    "everybody another level, so that one is what others are compared with": lambda n: {
        "a": [f"t{i}" for i in range(n)],
        "b": np.arange(n) % 2,
    },
    "two levels that differ by one person": lambda n: {
        "a": np.where(np.arange(n) < 12, "x", "z"),
        "b": np.where(np.arange(n) < 13, "y", "z"),
    },
}


@pytest.mark.parametrize("case", LONE)
def test_no_effect_is_one_persons(case, rng):
    n, secret = 300, 4321.0
    y = rng.normal(100, 10, n)
    y[7] = y[12] = secret
    table = pl.DataFrame({**LONE[case](n), "y": y})
    pair, response = make_pair(table, table, ["a", "b"])
    spread = float(np.std(y))
    for effect in coefficients(pair, response):
        assert abs(effect.original) * spread < 1000, effect
    assert abs(np.nanmax(y) - secret) == 0


def test_an_effect_counts_people_whose_response_is_known(rng):
    y = rng.normal(size=200)
    y[1:12] = np.nan  # of twelve people at the level one is known
    table = pl.DataFrame({"level": ["x"] * 12 + ["y"] * 188, "other": np.arange(200) % 3, "y": y}, nan_to_null=True)
    pair, response = make_pair(table, table, ["level", "other"])
    assert [effect.effect.column for effect in coefficients(pair, response)] == ["other"]


def test_rare_classes_are_joined_or_refused(rng):
    def of(values):
        table = linear(len(values), rng).with_columns(y=pl.Series(values, dtype=pl.String))
        return make_pair(table, table, ["a", "b"])

    pair, y = of(["u"] * 100 + ["v"] * 50 + ["w"] * 6 + ["x"] * 5)
    assert np.bincount(read_classes(y, pair.n, 10)[: pair.n]).tolist() == [100, 50, 11]
    pair, y = of(["u"] * 100 + ["v"] * 50 + ["w"])
    assert np.bincount(read_classes(y, pair.n, 10)[: pair.n]).tolist() == [100, 51]
    pair, y = of(["u"] * 119 + ["v"])
    assert not can_be_predicted(y)
    with pytest.raises(InputError, match="'y' must have 2 to 20 classes of at least 10 people"):
        score_kept(pair, y, rng)
    pair, y = of(["u", "v"] + [None] * 118)
    with pytest.raises(InputError, match="2 to 20 classes"):
        score_kept(pair, y, rng)


def test_a_share_of_next_to_nothing_is_not_told(rng):
    table = linear(1000, rng).with_columns(y=pl.Series(rng.normal(size=1000)))
    pair, y = make_pair(table, table, ["a", "b"])
    assert np.isnan(score_kept(pair, y, rng).share)


def test_the_error_under_a_shift_by_chance_is_that_of_independent_samples(rng):
    def draw():
        town, a = rng.integers(0, 40, 500), rng.normal(size=500)
        return pl.DataFrame({"town": [f"t{t}" for t in town], "a": a, "y": np.exp(rng.normal(size=500) + 0.3 * a)})

    errors, chances = [], []
    for _ in range(12):
        pair, y = make_pair(draw(), draw(), ["town", "a"], aligned=False)
        error, chance = shift_error(pair, y, rng)
        errors.append(error)
        chances.append(chance)
    assert np.mean(chances) == pytest.approx(np.mean(errors), rel=0.5)


def test_the_error_under_a_shift_does_not_depend_on_an_origin_that_means_nothing(rng):
    table = linear(800, rng)
    noisy = table.with_columns(a=table["a"] + rng.normal(size=800))
    errors = []
    for origin in (0.0, -0.5, -4.0):
        (pair, y) = make_pair(*(t.with_columns(y=t["y"] + origin) for t in (table, noisy)), ["a", "b"])
        errors.append(shift_error(pair, y, np.random.default_rng(0))[0])
    assert errors == pytest.approx([errors[0]] * 3, rel=1e-6)


def test_missing_values_have_an_effect_and_missing_responses_are_left_out(rng):
    table = linear(400, rng).with_columns(
        a=pl.Series(np.where(np.arange(400) % 4 == 0, np.nan, rng.normal(size=400))),
        y=pl.Series([None if i % 7 == 0 else float(i) for i in range(400)]),
    )
    pair, y = make_pair(table, table, ["a", "b"])
    assert [effect.effect.what for effect in coefficients(pair, y)] == ["number", "missing", "number"]
    assert score_kept(pair, y, rng).tested == 400 - len(range(0, 400, 7))


def test_what_can_be_predicted():
    table = pl.DataFrame({"x": [1.0, 2.0], "c": [1.0, 1.0], "id": ["a", "b"]})
    columns = Pair.read(table, table).of(0)
    assert [can_be_predicted(column) for column in columns] == [True, False, False]
    many = pl.DataFrame({"id": ["a", "b"] * 10})
    assert can_be_predicted(Pair.read(many, many).of(0)[0])
    assert as_response(columns[2]).tolist() == [1.0, 0.0]


def test_dither_costs_under_a_shift_and_permuting_hardly():
    """The finding that the frontier has to show."""
    cohort = shoal.datasets.load_cohort(8000)
    error = {}
    for name, way in {
        "permute": {"method": "permute"},
        "wide": {"loading": 1 / 3},
        "narrow": {"loading": 0.03},
    }.items():
        hidden = shoal.Anonymizer(k=10, random_state=0, **way).fit_transform(cohort[QI])
        pair, y = make_pair(cohort[[*QI, "cost"]], hidden.with_columns(cost=cohort["cost"]), QI)
        error[name] = shift_error(pair, y, np.random.default_rng(0))[0]
    assert error["wide"] > 0.025 > error["narrow"] > 0
    assert error["permute"] < 0.01
