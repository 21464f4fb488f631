"""California's rating areas as margins of demographics, and who enrolled in the first year of its marketplace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.datasets import _california as figures
from shoal.errors import InputError, suggest

RATING_AREAS = tuple(figures.AREAS)
SEXES = ("male", "female")
YOUNG = "under 25"  # whose schooling the tables do not tell

Margins = dict[str | tuple[str, ...], dict[Any, float]]


def rating_area(name: str, age_groups: Sequence[str], education: Sequence[str]) -> Margins:
    """Return the margins of a rating area of California, for the levels that a survey has.

    Parameters
    ----------
    name : {"1", ..., "14", "15-16", "17", "18", "19"}
        Los Angeles County is both areas 15 and 16.
    age_groups : list of str
        As `load_cohort` or `read_meps` give them: of adults, or with children.
    education : list of str
        Five or six levels.

    Returns
    -------
    dict
        Counts of ("age_group", "sex"); of ("schooling", "sex"), where schooling is the education of people of 25 and
        over, else "under 25"; and per cent of "poverty": poor (below the poverty line), near poor (below 125 % of it),
        low (below 200 %), above. Sources: Census Bureau, see the module of the figures. The poverty shares are of all
        ages, and the tables are of different years.

    Examples
    --------
    >>> from shoal.datasets.cohort import AGE_GROUPS, EDUCATION
    >>> margins = rating_area("18", AGE_GROUPS, EDUCATION)
    >>> sorted(margins["poverty"].items())
    [('above', 74.39), ('low', 9.61), ('near poor', 3.9), ('poor', 12.1)]
    """
    if name not in figures.AREAS:
        raise InputError(f"name={name!r} is not a rating area{suggest(name, RATING_AREAS)}")
    ages, schools, below = figures.AREAS[name]
    bands = _pool(figures.AGES, age_groups, {"75+": ("75-84", "85+")})
    levels = _pool(figures.EDUCATION, education, {"no high school": ("below grade 9", "no diploma")})
    by_age: dict[Any, float] = {}
    by_school: dict[Any, float] = {}
    for s, sex in enumerate(SEXES):
        for group, own in bands.items():
            by_age[group, sex] = float(sum(ages[s][i] for i in own))
        young = sum(by_age[group, sex] for group in ("under 18", "18-24") if group in bands)
        rest = sum(by_age[group, sex] for group in bands) - young
        counts = {level: float(sum(schools[s][i] for i in own)) for level, own in levels.items()}
        by_school[YOUNG, sex] = young
        by_school |= {(level, sex): rest * count / sum(counts.values()) for level, count in counts.items()}
    poor, near_poor, low = below
    shares = {"poor": poor, "near poor": near_poor - poor, "low": low - near_poor, "above": 100 - low}
    poverty = {level: round(share, 2) for level, share in shares.items()}
    return {("age_group", "sex"): by_age, ("schooling", "sex"): by_school, "poverty": poverty}


def enrollees_by_age() -> list[tuple[int, int, int]]:
    """Return first age, last age and number of the enrollees of Covered California at the end of its first year."""
    return list(figures.ENROLLEES)


def _pool(
    given: Sequence[str], wanted: Sequence[str], together: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, ...]]:
    """Return for every level that is wanted the places of those that make it up."""
    found = {}
    for level in wanted:
        parts = together.get(level, (level,))
        if not all(part in given for part in parts):
            raise InputError(f"The figures have no level {level!r}{suggest(level, list(given))}")
        found[level] = tuple(given.index(part) for part in parts)
    return found
