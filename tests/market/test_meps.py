"""Market risk on real data: MEPS 2004 as the existing market, California's rating areas as new ones.

The figures of the paper's tables are the business of a study; here it is the pattern that must hold.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.market import MarketRiskAssessment, make_cost_model
from shoal.shift import EmpiricalRatio, LogisticRatio, RakedRatio, importance_weighted_fit
from shoal.utility import relative_bias

X = ["female", "age_group", "educ5", "povcat"]
BOUNDS = [25, 35, 45, 55, 65, 75, 85]
ADULT = {  # columns of ACS table B01001 by age group
    0: ["18_to_19", "20", "21", "22_to_24"],
    1: ["25_to_29", "30_to_34"],
    2: ["35_to_39", "40_to_44"],
    3: ["45_to_49", "50_to_54"],
    4: ["55_to_59", "60_to_61", "62_to_64"],
    5: ["65_to_66", "67_to_69", "70_to_74"],
    6: ["75_to_79", "80_to_84"],
    7: ["85_and_over"],
}


@pytest.fixture(scope="module")
def adults(meps):
    return meps.with_columns(age_group=pl.Series(np.digitize(meps["age"], BOUNDS)), poor=pl.col("povcat").clip(1, 4))


@pytest.fixture(scope="module")
def rating_areas(california):
    """Age x sex and poverty of the rating areas that are whole counties, from Census tables."""
    people, poverty = california("acs5_2010_B01001_age_sex_county.csv"), california("county_poverty_income.csv")
    people = people.with_columns(pl.col("geoid").cast(pl.Int64))
    poverty = poverty.select(
        "GEOID", "rating_area", "pop2017", "poverty_2017", "PERCENT_BELOW_FPL_125", "pct_below_200fpl"
    )
    county = poverty.join(people, left_on="GEOID", right_on="geoid")
    areas = {}
    for (area,), rows in county.group_by("rating_area", maintain_order=True):
        if not str(area).strip().isdigit():
            continue
        ages = {
            (group, female): float(sum(rows[f"{sex}_{column}"].sum() for column in columns))
            for group, columns in ADULT.items()
            for female, sex in enumerate(("male", "female"))
        }
        below = [np.average(rows[c], weights=rows["pop2017"]) for c in poverty.columns[3:]]
        below = np.maximum.accumulate(below)
        shares = np.diff([0, *below, 100.0])
        areas[int(area)] = {("age_group", "female"): ages, "poor": dict(zip([1, 2, 3, 4], shares, strict=True))}
    return areas


def test_rating_areas_are_raked(adults, rating_areas):
    """Real margins of counties are met to 1e-8, and older or poorer areas weigh the old or the poor more."""
    assert len(rating_areas) > 10
    table, omega = adults[["age_group", "female", "poor"]], adults["wtdper"].to_numpy()
    for margins in rating_areas.values():
        ratio = RakedRatio().fit(table, margins, weight_source=omega)
        total = omega * ratio.weights_ / omega.sum()
        counts = margins["age_group", "female"]
        for (group, female), count in counts.items():
            rows = ((table["age_group"] == group) & (table["female"] == female)).to_numpy()
            assert total[rows].sum() == pytest.approx(count / sum(counts.values()), abs=1e-8)
        for level, share in margins["poor"].items():
            assert total[(table["poor"] == level).to_numpy()].sum() == pytest.approx(share / 100, abs=1e-8)
        assert ratio.diagnostics_.effective_share > 0.5


@pytest.mark.slow
def test_cost_rises_with_the_age_of_a_market(adults, rating_areas):
    """Between the oldest and the youngest rating area, from released members, and close to what raw members say."""
    rng = np.random.default_rng(0)
    members = adults[rng.choice(len(adults), 12_000, p=adults["wtdper"].to_numpy() / adults["wtdper"].sum())]
    roles = {"quasi_identifiers": ["age_group", "female", "educ5", "poor"], "sensitive": ["exp_tot"]}
    release = shoal.anonymize(members, **roles, others="drop", k=10, n_releases=0, random_state=0)
    old = {area: sum(v for (g, _), v in m["age_group", "female"].items() if g >= 5) for area, m in rating_areas.items()}
    share = {area: old[area] / sum(rating_areas[area]["age_group", "female"].values()) for area in old}
    costs = {}
    for area in (min(share, key=share.get), max(share, key=share.get)):
        costs[area] = MarketRiskAssessment(n_resamples=20).assess(
            release, existing=adults[["age_group", "female", "poor", "wtdper"]], weight_existing="wtdper",
            new=rating_areas[area], raw=members,
        )  # fmt: skip
    young, aged = costs.values()
    assert aged.cost.value > 1.05 * young.cost.value
    for risk in costs.values():
        assert abs(risk.cost_of_privacy) < 0.04


def test_weights_take_away_the_bias_of_a_shifted_market(adults):
    """The paper's experiment in short: half of MEPS trains, the other half, tilted, is the new market; 12 splits.

    Without weights the additive models are biased by their wrong form, with them hardly.
    """
    table = adults[X]
    y, odds = adults["exp_tot"].to_numpy(), adults["wtdper"].to_numpy() / adults["wtdper"].sum()
    codes = table.to_numpy().astype(float)
    tilt = np.exp(-0.5 * (codes[:, 1] - 2.5) ** 2)  # a market of middle age; cost is convex in age
    biases = {"none": [], "empirical": [], "logistic": []}
    for split in range(12):
        rng = np.random.default_rng(split)
        train, test = rng.choice(len(y), (2, 7500), p=odds)
        weight = tilt[test]
        ratios = {
            "none": np.ones(7500),
            "empirical": EmpiricalRatio().fit(table[train], table[test], weight_target=weight).weights_,
            "logistic": LogisticRatio("quadratic").fit(table[train], table[test], weight_target=weight).weights_,
        }
        for name, weights in ratios.items():
            model = importance_weighted_fit(
                make_cost_model("additive", "numeric"), table[train], y[train], ratio=weights
            )
            biases[name].append(relative_bias(y[test], model.predict(table[test]), weight))
    means = {name: np.mean(values) for name, values in biases.items()}
    error = np.std(biases["none"], ddof=1) / np.sqrt(12)
    assert abs(means["none"]) > 0.05
    assert abs(means["empirical"]) < max(0.02, 2.5 * error)
    assert abs(means["logistic"]) < max(0.02, 2.5 * error)
