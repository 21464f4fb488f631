from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import nbinom

import shoal
from shoal import InputError
from shoal.privacy import class_sizes, presence, reidentification_risk, summarise_risk
from shoal.privacy.findings import wilson


def test_class_sizes_of_a_release_read_k_of_one_although_nobody_can_be_picked_out():
    people = shoal.datasets.load_cohort(400)
    qi = ["sex", "age", "education", "income"]
    release = shoal.anonymize(people, quasi_identifiers=qi, sensitive=["cost"], others="drop", k=5, random_state=0)
    found = class_sizes(release.table, qi)
    assert found.details["k"] == 1
    sizes = people.group_by(qi).len()["len"].to_numpy()
    np.testing.assert_array_equal(np.sort(found.details["sizes"]), np.sort(sizes))
    assert found.rate == (sizes == 1).sum() / 400
    assert found.interval[0] < found.rate < found.interval[1]
    assert release.certificate["bound"] == 0.2


def test_presence():
    original = pl.DataFrame({"age": [20, 20, 30, 40, 50]})
    shown = presence(original, pl.DataFrame({"age": [50, 20, 20, 40, 33]}))
    assert shown.details == {"alone": 3, "shown": 2}
    assert shown.rate == pytest.approx(2 / 3)
    population = pl.DataFrame({"age": [20, 20, 30, 30, 40, 50, 60]})
    proven = presence(original, original, population=population)
    assert proven.details == {"alone": 2, "shown": 2}  # 40 and 50 are alone in the population too
    nobody = presence(pl.DataFrame({"age": [1, 1]}), pl.DataFrame({"age": [1, 1]}))
    assert nobody.rate == 0.0
    assert "Nobody is alone" in str(nobody)


def test_permuting_shows_everybody_and_centroids_few():
    people = shoal.datasets.load_cohort(600)
    qi = ["sex", "age", "education", "income"]
    rates = {}
    for method in ("permute", "resample", "centroid"):
        release = shoal.anonymize(
            people, quasi_identifiers=qi, sensitive=["cost"], others="drop", k=5, method=method, random_state=0
        )
        rates[method] = presence(people, release.table, qi).rate
    assert rates["permute"] == 1.0
    assert 0.5 < rates["resample"] < 0.8  # 1 - (1 - 1/5)^5 = 0.67
    assert rates["centroid"] < 0.1


@pytest.mark.parametrize(("f", "p"), [(1, 0.1), (3, 0.02), (40, 0.5), (2, 0.999), (150, 0.01), (100, 0.02)])
def test_expected_inverse_of_the_population_count_is_that_of_the_negative_binomial(f, p):
    beyond = np.arange(200_000)
    direct = (nbinom.pmf(beyond, f, p) / (f + beyond)).sum()
    found = summarise_risk([0.5], [f], sampling_fraction=p).journalist.rate
    assert found == pytest.approx(0.5 * f * direct, rel=1e-8)


def test_a_whole_population_makes_the_journalist_a_prosecutor():
    risk = reidentification_risk([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1], method="permute")
    summary = summarise_risk(risk.per_record)
    assert summary.prosecutor.rate == summary.journalist.rate == 0.5
    assert summary.marketer.rate == 0.5
    assert summary.prosecutor.details == {"above 0.05": 1.0, "above 0.09": 1.0, "above 0.2": 1.0}
    sampled = summarise_risk(risk.per_record, sampling_fraction=0.01)
    assert sampled.journalist.rate < 0.03
    assert sampled.prosecutor.rate == 0.5
    assert "2.0 are expected" in summary.reading


def test_marketer_interval_covers_the_number_found(rng):
    chances = rng.random(500) * 0.2
    low, high = summarise_risk(chances).marketer.interval
    found = (rng.random((2000, 500)) < chances).mean(axis=1)
    assert 0.92 < ((found >= low) & (found <= high)).mean() < 0.98


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"per_record": []}, "per_record must be chances"),
        ({"per_record": [1.5]}, "per_record must be chances"),
        ({"per_record": [np.nan]}, "per_record must be chances"),
        ({"sampling_fraction": 0}, "sampling_fraction=0 must be"),
        ({"sizes": [0]}, "sizes must be"),
        ({"per_record": ["a"]}, "per_record must be numbers"),
        ({"thresholds": ["a"]}, "thresholds must be numbers"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        summarise_risk(**({"per_record": [0.1]} | options))


def test_a_risk_may_be_passed_whole():
    risk = reidentification_risk([[1.0], [2.0]], [0, 0], method="permute")
    assert summarise_risk(risk).marketer.rate == risk.mean


def test_presence_of_the_columns_that_both_tables_have():
    original = pl.DataFrame({"name": ["a", "b"], "age": [1, 2]})
    assert presence(original, pl.DataFrame({"age": [2, 1]})).rate == 1.0


def test_unknown_columns_are_named():
    with pytest.raises(InputError, match="names 'agee', which is not a column; did you mean 'age'"):
        class_sizes(pl.DataFrame({"age": [1]}), ["agee"])
    with pytest.raises(InputError, match="at least one column"):
        class_sizes(pl.DataFrame({"age": [1]}), [])


def test_wilson_interval_covers(rng):
    covered = [low <= 0.03 <= high for low, high in (wilson(rng.binomial(200, 0.03) / 200, 200) for _ in range(2000))]
    assert np.mean(covered) > 0.93
