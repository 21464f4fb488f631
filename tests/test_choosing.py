"""Which setting to take: the bound meets the limit, the optimal attacker decides among equals, the nearest never."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.choosing import Outcome, k_for, recommend
from shoal.errors import InputError

QI = ["sex", "age", "education", "income"]


def outcome(**given):
    given = {"optimal": 0.01, "nearest": 0.01, "joint": 1.0, "prediction": 1.0, "shift": 0.0, **given}
    k = given.pop("k", 20)
    named = {"method": "permute", "recovery": None, "loading": None, **given}
    return Outcome(k=k, bound=1 / k, optimal_max=1 / k, **named)


@given(st.floats(1e-4, 0.5))
def test_k_is_the_smallest_whose_bound_meets_the_limit(limit):
    k = k_for(limit)
    assert 1 / k <= limit * (1 + 1e-6)
    assert k == 2 or 1 / (k - 1) > limit * (1 - 1e-6)


def test_only_the_bound_meets_a_limit():
    weak = outcome(k=5, optimal=0.0001, nearest=0.0001)  # attackers fail on it, but nothing guarantees that
    strong = outcome(k=20, optimal=0.04, nearest=0.04, prediction=0.7)
    assert recommend([weak, strong], 0.05)[0] is strong
    chosen, why = recommend([weak], 0.05)
    assert chosen is None
    assert "try k = 20 or more" in why


def test_a_larger_k_than_needed_is_not_taken():
    assert recommend([outcome(k=20, prediction=0.9), outcome(k=50, prediction=1.0)], 0.05)[0].k == 20


def test_utility_decides_first_then_the_optimal_attacker():
    good = outcome(prediction=0.99, optimal=0.04, method="permute")
    safe = outcome(prediction=0.98, optimal=0.01, method="gaussian")
    poor = outcome(prediction=0.90, optimal=0.001, method="centroid")
    chosen, why = recommend([good, safe, poor], 0.05)
    assert chosen is safe
    assert "achieves least on it: 1.00%" in why
    assert recommend([good, safe, poor], 0.05, tolerance=0.0)[0] is good
    assert recommend([good, safe, poor], 0.05, tolerance=0.2)[0] is poor


@given(st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_the_nearest_match_never_decides(nearest):
    settings = [outcome(optimal=0.03), outcome(optimal=0.01, method="gaussian"), outcome(optimal=0.02, method="rank")]
    changed = [replace(one, nearest=value) for one, value in zip(settings, nearest, strict=True)]
    assert recommend(changed, 0.05)[0] is changed[1]


def test_an_unmeasured_attacker_is_no_reason_to_prefer_a_setting():
    unknown = outcome(optimal=math.nan, method="gaussian")
    assert recommend([unknown, outcome(optimal=0.05)], 0.05)[0].method == "permute"


def test_utility_is_the_least_of_what_is_kept():
    assert outcome(joint=0.9, prediction=0.95, shift=0.2).utility == pytest.approx(0.8)
    assert outcome(joint=0.9, prediction=math.nan, shift=math.nan).utility == pytest.approx(0.9)
    assert outcome(prediction=-3.0).utility == 0.0


@pytest.fixture(scope="module")
def found():
    cohort = shoal.datasets.load_cohort(3000)
    return shoal.frontier(
        cohort, quasi_identifiers=QI, sensitive=["cost"], ks=[5, 50], n_releases=3, random_state=0, progress=False
    )


def test_the_frontier_shows_what_is_known_of_the_methods(found):
    by = {(o.k, o.name): o for o in found.outcomes}
    assert {k for k, _ in by} == {5, 20, 50}  # the k of the limit is tried too
    assert len(by) == 3 * 6
    for o in found.outcomes:
        assert o.bound == 1 / o.k
        assert o.optimal <= o.bound + 1e-9
        assert o.optimal_max <= o.bound + 1e-9
    for k in (5, 20, 50):
        assert by[k, "permute"].joint == by[k, "gaussian 0.33"].joint == 1.0
        assert by[k, "centroid"].joint < 0.95
        assert by[k, "gaussian 0.33"].optimal < by[k, "gaussian 0.03"].optimal < by[k, "permute"].optimal
        assert by[k, "gaussian 0.33"].shift > by[k, "permute"].shift
    assert by[5, "permute"].optimal > by[20, "permute"].optimal > by[50, "permute"].optimal


def test_the_recommendation_of_a_frontier(found):
    assert found.recommended.k == 20
    assert "1/20 = 0.05 meets the limit of 0.05" in found.why
    best = max(o.utility for o in found.outcomes if o.k == 20)
    good = [o for o in found.outcomes if o.k == 20 and o.utility >= best - 0.02]
    assert found.recommended.optimal == min(o.optimal for o in good)


def test_a_frontier_is_a_table_a_chart_json_and_a_page(found, tmp_path):
    table = found.table
    assert isinstance(table, pl.DataFrame)
    assert table["recommended"].sum() == 1
    assert len(table) == len(found.outcomes)
    found.to_json(tmp_path / "f.json")
    found.to_html(tmp_path / "f.html")
    data = json.loads((tmp_path / "f.json").read_text())
    for row, o in zip(data["outcomes"], found.outcomes, strict=True):
        assert row["utility"] == pytest.approx(o.utility, rel=1e-5)
    page = (tmp_path / "f.html").read_text()
    assert found.recommended.name in page
    assert "recommended" in page
    assert "optimal_max" not in json.dumps(found.to_dict("public"))
    assert "recommended" in str(found)
    assert "<svg" in found._repr_html_()
    assert found.chart.to_dict()["description"].startswith("Risk against utility")


def test_the_same_seed_gives_the_same_frontier():
    cohort = shoal.datasets.load_cohort(300)
    options = {"quasi_identifiers": QI, "sensitive": ["cost"], "ks": [5], "limit": 0.2, "progress": False}
    one, two = (shoal.frontier(cohort, **options, random_state=7) for _ in range(2))
    assert one.to_dict() == two.to_dict()


def test_a_frontier_without_anything_to_predict():
    cohort = shoal.datasets.load_cohort(300)
    found = shoal.frontier(cohort, quasi_identifiers=QI, ks=[5], limit=0.2, methods=["permute"], progress=False)
    assert found.target is None
    assert math.isnan(found.outcomes[0].prediction)
    assert found.outcomes[0].utility == found.outcomes[0].joint == 1.0


def test_what_cannot_be_predicted_cannot_be_lost(rng):
    cohort = shoal.datasets.load_cohort(1000).with_columns(noise=pl.Series(rng.normal(size=1000)))
    found = shoal.frontier(
        cohort, quasi_identifiers=QI, sensitive=["noise"], ks=[5], limit=0.2, methods=["gaussian"], progress=False
    )
    assert all(math.isnan(o.prediction) and math.isnan(o.shift) and o.utility == 1.0 for o in found.outcomes)
    assert "Hardly anything of 'noise' can be predicted" in str(found)


def test_classes_are_predicted_too():
    cohort = shoal.datasets.load_cohort(600).with_columns(ill=pl.Series(np.arange(600) % 3 == 0).cast(pl.String))
    found = shoal.frontier(
        cohort, quasi_identifiers=QI, sensitive=["ill"], ks=[5], limit=0.2, methods=["permute"], progress=False
    )
    assert found.target == "ill"


def test_large_tables_are_tried_in_whole_clusters(monkeypatch):
    monkeypatch.setattr(shoal.choosing, "_MOST_PEOPLE", 500)
    cohort = shoal.datasets.load_cohort(2000)
    found = shoal.frontier(
        cohort, quasi_identifiers=QI, sensitive=["cost"], ks=[10], limit=0.1, methods=["permute"], random_state=0
    )
    assert (found.people, found.tried) == (2000, 500)
    assert found.outcomes[0].optimal <= 0.1
    labels = np.random.default_rng(0).integers(0, 100, 2000)
    rows = shoal.choosing._whole_clusters(labels, np.random.default_rng(0))
    assert 300 < len(rows) <= 500
    assert set(labels[rows]).isdisjoint(np.delete(labels, rows))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"limit": 0}, "limit=0 must be a number from 0 to 1"),
        ({"tolerance": -1}, "tolerance=-1 must be"),
        ({"ks": []}, "ks must be a list"),
        ({"ks": [1]}, "k=1"),
        ({"methods": ["gauss"]}, "methods names 'gauss'.*did you mean 'gaussian'"),
        ({"methods": "permute"}, "methods must be a list"),
        ({"loadings": [0.0]}, "loading=0.0"),
        ({"target": "costs"}, "target='costs' is not a sensitive column; did you mean 'cost'"),
    ],
)
def test_errors_say_what_to_do(options, text):
    cohort = shoal.datasets.load_cohort(100)
    given = {"quasi_identifiers": QI, "sensitive": ["cost"], **options}
    with pytest.raises(InputError, match=text):
        shoal.frontier(cohort, **given, progress=False)


# ---------------------------------------------------------------- anonymize(max_risk=...)


def test_max_risk_takes_k_from_the_bound_and_says_what_it_picked():
    cohort = shoal.datasets.load_cohort(1500)
    release = shoal.anonymize(
        cohort, quasi_identifiers=QI, sensitive=["cost"], others="drop", max_risk=0.09, random_state=0, progress=False
    )
    certificate = release.certificate
    assert certificate["k"] == 12
    assert certificate["clusters"]["smallest"] >= 12
    chosen = certificate["chosen"]
    assert chosen["max_risk"] == 0.09
    picked = next(row for row in chosen["outcomes"] if row["recommended"])
    assert (picked["method"], picked["recovery"]) == (certificate["method"], certificate["recovery"])
    if picked["loading"] is not None:
        assert picked["loading"] == pytest.approx(certificate["loading"], rel=1e-3)
    assert {row["k"] for row in chosen["outcomes"]} == {12}
    assert chosen["why"] in str(release)
    assert json.dumps(certificate, allow_nan=False)
    page = tuple(release.assess(progress=False).charts())
    assert "frontier" in page


@pytest.mark.parametrize(
    ("fixed", "settings"),
    [
        ({"method": "permute"}, {("permute", None)}),
        ({"method": "gaussian", "loading": 0.2}, {("gaussian", 0.2)}),
        ({"recovery": "rank"}, {("gaussian", 0.3333), ("gaussian", 0.1), ("gaussian", 0.03)}),
    ],
)
def test_what_the_caller_fixed_is_kept(fixed, settings):
    cohort = shoal.datasets.load_cohort(300)
    release = shoal.anonymize(
        cohort, quasi_identifiers=QI, sensitive=["cost"], others="drop", max_risk=0.1, random_state=0, **fixed
    )
    tried = {(row["method"], row["loading"]) for row in release.certificate["chosen"]["outcomes"]}
    assert tried == settings
    assert release.certificate["recovery"] in (fixed.get("recovery"), "transport" if "loading" in fixed else None)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_risk": 0.05, "k": 20}, "k=20 and max_risk=0.05 say the same thing twice"),
        ({"max_risk": 0.7}, "max_risk=0.7 must be a chance above 0 and at most 0.5"),
        ({"max_risk": "0.05"}, "max_risk='0.05' must be"),
        ({"max_risk": 0.001}, "k=1000 needs at least 1000 rows"),
        ({"target": "cost"}, "target='cost' goes with max_risk only"),
        ({"max_risk": 0.1, "target": "costs"}, "target='costs' is not a sensitive column"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(options, text):
    cohort = shoal.datasets.load_cohort(100)
    with pytest.raises(InputError, match=text):
        shoal.anonymize(cohort, quasi_identifiers=QI, sensitive=["cost"], others="drop", **options)


def test_without_a_limit_nothing_is_chosen():
    cohort = shoal.datasets.load_cohort(200)
    release = shoal.anonymize(cohort, quasi_identifiers=QI, sensitive=["cost"], others="drop", n_releases=0)
    assert release.certificate["chosen"] is None
    assert (release.certificate["k"], release.certificate["method"]) == (10, "gaussian")
    assert release.certificate["loading"] == pytest.approx(1 / 3)
