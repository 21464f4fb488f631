"""Market risk: truth where it is known, margins, enrolment, releases beside raw data."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

import shoal
from shoal.errors import InputError
from shoal.market import MarketRiskAssessment, make_cost_model
from shoal.shift import EmpiricalRatio, LogisticRatio, RakedRatio, ShiftWarning

pytestmark = pytest.mark.filterwarnings("ignore::shoal.shift.ShiftWarning")  # asserted where they are meant
QI = ["sex", "age_group", "income"]
AGES = ["18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+"]


def draw(cohort, odds, n, seed):
    """Draw people with these odds."""
    rows = np.random.default_rng(seed).choice(len(cohort), n, p=odds / odds.sum())
    return cohort[rows]


@pytest.fixture(scope="module")
def world():
    """An existing market, a younger membership in it, an older new market, and who would enrol there.

    Everybody is drawn from one population, so that costs given x are the same everywhere.
    """
    population = shoal.datasets.load_cohort(60_000, 21)
    age = population["age_group"].to_physical().to_numpy()
    enrols = np.exp(-0.25 * age)
    older = np.exp(0.3 * age) * np.where(population["income"] == "poor", 2.0, 1.0)
    return {
        "existing": draw(population, np.ones(60_000), 20_000, 1),
        "members": draw(population, enrols, 12_000, 2),
        "new": draw(population, older, 15_000, 3),
        "truth": population,
        "enrollees": older * enrols,
    }


def expected_cost(world, factor=1.0, rows=None):
    """The mean cost of the new enrollees, from the whole population."""
    odds = world["enrollees"] * factor
    cost = world["truth"]["cost"].to_numpy()
    rows = np.ones(len(cost), dtype=bool) if rows is None else rows
    return np.average(cost[rows], weights=odds[rows])


def margins(table):
    return {
        "age_group": dict(table["age_group"].value_counts().iter_rows()),
        ("sex", "income"): table.group_by("sex", "income").len(),
    }


def assess(world, **options):
    chosen = ("model", "ratio", "enrolment", "cost_of_living", "n_resamples")
    settings = {"n_resamples": 20} | {key: options.pop(key) for key in chosen if key in options}
    given = {"cost": "cost", "existing": world["existing"][QI], "new": world["new"][QI], **options}
    return MarketRiskAssessment(**settings).assess(given.pop("members", world["members"]), **given)


def test_the_cost_of_new_enrollees_is_found(world):
    truth = expected_cost(world)
    members = world["members"]["cost"].mean()
    for options in ({"model": None}, {"ratio": LogisticRatio()}):
        risk = assess(world, **options, n_resamples=40)
        assert risk.cost.value == pytest.approx(truth, rel=0.07)
        assert risk.cost.interval[0] < truth < risk.cost.interval[1]
        assert abs(members / truth - 1) > 0.2  # unweighted, one would be far off
        assert risk.existing_cost == pytest.approx(members)
        assert not risk.diagnostics.warnings
    assert risk.weights.mean() == pytest.approx(1)


def test_additive_and_plain_averages_agree(world):
    """Weighted least squares with an intercept has residuals of weighted mean 0, on the whole and in every level."""
    plain = assess(world, model=None, segments=["age_group"])
    additive = assess(world, model="additive", segments=["age_group"])
    assert additive.cost.value == pytest.approx(plain.cost.value)
    assert additive.cost.interval == pytest.approx(plain.cost.interval)
    for a, b in zip(additive.segments, plain.segments, strict=True):
        assert a.cost.value == pytest.approx(b.cost.value)
        assert (a.level, a.share_new) == (b.level, pytest.approx(b.share_new))


def test_segments(world):
    risk = assess(world, segments=["age_group", "sex"], n_resamples=40)
    assert [s.level for s in risk.segments] == [*AGES, "female", "male"]  # ordered levels in their order
    ages = risk.segments[:8]
    assert sum(s.share_new for s in ages) == pytest.approx(1)
    assert sum(s.share_existing for s in ages) == pytest.approx(1)
    assert sum(s.share_new * s.cost.value for s in ages) == pytest.approx(risk.cost.value)
    group = world["truth"]["age_group"].to_physical().to_numpy()
    shares = np.bincount(group, world["enrollees"]) / world["enrollees"].sum()
    np.testing.assert_allclose([s.share_new for s in ages], shares, atol=0.03)
    inside = 0
    for code, segment in enumerate(ages):
        truth = expected_cost(world, rows=group == code)
        inside += segment.cost.interval[0] < truth < segment.cost.interval[1]
    assert inside >= 6
    table = risk.to_polars()
    assert table.shape == (11, 8)
    assert table["cost"][0] == risk.cost.value


@pytest.mark.parametrize("existing", ["table", "margins"])
@pytest.mark.parametrize("new", ["table", "margins"])
def test_margins_are_as_good_as_tables_where_the_shift_is_a_product(world, existing, new):
    risk = assess(
        world,
        existing=world["existing"][QI] if existing == "table" else margins(world["existing"]),
        new=world["new"][QI] if new == "table" else margins(world["new"]),
    )
    assert risk.cost.value == pytest.approx(expected_cost(world), rel=0.08)


@pytest.mark.slow
def test_direction_is_new_over_existing(world):
    """Exchanging the markets inverts the weights, whichever way they are given."""
    tables, both = (world["existing"][QI], world["new"][QI]), (margins(world["existing"]), margins(world["new"]))
    for old, new in (tables, both, (tables[0], both[1]), (both[0], tables[1])):
        members = world["members"][:1500]
        there = assess(world, members=members, existing=old, new=new)
        back = assess(world, members=members, existing=new, new=old)
        age = members["age_group"].to_physical().to_numpy()
        assert np.average(age, weights=there.weights) > age.mean() > np.average(age, weights=back.weights)
        product = there.weights * back.weights
        middle = (there.weights > 0) & (back.weights > 0)
        assert np.std(np.log(product[middle])) < 0.25 * np.std(np.log(there.weights[middle]))


def test_enrolment_and_cost_of_living(world):
    def twice_as_likely_when_old(table):
        return np.where(table["age_group"].is_in(["65-74", "75-84", "85+"]), 2.0, 1.0)

    group = world["truth"]["age_group"].to_physical().to_numpy()
    truth = expected_cost(world, np.where(group >= 5, 2.0, 1.0))
    risk = assess(world, enrolment=twice_as_likely_when_old)
    assert risk.cost.value == pytest.approx(truth, rel=0.07)
    assert "given function" in risk.assumptions[0]
    dear = assess(world, enrolment=twice_as_likely_when_old, cost_of_living=1.3, enrollees=1000)
    assert dear.cost.value == pytest.approx(1.3 * risk.cost.value)
    assert dear.total.value == pytest.approx(1300 * risk.cost.value)
    assert dear.total.interval[1] == pytest.approx(1000 * dear.cost.interval[1])
    assert "times 1.3" in dear.assumptions[1]


def test_without_an_existing_market_enrollees_are_compared_with_members(world):
    enrollees = draw(world["truth"], world["enrollees"], 15_000, 9)
    risk = assess(world, existing=None, new=enrollees[QI])
    assert risk.cost.value == pytest.approx(expected_cost(world), rel=0.07)
    raked = assess(world, existing=None, new=margins(enrollees))
    assert raked.cost.value == pytest.approx(expected_cost(world), rel=0.07)


def test_survey_weights_are_used(world):
    """Markets and members given by fewer people with weights."""
    rng = np.random.default_rng(4)

    def thin(table):
        keep = rng.random(len(table)) < 0.5 + 0.4 * (table["sex"] == "male").to_numpy()
        weight = 1 / (0.5 + 0.4 * (table["sex"] == "male").to_numpy())
        return table.drop("weight").with_columns(weight=weight).filter(keep)

    members, existing, new = (thin(world[name]) for name in ("members", "existing", "new"))
    risk = assess(
        world,
        members=members,
        weight="weight",
        existing=existing[QI],
        weight_existing=existing["weight"],
        new=new[[*QI, "weight"]],
        weight_new="weight",
    )
    assert risk.cost.value == pytest.approx(expected_cost(world), rel=0.08)
    assert risk.existing_cost == pytest.approx(np.average(members["cost"], weights=members["weight"]))


@pytest.mark.slow
def test_a_record_twice_is_a_record_of_twice_the_weight(world):
    members, times = world["members"][:2000], np.arange(2000) % 3 + 1
    weighted = assess(world, members=members.drop("weight").with_columns(weight=times), weight="weight")
    repeated = assess(world, members=members[np.repeat(np.arange(2000), times)])
    assert repeated.cost.value == pytest.approx(weighted.cost.value)
    shuffled = assess(world, members=members.sample(fraction=1.0, shuffle=True, seed=1))
    assert shuffled.cost.value == pytest.approx(assess(world, members=members).cost.value)


def test_a_release_is_assessed_as_it_is_and_beside_the_raw_data(world):
    release = shoal.anonymize(
        world["members"],
        quasi_identifiers=QI,
        sensitive=["cost"],
        others="drop",
        k=20,
        n_releases=0,
        random_state=0,
    )
    risk = assess(world, members=release, cost=None, raw=world["members"], segments=["age_group"])
    raw = assess(world, segments=["age_group"])
    assert risk.raw.cost == raw.cost
    assert risk.k == 20
    assert risk.cost_of_privacy == pytest.approx(risk.cost.value / raw.cost.value - 1)
    assert abs(risk.cost_of_privacy) < 0.05
    assert "cost of k = 20 " in str(risk)
    assert risk.to_polars()["raw_cost"].null_count() == 0


def test_weak_weights_are_warned_of(world):
    """Members who are all young stand for an old market by few of them."""
    rows = world["members"].filter((pl.col("age_group") == "18-24") | (pl.int_range(pl.len()) < 12))
    new = world["new"][["age_group"]].filter(pl.col("age_group") >= "65-74")
    with pytest.warns(ShiftWarning, match="records' worth of information"):
        risk = MarketRiskAssessment(n_resamples=20).assess(rows, cost="cost", existing=rows[["age_group"]], new=new)
    assert risk.diagnostics.effective_sample_size < 12
    assert "weak: " in str(risk)


def test_own_models_are_taken(world):
    members = world["members"][:2000]
    numbers = members.with_columns(old=pl.col("age_group").to_physical().cast(pl.Float64))
    risk = assess(world, members=numbers, model=LinearRegression(), features=["old"])
    assert risk.cost.value == pytest.approx(
        assess(world, members=members).cost.value, rel=1e-9
    )  # both are weighted means
    own = assess(world, members=members, model=make_cost_model("additive", "numeric"))
    assert own.cost.value == pytest.approx(risk.cost.value, rel=1e-9)


def test_progress_is_told(world):
    seen = []
    MarketRiskAssessment(n_resamples=20, progress=lambda stage, share: seen.append((stage, share))).assess(
        world["members"][:500], cost="cost", existing=world["existing"][["sex"]], new=world["new"][["sex"]]
    )
    assert seen[0] == ("resampling", 0.0)
    assert seen[-1] == ("resampling", 1.0)


@pytest.mark.slow
def test_intervals_are_repeatable_and_honest(world):
    one, again = assess(world, n_resamples=60), assess(world, n_resamples=60)
    assert one.cost == again.cost
    few = MarketRiskAssessment(n_resamples=60).assess(
        world["members"][:1500], cost="cost", existing=world["existing"][QI], new=world["new"][QI]
    )
    assert np.diff(few.cost.interval)[0] > 2 * np.diff(one.cost.interval)[0]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cost": "price"}, "cost='price' is not a column"),
        ({"cost": "education"}, "cost='education' must be numbers"),
        ({"cost": "sex"}, "new has the members' column of costs"),
        ({"cost": None}, "cost must name"),
        ({"segments": ["agegroup"]}, "did you mean 'age_group'"),
        ({"segments": ["weight"]}, "more than 32 distinct"),
        ({"features": ["colour"]}, "features names 'colour'"),
        ({"columns": ["colour"]}, "columns has 'colour'"),
        ({"weight": "w"}, "weight names 'w'"),
        ({"weight_new": "w"}, "weight_new names 'w'"),
        ({"existing": pl.DataFrame({"sex": ["male"]})}, "which existing has not"),
        ({"new": {"age_group": {"18-24": 1}}}, "'age_group' says nothing"),
        ({"new": {"sex": {"male": 1, "female": 1}}, "weight_new": "w"}, "weight_new has no use"),
        ({"model": KNeighborsRegressor()}, "sample weights"),
        ({"model": "addditive"}, "did you mean 'additive'"),
        ({"cost_of_living": 0}, "cost_of_living=0"),
        ({"enrollees": -1}, "enrollees=-1"),
        ({"enrolment": lambda table: [1.0]}, "enrolment must return"),
        ({"enrolment": lambda table: table["sex"]}, "enrolment must return numbers"),
        ({"model": LinearRegression()}, "LinearRegression could not be fitted"),
        ({"features": []}, "features must be a list"),
        ({"columns": "sex"}, "columns must be a list"),
        ({"new": None}, "new must be a table"),
        ({"ratio": RakedRatio()}, "ratio must be an EmpiricalRatio"),
        ({"enrolment": lambda table: np.zeros(len(table))}, "No member is like anybody"),
    ],
)
def test_wrong_input_is_refused(world, options, text):
    with pytest.raises(InputError, match=text):
        assess(world, **options)


def test_missing_costs_are_refused(world):
    members = world["members"].with_columns(
        pl.when(pl.col("cost") > 9000).then(None).otherwise(pl.col("cost")).alias("cost")
    )
    with pytest.raises(InputError, match="none missing"):
        assess(world, members=members)
    with pytest.raises(InputError, match="n_resamples"):
        MarketRiskAssessment(n_resamples=2).assess(world["members"], cost="cost", new=world["new"][QI])


def test_margins_of_the_existing_market_cannot_be_empty_where_members_are(world):
    empty = margins(world["existing"]) | {"age_group": dict(zip(AGES, [0, 1, 1, 1, 1, 1, 1, 1], strict=True))}
    empty.pop(("sex", "income"))
    with pytest.raises(InputError, match="infinite weight"):
        assess(world, existing=empty, new=world["new"][["age_group"]], ratio=EmpiricalRatio())


# ---------------------------------------------------------------- what once went wrong, silently


def test_a_combination_that_no_member_has_is_told_of():
    """No member is an old man, the existing market has many, and the new one more."""
    members = pl.DataFrame({"age": ["y"] * 600 + ["o"] * 300, "sex": ["m"] * 300 + ["f"] * 600, "cost": [100.0] * 900})
    existing = pl.DataFrame({"age": ["y", "y", "o", "o"] * 500, "sex": ["m", "f", "m", "f"] * 500})
    new = pl.DataFrame({"age": ["o"] * 1200 + ["y", "y", "o"] * 300, "sex": ["m"] * 1200 + ["m", "f", "f"] * 300})
    with pytest.warns(ShiftWarning, match="57% of the target is unlike"):
        MarketRiskAssessment(n_resamples=20).assess(members, cost="cost", existing=existing, new=new)


def test_columns_that_only_one_market_tells_of(towns):
    sides = {"new": towns["new"][["age", "sex"]], "existing": {"sex": {"f": 51, "m": 49}}}
    with pytest.raises(InputError, match="existing has no margin of 'age'"):
        MarketRiskAssessment(n_resamples=20).assess(towns["existing"], cost="cost", **sides)
    by_sex = MarketRiskAssessment(n_resamples=20).assess(towns["existing"], cost="cost", **sides, columns=["sex"])
    assert len(np.unique(by_sex.weights.round(9))) == 2
    margins_of_two = {"age": {"young": 0.4, "middle": 0.3, "old": 0.3}, "sex": {"f": 0.9, "m": 0.1}}
    reduced = MarketRiskAssessment(n_resamples=20).assess(
        towns["existing"], cost="cost", new=margins_of_two, columns=["age"]
    )
    women = (towns["existing"]["sex"] == "f").to_numpy()
    assert np.average(women, weights=reduced.weights) == pytest.approx(women.mean(), abs=0.02)


@pytest.fixture
def towns():
    """Young, middle and old people at 100, 200 and 1000; a market of them, and an older one."""
    rng = np.random.default_rng(0)

    def draw_town(shares, n=3000):
        age = rng.choice(["young", "middle", "old"], n, p=shares)
        return pl.DataFrame({"age": age, "sex": rng.choice(["f", "m"], n)}).with_columns(
            cost=pl.col("age").replace_strict({"young": 100.0, "middle": 200.0, "old": 1000.0})
        )

    return {
        "members": draw_town([0.6, 0.4, 0.0]),
        "existing": draw_town([0.4, 0.3, 0.3]),
        "new": draw_town([0.2, 0.2, 0.6]),
    }


@pytest.mark.parametrize("new", ["table", "margins"])
@pytest.mark.parametrize("existing", ["table", "margins"])
def test_people_whom_no_member_is_like_are_told_of(towns, new, existing):
    share = {name: {a: (towns[name]["age"] == a).mean() for a in ("young", "middle", "old")} for name in towns}
    sides = {
        name: towns[name][["age"]] if form == "table" else {"age": share[name]}
        for name, form in (("new", new), ("existing", existing))
    }
    if new == existing == "margins":  # there is nobody but the members to be raked
        with pytest.raises(InputError, match="'age' has people where X_source has nobody .old"):
            MarketRiskAssessment(n_resamples=20).assess(towns["members"], cost="cost", **sides)
        return
    with pytest.warns(ShiftWarning, match="of the target is unlike anything in the source"):
        risk = MarketRiskAssessment(n_resamples=20).assess(towns["members"], cost="cost", **sides)
    assert risk.diagnostics.target_outside == pytest.approx(share["new"]["old"])


def test_numbers_and_texts_are_not_taken_for_each_other(towns):
    coded = towns["members"].with_columns(age=pl.col("age").replace_strict({"young": 1, "middle": 2, "old": 3}))
    with pytest.raises(InputError, match="'age' holds numbers"):
        MarketRiskAssessment(n_resamples=20).assess(
            coded, cost="cost", existing=towns["existing"][["age"]], new=towns["new"][["age"]]
        )
    with pytest.raises(InputError, match="'age' says nothing"):
        MarketRiskAssessment(n_resamples=20).assess(
            coded, cost="cost", existing=towns["existing"][["age"]], new={"age": {"young": 1, "middle": 1, "old": 1}}
        )


def test_a_combination_that_the_new_market_has_not_has_no_weight(towns):
    """Margins of the existing market beside a table of the new one, in which no man is old."""
    new = towns["new"].filter((pl.col("age") != "old") | (pl.col("sex") == "f"))
    margins_of_both = {"age": {"young": 0.4, "middle": 0.3, "old": 0.3}, "sex": {"f": 0.5, "m": 0.5}}
    risk = MarketRiskAssessment(n_resamples=20).assess(
        towns["existing"], cost="cost", existing=margins_of_both, new=new[["age", "sex"]]
    )
    nowhere = ((towns["existing"]["age"] == "old") & (towns["existing"]["sex"] == "m")).to_numpy()
    assert (risk.weights[nowhere] == 0).all()
    assert (risk.weights[~nowhere] > 0).all()


def test_margins_of_more_columns_than_the_new_market_has(towns):
    existing = {"age": {"young": 0.4, "middle": 0.3, "old": 0.3}, "sex": {"f": 0.5, "m": 0.5}}
    risk = MarketRiskAssessment(n_resamples=20).assess(
        towns["existing"], cost="cost", existing=existing, new={"age": {"young": 0.2, "middle": 0.2, "old": 0.6}}
    )
    assert risk.cost.value == pytest.approx(0.2 * 100 + 0.2 * 200 + 0.6 * 1000, rel=0.01)


def test_releases_are_markets_too(towns):
    roles = {"quasi_identifiers": ["age", "sex"], "sensitive": ["cost"], "k": 5, "n_releases": 0}
    roles |= {"random_state": 0, "allow_leaks": ["cost"]}
    release = shoal.anonymize(towns["existing"], **roles)
    other = shoal.anonymize(towns["new"], **roles)
    risk = MarketRiskAssessment(n_resamples=20).assess(release, existing=release, new=other)
    assert risk.cost.value == pytest.approx(660, rel=0.1)
    rows = towns["existing"].with_columns(person=np.arange(3000) // 3)
    same = rows.group_by("person").first().join(rows[["person"]], on="person")
    several = shoal.anonymize(same, unit="person", **roles)
    with pytest.raises(InputError, match="several rows per person"):
        MarketRiskAssessment().assess(several, new=other)


def test_a_cap_holds_for_margins_too(towns):
    margins_of_new = {"age": {"young": 0.1, "middle": 0.1, "old": 0.8}}
    capped = MarketRiskAssessment(ratio=EmpiricalRatio(max_weight=1.5), n_resamples=20).assess(
        towns["existing"], cost="cost", new=margins_of_new
    )
    assert capped.weights.max() == pytest.approx(1.5)
    assert capped.diagnostics.clipped_mass > 0.2


def test_costs_of_nothing(towns):
    free = towns["existing"].with_columns(cost=0.0)
    risk = MarketRiskAssessment(n_resamples=20).assess(free, cost="cost", new=towns["new"][["age"]], raw=free)
    assert risk.cost.value == 0
    assert np.isnan(risk.cost_of_privacy)
    assert "raw data say 0" in str(risk)
