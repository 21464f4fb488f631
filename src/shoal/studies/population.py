"""The people of the study: a survey as cells, who of them enrols, and whom a rating area of California has instead.

Everything that the models and the weights may use of a person is a cell: a combination of sex, age group, education
and income. Who enrols, and how a rating area differs from the nation, are functions of the cell too, so that the
assumption of covariate shift holds by construction; what is left to be seen is what the methods make of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.datasets.california import RATING_AREAS, YOUNG, enrollees_by_age, rating_area
from shoal.errors import InputError
from shoal.shift.raking import RakedRatio

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

COLUMNS = ("sex", "age_group", "education", "income")
MOST_MEMBERS = 7_500  # half of "just over 15000 records", as in the paper
_FEWEST = 400
_YOUNG_GROUPS = ("under 18", "18-24")


@dataclass(frozen=True)
class Population:
    """Records of a survey: cell, cost, and how many people each stands for.

    Attributes
    ----------
    source : str
    synthetic : bool
        Whether nobody of them exists.
    levels : list of list of str
        Of the four columns, in order.
    cells : array of shape (C, 4)
        The combinations of codes that occur.
    cell : array of shape (n,)
    cost, weight : arrays of shape (n,)
    enrols : array of shape (C,)
        How likely somebody of that cell enrols, up to a factor.
    areas : dict of arrays of shape (C,)
        p(x | rating area) / p(x | nation).
    """

    source: str
    synthetic: bool
    levels: list[list[str]]
    cells: Floats
    cell: Index
    cost: Floats
    weight: Floats
    enrols: Floats
    areas: dict[str, Floats]

    @property
    def n_members(self) -> int:
        """How many members the insurer has in every split."""
        return min(MOST_MEMBERS, len(self.cell) // 2)

    def sum_by_cell(self, cell: Index, values: Floats | None = None) -> Floats:
        """Return the sum of values, or the number of people, in every cell, shape (C,)."""
        return np.bincount(cell, values, minlength=len(self.cells)).astype(np.float64)

    def digest(self) -> str:
        """Return a fingerprint of all that results depend on."""
        found = hashlib.sha256(self.source.encode())
        for array in (self.cells, self.cell, self.cost, self.weight, self.enrols, *self.areas.values()):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def table_of(self, cell: Index, cost: Floats) -> pl.DataFrame:
        """Return people as a table whose columns are codes: all of them have an order, as in the paper."""
        codes = self.cells[cell].astype(np.int64)
        return pl.DataFrame({name: codes[:, j] for j, name in enumerate(COLUMNS)}).with_columns(cost=cost)


@dataclass(frozen=True)
class Split:
    """One random halving of the survey.

    Attributes
    ----------
    existing, existing_cost : arrays of shape (C,)
        Shares of the cells in the existing market, which is the nation as the first half has it, and these times the
        mean cost of the cell.
    member, member_cell, member_cost : arrays of shape (n_members,)
        The insurer's members, drawn from the first half as they enrol: their records in the survey, cells and costs.
    test_cell, test_cost, test_weight : arrays of shape (m,)
        The second half, and how many people each of it stands for.
    """

    existing: Floats
    existing_cost: Floats
    member: Index
    member_cell: Index
    member_cost: Floats
    test_cell: Index
    test_cost: Floats
    test_weight: Floats


def make_population(table: pl.DataFrame, source: str, *, synthetic: bool = False) -> Population:
    """Read people from a table such as `load_cohort` or `read_meps` give."""
    if len(table) < _FEWEST:
        raise InputError(f"The study needs at least {_FEWEST} people, but the table has {len(table):,}.")
    levels = [["male", "female"], *(_levels_of(table[name]) for name in COLUMNS[1:])]
    codes = np.column_stack(
        [(table["sex"] == "female").to_numpy(), *(table[name].to_physical().to_numpy() for name in COLUMNS[1:])]
    ).astype(np.float64)
    cells, cell = np.unique(codes, axis=0, return_inverse=True)
    cell = cell.ravel().astype(np.int64)
    weight = table["weight"].to_numpy().astype(np.float64)
    mass = np.bincount(cell, weight).astype(np.float64)
    return Population(
        source=source,
        synthetic=synthetic,
        levels=levels,
        cells=cells,
        cell=cell,
        cost=table["cost"].to_numpy().astype(np.float64),
        weight=weight,
        enrols=_find_enrolment(table, weight)[cells[:, 1].astype(np.int64)],
        areas=_rake_areas(cells, mass, levels),
    )


def split_population(people: Population, split: int, seed: int, *, distinct: bool = False) -> Split:
    """Halve the records at random; draw the members from the first half, with odds of enrolling and survey weight.

    Every halving is used twice, with its halves exchanged: what one half happens to cost more than the other then
    cancels in the average of the two. Members are drawn with replacement; distinct=True draws a third of them without.
    """
    half = len(people.cell) // 2
    order = np.random.default_rng([seed, split // 2]).permutation(len(people.cell))
    train, test = (order[:half], order[half : 2 * half])[:: 1 if split % 2 == 0 else -1]
    rng = np.random.default_rng([seed, split, 1])
    odds = people.weight[train] * people.enrols[people.cell[train]]
    if distinct:
        members = train[_draw_distinct(odds, people.n_members // 3, rng)]
    else:
        members = rng.choice(train, people.n_members, p=odds / odds.sum())
    share = people.weight[train] / people.weight[train].sum()
    return Split(
        existing=people.sum_by_cell(people.cell[train], share),
        existing_cost=people.sum_by_cell(people.cell[train], share * people.cost[train]),
        member=members,
        member_cell=people.cell[members],
        member_cost=people.cost[members],
        test_cell=people.cell[test],
        test_cost=people.cost[test],
        test_weight=people.weight[test],
    )


def _draw_distinct(odds: Floats, size: int, rng: np.random.Generator) -> Index:
    """Return records drawn without replacement, with chances in proportion to the odds, but at most 1 (systematic)."""
    chance = np.minimum(1.0, odds * (size / odds.sum()))
    for _ in range(100):  # what is cut at 1 goes to the others
        chance = np.minimum(1.0, chance * (size / chance.sum()))
    order = rng.permutation(len(odds))
    ends = np.cumsum(chance[order])
    at = np.searchsorted(ends, (np.arange(size) + rng.random()) * (ends[-1] / size), side="right")
    return order[np.minimum(at, len(odds) - 1)]


def _levels_of(column: pl.Series) -> list[str]:
    assert isinstance(column.dtype, pl.Enum)
    return [str(level) for level in column.dtype.categories]


def _find_enrolment(table: pl.DataFrame, weight: Floats) -> Floats:
    """Return for every age group enrollees per person, from the ages of enrollees and of the survey's people."""
    age, group = table["age"].to_numpy(), table["age_group"].to_physical().to_numpy()
    rate = np.zeros(len(age))
    for first, last, enrollees in enrollees_by_age():
        here = (age >= first) & (age <= last)
        if here.any():
            rate[here] = enrollees / weight[here].sum()
    n_groups = len(_levels_of(table["age_group"]))
    mass = np.bincount(group, weight, minlength=n_groups)
    return np.bincount(group, weight * rate, minlength=n_groups) / np.where(mass > 0, mass, 1.0)


def _rake_areas(cells: Floats, mass: Floats, levels: list[list[str]]) -> dict[str, Floats]:
    """Return for every rating area how much more, or less, frequent each cell is there than in the nation."""
    names: list[Any] = [np.array(own)[cells[:, j].astype(np.int64)] for j, own in enumerate(levels)]
    sex, age_group, education, income = names
    people = pl.DataFrame(
        {
            "sex": sex,
            "age_group": age_group,
            "schooling": np.where(np.isin(age_group, _YOUNG_GROUPS), YOUNG, education),
            "poverty": np.where(np.isin(income, ["middle", "high"]), "above", income),
        }
    )
    return {
        area: RakedRatio().fit(people, rating_area(area, levels[1], levels[2]), weight_source=mass).weights_
        for area in RATING_AREAS
    }
