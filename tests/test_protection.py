"""Protection of sensitive columns themselves: off by default, stated in the certificate."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import InputError
from shoal.protection import add_noise


@pytest.fixture
def people():
    rng = np.random.default_rng(6)
    return pl.DataFrame(
        {
            "age": rng.integers(20, 80, 300),
            "cost": (np.exp(rng.normal(6, 2, 300)) * (rng.random(300) > 0.2)).round().astype(np.int64),
            "score": np.where(rng.random(300) < 0.1, np.nan, rng.normal(0, 5, 300)),
            "ill": rng.choice(["flu", "none"], 300),
        }
    ).with_columns(pl.col("score").fill_nan(None))


def release(people, protect, **options):
    return shoal.anonymize(
        people, quasi_identifiers=["age"], sensitive=["cost", "score", "ill"], k=5, method="permute", protect=protect,
        **options,
    )  # fmt: skip


def test_off_by_default(people):
    made = release(people, None)
    assert made.certificate["protected"] == []
    assert sorted(made.table["cost"]) == sorted(people["cost"])


def test_noise_keeps_the_mean_the_zeros_the_signs_and_the_dtype(people):
    made = release(people, {"cost": {"noise": 0.2, "top": 0.05}, "score": {"noise": 0.1}}).table
    assert made["cost"].dtype == pl.Int64
    assert made["cost"].sum() == people["cost"].sum()
    assert (made["cost"] == 0).sum() >= (people["cost"] == 0).sum()
    assert made["score"].mean() == pytest.approx(people["score"].mean(), abs=1e-9)
    assert made["score"].null_count() == people["score"].null_count()
    old, new = np.sort(people["score"].drop_nulls()), np.sort(made["score"].drop_nulls())
    assert 0 < np.abs(old - new).max() < 0.3 * 20
    assert set(made["cost"]) != set(people["cost"])


@given(
    st.lists(st.floats(-1e9, 1e9).map(lambda v: round(v, 3)), min_size=1, max_size=30),
    st.floats(0.01, 1 / 3),
    st.integers(0, 99),
)
def test_noise_properties(values, amount, seed):
    given = np.array(values)
    noisy = add_noise(given, amount, np.random.default_rng(seed))
    assert noisy.sum() == pytest.approx(given.sum(), abs=1e-9 * np.abs(given).sum() + 1e-12)
    assert (np.abs(noisy - given) <= 3 * amount * np.abs(given) * (1 + 1e-9) + 1e-12).all()


def test_noise_that_would_spare_the_richest_is_refused(people):
    """Keeping the mean exactly, whoever carries most of the total must stay as he is."""
    rich = people.with_columns(cost=pl.when(pl.int_range(300) == 7).then(10**9).otherwise(pl.col("cost")))
    with pytest.raises(InputError, match="over a tenth of the column's total"):
        release(rich, {"cost": {"noise": 0.2}})
    coded = release(rich, {"cost": {"noise": 0.2, "top": 0.05}}).table["cost"]
    assert coded.max() < 1.7 * 10**9 / 15
    assert coded.sum() == pytest.approx(rich["cost"].sum(), rel=1e-6)


def test_numbers_that_do_not_fit_are_refused(people):
    small = people.with_columns(cost=pl.Series(np.arange(300) % 28 + 100, dtype=pl.Int8))
    with pytest.raises(InputError, match="that the dtype of 'cost' cannot hold"):
        release(small, {"cost": {"noise": 0.3}})


def test_the_size_of_the_noise(rng):
    noisy = add_noise(np.full(20_000, 10.0), 0.1, rng)
    assert (noisy / 10 - 1).std() == pytest.approx(0.1, rel=0.03)


def test_top_and_bottom_coding_keep_the_total(people):
    made = release(people, {"score": {"top": 0.1, "bottom": 0.1}}).table["score"].drop_nulls()
    old = people["score"].drop_nulls()
    assert made.sum() == pytest.approx(old.sum())
    values, counts = np.unique(made, return_counts=True)
    assert counts[0] >= 0.1 * len(old)
    assert counts[-1] >= 0.1 * len(old)
    assert made.max() < old.max()
    assert made.min() > old.min()
    assert len(values) < len(old) * 0.82


def test_rounding(people):
    made = release(people, {"cost": {"round": 100}})
    assert (made.table["cost"] % 100 == 0).all()
    (said,) = made.certificate["protected"]
    assert said == {"column": "cost", "done": "rounded to multiples of 100"}
    assert "rounded to multiples of 100" in str(made)


def test_the_certificate_says_that_noise_averages_out(people):
    made = release(people, {"cost": {"noise": 0.1, "top": 0.1, "round": 10}})
    assert any(item["what"] == "noise on sensitive columns" for item in made.certificate["not_covered"])
    assert (
        "noise of relative standard deviation 0.1, the mean kept; rounded" in made.certificate["protected"][0]["done"]
    )


def test_models_are_measured_on_what_is_released(people):
    """Rounded to one value, a column has no diversity."""
    with pytest.raises(InputError, match="distinct l-diversity of 2 cannot be met by column 'score'.*reaches 1"):
        release(people, {"score": {"round": 1e6}}, l_diversity={"score": 2})


@pytest.mark.parametrize(
    ("protect", "message"),
    [
        ({"cots": {"round": 1}}, "protect names 'cots'.* did you mean 'cost'"),
        ({"age": {"round": 1}}, "protect names 'age', which is not a sensitive column"),
        ({"ill": {"round": 1}}, "protect needs numbers, but 'ill' is nominal"),
        ({"cost": {"blur": 1}}, "protect\\['cost'\\] names 'blur', which is not a step"),
        ({"cost": {"noise": 0.5}}, "noise in protect\\['cost'\\] must be a share"),
        ({"cost": {"round": 0}}, "round in protect\\['cost'\\] must be the unit"),
        ({"cost": {"top": 0.001}}, "reaches 1 people, fewer than k=5"),
        ({"cost": {}}, "must map steps to numbers"),
        ({"cost": {"round": 2.5}}, "round in protect\\['cost'\\] must be a whole number"),
        ("cost", "protect must map sensitive columns"),
    ],
)
def test_bad_input(people, protect, message):
    with pytest.raises(InputError, match=message):
        release(people, protect)
