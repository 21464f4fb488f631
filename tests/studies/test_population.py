"""The people of the study: halves, members, enrolment, and rating areas that have the margins of the Census."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from shoal.datasets import RATING_AREAS, load_cohort, rating_area
from shoal.errors import InputError
from shoal.studies.population import make_population, split_population


def test_records_become_cells(people):
    table = load_cohort(1600)
    assert people.cells.shape == (len(np.unique(people.cells, axis=0)), 4)
    codes = people.cells[people.cell]
    assert (codes[:, 0] == (table["sex"] == "female").to_numpy()).all()
    assert (codes[:, 1] == table["age_group"].to_physical().to_numpy()).all()
    assert people.levels[3] == ["poor", "near poor", "low", "middle", "high"]
    back = people.table_of(people.cell, people.cost)
    assert back["education"].to_list() == table["education"].to_physical().to_list()
    assert back["cost"].to_list() == table["cost"].to_list()
    assert people.sum_by_cell(people.cell).sum() == 1600
    assert people.sum_by_cell(people.cell, people.weight).sum() == pytest.approx(people.weight.sum())


def test_every_halving_is_used_both_ways_round(people):
    one, two, other = (split_population(people, i, 0) for i in (0, 1, 2))
    half = np.bincount(two.test_cell, two.test_weight, minlength=len(people.cells))
    assert one.existing == pytest.approx(half / half.sum())
    half = np.bincount(one.test_cell, one.test_weight, minlength=len(people.cells))
    assert two.existing == pytest.approx(half / half.sum())
    assert len(one.test_cell) + len(two.test_cell) == len(people.cell)
    assert not np.allclose(other.existing, one.existing)
    again = split_population(people, 0, 0)
    assert (again.member_cell == one.member_cell).all()
    assert not np.array_equal(split_population(people, 0, 1).member_cell, one.member_cell)


def test_members_are_of_the_first_half_and_of_the_ages_that_enrol(survey):
    ages = np.zeros(8)
    expected = np.zeros(8)
    for i in range(6):
        split = split_population(survey, i, 0)
        assert len(split.member_cell) == survey.n_members == 7500
        assert (split.existing[split.member_cell] > 0).all()
        ages += np.bincount(survey.cells[split.member_cell, 1].astype(int), minlength=8) / 7500 / 6
        share = split.existing * survey.enrols
        expected += np.bincount(survey.cells[:, 1].astype(int), share / share.sum()) / 6
    assert ages == pytest.approx(expected, abs=0.012)
    assert ages[5:].sum() < 0.08  # people of 65 and over are 17 % of the survey
    assert ages[4] > 0.25  # 55 to 64


def test_areas_have_the_margins_of_the_census(survey):
    mass = survey.sum_by_cell(survey.cell, survey.weight)
    assert tuple(survey.areas) == RATING_AREAS
    for name in ("4", "11", "15-16"):
        there = mass * survey.areas[name]
        margins = rating_area(name, survey.levels[1], survey.levels[2])
        ages = margins["age_group", "sex"]
        for (group, sex), count in ages.items():
            here = (survey.cells[:, 1] == survey.levels[1].index(group)) & (
                survey.cells[:, 0] == survey.levels[0].index(sex)
            )
            assert there[here].sum() / there.sum() == pytest.approx(count / sum(ages.values()), abs=1e-7)
        poor = survey.cells[:, 3] == 0
        assert there[poor].sum() / there.sum() == pytest.approx(margins["poverty"]["poor"] / 100, abs=1e-7)
        assert mass @ survey.areas[name] / mass.sum() == pytest.approx(1)


def test_a_fingerprint_notices_every_change(people):
    assert people.digest() == make_population(load_cohort(1600), "a small cohort").digest()
    assert people.digest() != make_population(load_cohort(1600), "another").digest()
    cost = people.cost.copy()
    cost[3] += 1
    assert dataclasses.replace(people, cost=cost).digest() != people.digest()


def test_children(tmp_path):
    """A survey with children has eight age groups too, and the areas' figures are pooled for them."""
    from shoal.datasets.meps import AGE_GROUPS_WITH_CHILDREN, EDUCATION_IN_SIX

    rng, n = np.random.default_rng(0), 4000
    age = rng.integers(0, 90, n)
    group = np.digitize(age, [18, 25, 35, 45, 55, 65, 75])
    school = np.where(age < 18, np.minimum(age // 6, 1), rng.integers(0, 6, n))
    income = ("poor", "near poor", "low", "middle", "high")
    table = pl.DataFrame(
        {
            "sex": rng.choice(["male", "female"], n),
            "age": age,
            "age_group": pl.Series(np.array(AGE_GROUPS_WITH_CHILDREN)[group], dtype=pl.Enum(AGE_GROUPS_WITH_CHILDREN)),
            "education": pl.Series(np.array(EDUCATION_IN_SIX)[school], dtype=pl.Enum(EDUCATION_IN_SIX)),
            "income": pl.Series(rng.choice(income, n), dtype=pl.Enum(income)),
            "weight": rng.uniform(1, 2, n),
            "cost": rng.exponential(1000, n),
        }
    )
    people = make_population(table, "with children")
    mass = people.sum_by_cell(people.cell, people.weight)
    ages = rating_area("14", people.levels[1], people.levels[2])["age_group", "sex"]
    young = people.cells[:, 1] == 0
    share = sum(count for (group, _), count in ages.items() if group == "under 18") / sum(ages.values())
    assert (mass * people.areas["14"])[young].sum() / (mass * people.areas["14"]).sum() == pytest.approx(share)
    members = np.concatenate([split_population(people, i, 0).member_cell for i in range(4)])
    assert (people.cells[members, 1] == 0).mean() < 0.08  # few children enrol


def test_too_few_people():
    with pytest.raises(InputError, match="at least 400 people, but the table has 300"):
        make_population(load_cohort(300), "few")
