"""The margins of California's rating areas: consistent, and what the Census tables add up to."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from shoal.datasets import RATING_AREAS, _california, enrollees_by_age, rating_area
from shoal.datasets.cohort import AGE_GROUPS, EDUCATION
from shoal.datasets.meps import AGE_GROUPS_WITH_CHILDREN, EDUCATION_IN_SIX
from shoal.errors import InputError

TOOL = Path(__file__).parents[2] / "tools" / "make_california.py"


def test_the_areas_of_the_paper():
    assert (*(str(i) for i in range(1, 15)), "15-16", "17", "18", "19") == RATING_AREAS


@pytest.mark.parametrize("area", RATING_AREAS)
@pytest.mark.parametrize(("groups", "schools"), [(AGE_GROUPS, EDUCATION), (AGE_GROUPS_WITH_CHILDREN, EDUCATION_IN_SIX)])
def test_margins_agree_with_one_another(area, groups, schools):
    margins = rating_area(area, groups, schools)
    ages, school, poverty = margins["age_group", "sex"], margins["schooling", "sex"], margins["poverty"]
    assert set(ages) == {(group, sex) for group in groups for sex in ("male", "female")}
    assert set(school) == {(level, sex) for level in (*schools, "under 25") for sex in ("male", "female")}
    for sex in ("male", "female"):
        own = sum(count for (_, s), count in ages.items() if s == sex)
        assert sum(count for (_, s), count in school.items() if s == sex) == pytest.approx(own)
    assert sum(poverty.values()) == pytest.approx(100, abs=0.011)
    assert min(*ages.values(), *school.values(), *poverty.values()) > 0


def test_six_levels_and_children_pool_to_five_and_adults():
    one, two = (
        rating_area("18", groups, schools)
        for groups, schools in ((AGE_GROUPS, EDUCATION), (AGE_GROUPS_WITH_CHILDREN, EDUCATION_IN_SIX))
    )
    assert (
        one["age_group", "sex"]["75-84", "male"] + one["age_group", "sex"]["85+", "male"]
        == (two["age_group", "sex"]["75+", "male"])
    )
    assert one["schooling", "sex"]["no high school", "female"] == pytest.approx(
        two["schooling", "sex"]["below grade 9", "female"] + two["schooling", "sex"]["no diploma", "female"]
    )


def test_few_enrollees_are_under_18_or_over_65():
    found = enrollees_by_age()
    total = sum(people for _, _, people in found)
    assert [first for first, _, _ in found] == [0, 18, 26, 35, 45, 55, 65]
    assert found[0][2] / total < 0.06
    assert found[-1][2] / total < 0.07


def test_the_figures_are_what_the_tables_add_up_to(california_folder, capsys):
    spec = importlib.util.spec_from_file_location("make_california", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.main(str(california_folder))
    made: dict[str, object] = {}
    exec(capsys.readouterr().out, made)
    assert made["AREAS"] == _california.AREAS
    assert made["ENROLLEES"] == _california.ENROLLEES


def test_what_is_not_known_is_refused():
    with pytest.raises(InputError, match="name='15' is not a rating area"):
        rating_area("15", AGE_GROUPS, EDUCATION)
    with pytest.raises(InputError, match="no level 'phd'"):
        rating_area("1", AGE_GROUPS, ["phd"])
