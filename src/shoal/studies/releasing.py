"""The ways to release the members, and what a release leaves to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, encode_table
from shoal.grouping import find_clusters, make_points
from shoal.hiding import hide
from shoal.people import People
from shoal.progress import Reporter
from shoal.settings import Settings
from shoal.studies.population import Population, Split

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

KS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
UNTOUCHED = "original"
ROUNDED = "centroid, rounded"
# name: method, recovery. The first three are the paper's; rounding a centroid to the nearest levels is what somebody
# would do who has to use it with a model on levels.
WAYS: dict[str, tuple[str, str | None]] = {
    "centroid": ("centroid", None),
    "resample": ("resample", None),
    "gaussian cdf": ("gaussian", "cdf"),
    ROUNDED: ("centroid", None),
    "permute": ("permute", None),
    "gaussian rank": ("gaussian", "rank"),
    "gaussian transport": ("gaussian", "transport"),
}
PAPER_WAYS = ("centroid", "resample", "gaussian cdf")
# As in the paper: its clustering, which counts the cost as much as each quasi-identifier (w = 1), alpha = 1/3.
PAPER = Settings(10, "permute", None, "greedy", 1.0, 1 / 3, "observed")


@dataclass(frozen=True)
class Sample:
    """People in groups that share a point: all that a model of cost needs of them.

    Attributes
    ----------
    points : array of shape (g, 4)
        Codes of the quasi-identifiers; means of them are no level.
    cell : array of shape (g,)
        The cell of the population with this point, -1 if there is none.
    mass, total : arrays of shape (g,)
        How many people there are, and the sum of their costs.
    """

    points: Floats
    cell: Index
    mass: Floats
    total: Floats

    @classmethod
    def of_cells(cls, people: Population, cell: Index, cost: Floats) -> Sample:
        """Return people who have the quasi-identifiers of cells."""
        every = np.arange(len(people.cells))
        return cls(people.cells, every, people.sum_by_cell(cell), people.sum_by_cell(cell, cost))

    @classmethod
    def of_points(cls, people: Population, points: Floats, cost: Floats) -> Sample:
        """Return people who have any numbers for quasi-identifiers, as means are."""
        distinct, group = np.unique(points, axis=0, return_inverse=True)
        group = group.ravel()
        place = {tuple(cell): i for i, cell in enumerate(people.cells)}
        cell = np.array([place.get(tuple(point), -1) for point in distinct.round(9)], dtype=np.int64)
        return cls(distinct, cell, np.bincount(group).astype(np.float64), np.bincount(group, cost).astype(np.float64))


def encode_members(people: Population, cell: Index) -> list[EncodedColumn]:
    """Return the members' quasi-identifiers, all of them numbers, as the paper takes them."""
    return encode_table(people.cells[cell])


def cluster_members(columns: list[EncodedColumn], cost: Floats, settings: Settings) -> Index:
    """Return the clusters of the members."""
    response = cost[:, None] if settings.response_weight > 0 else np.empty((len(cost), 0))
    points = make_points(columns, People.one_row_each(len(cost), None), response, settings)
    return find_clusters(points, settings, Reporter(progress=False))


def settings_of(way: str, base: Settings) -> Settings:
    """Return the settings of a way to release."""
    method, recovery = WAYS[way]
    return replace(base, method=method, recovery=recovery)


def draw_sample(
    people: Population,
    split: Split,
    columns: list[EncodedColumn],
    labels: Index,
    way: str,
    base: Settings,
    rng: np.random.Generator,
) -> Sample:
    """Release the members once, as far as a model of cost can see."""
    hidden = hide(columns, labels, settings_of(way, base), rng, Reporter(progress=False))
    if not hidden.averaged:
        return Sample.of_cells(people, split.member_cell[hidden.source], split.member_cost)
    means = np.column_stack([hidden.numbers[j] for j in range(len(columns))])
    return Sample.of_points(people, np.rint(means) if way == ROUNDED else means, split.member_cost)


def release_members(
    people: Population, split: Split, ks: Sequence[int], ways: Sequence[str], rng: np.random.Generator
) -> Mapping[tuple[str, int], Sample]:
    """Release the members in several ways at every k, all ways on the same clusters, which are the paper's.

    Each release draws from a generator of its own, so that leaving out a way changes no other.
    """
    columns = encode_members(people, split.member_cell)
    found = {}
    for k in ks:
        base = replace(PAPER, k=k)
        labels = cluster_members(columns, split.member_cost, base)
        own = dict(zip(WAYS, rng.spawn(len(WAYS)), strict=True))
        for way in ways:
            found[way, k] = draw_sample(people, split, columns, labels, way, base, own[way])
    return found
