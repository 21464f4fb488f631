"""Stronger models than k: what every cluster must hold of the sensitive values, measured and met.

l-diversity (Machanavajjhala et al.) wants l different values in every group, or an entropy of at least log l;
t-closeness (Li, Li and Venkatasubramanian) wants the earth mover's distance between the values of the group and those
of the whole table to be at most t. Here the groups are clusters: a record's quasi-identifiers tell no more than its
cluster, so what holds for clusters holds for whoever sees the release (docs/theory.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from shoal.clustering.distortion import find_centres, squared_distances
from shoal.clustering.stratified import stratify
from shoal.errors import CheckError, InputError

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Model = Literal["distinct", "entropy", "closeness"]
_NEIGHBOURS = 16
_ROUNDING = 1e-9
_ROWS_AT_ONCE = 1 << 21
_HELPED = 0.1  # share of violating clusters below which all merge, so that there are few rounds
NAMES: dict[Model, str] = {
    "distinct": "distinct l-diversity",
    "entropy": "entropy l-diversity",
    "closeness": "t-closeness",
}


@dataclass(frozen=True)
class Requirement:
    """What every cluster must hold of one sensitive column.

    codes: of every row, levels in their order, missing last. ordered: whether a distance between levels is their
    difference in rank, else it is 1. rows: those that are clustered, and person: whose they are.
    """

    column: str
    model: Model
    level: float
    codes: Index
    missing: NDArray[np.bool_]
    ordered: bool
    rows: Index
    person: Index

    def among(self, people: NDArray[np.bool_]) -> Requirement:
        """Return the same requirement of some people only, numbered anew; closeness stays to the whole table."""
        mine = people[self.person]
        number = np.cumsum(people) - 1
        return replace(self, rows=self.rows[mine], person=number[self.person[mine]])

    def measure(self, rows: Index, groups: Index, counts: Index | None = None) -> Floats:
        """Return the model's value for the groups 0, 1, ... of these rows, each counted once or `counts` times."""
        if self.model == "closeness":
            return measure_closeness(self.codes, rows, groups, ordered=self.ordered, counts=counts)
        known = ~self.missing[rows]  # a missing value is no diversity
        counts = None if counts is None else counts[known]
        found = measure_diversity(self.codes[rows[known]], groups[known], int(groups.max()) + 1, counts)
        return found[0] if self.model == "distinct" else found[1]

    def tally(self, labels: Index) -> tuple[Index, Index, Index]:
        """Return for every level in every cluster, clusters in order: a row that has it, the cluster, how many do."""
        cluster = labels[self.person]
        keys = cluster * (int(self.codes.max()) + 1) + self.codes[self.rows]
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        return self.rows[first], cluster[first], counts

    def violation(self, values: Floats) -> Floats:
        """Return by how much values miss the level, 0 where they meet it."""
        if self.model == "closeness":
            return np.where(values <= self.level + _ROUNDING, 0.0, values - self.level)
        return np.where(values >= self.level - _ROUNDING, 0.0, 1 - values / self.level)

    def worst(self, labels: Index) -> float:
        """Return the value of the worst cluster; labels: of every person."""
        values = self.measure(self.rows, labels[self.person])
        return float(values.max() if self.model == "closeness" else values.min())

    def check_reachable(self) -> None:
        """Refuse what even one cluster of everybody would not meet."""
        best = self.worst(np.zeros(int(self.person.max()) + 1, dtype=np.int64))
        if self.violation(np.array([best]))[0] > 0:
            shown = f"{best:.0f}" if self.model == "distinct" else f"{np.floor(best * 1e4) / 1e4:g}"
            raise InputError(
                f"{NAMES[self.model]} of {self.level:g} cannot be met by column {self.column!r}: the whole table "
                f"together reaches {shown}; ask for that or less."
            )


def measure_diversity(codes: Index, groups: Index, n_groups: int, counts: Index | None = None) -> tuple[Floats, Floats]:
    """Return for every group the number of different codes, and exp of their entropy (0 for an empty group).

    Examples
    --------
    >>> distinct, effective = measure_diversity(np.array([0, 0, 1, 2, 2]), np.array([0, 0, 0, 1, 1]), 2)
    >>> distinct.tolist(), effective.round(4).tolist()
    ([2.0, 1.0], [1.8899, 1.0])
    """
    n_codes = int(codes.max()) + 1 if len(codes) else 1
    keys, total = _count(groups * n_codes + codes, counts)
    group = keys // n_codes
    sizes = np.bincount(group, weights=total, minlength=n_groups)
    share = total / sizes[group]
    entropy = np.bincount(group, weights=-share * np.log(share), minlength=n_groups)
    return np.bincount(group, minlength=n_groups).astype(np.float64), np.where(sizes > 0, np.exp(entropy), 0.0)


def _count(keys: Index, counts: Index | None) -> tuple[Index, Floats]:
    """Return the different keys, and how often each occurs."""
    if counts is None:
        different, total = np.unique(keys, return_counts=True)
        return different, total.astype(np.float64)
    different, at = np.unique(keys, return_inverse=True)
    return different, np.bincount(at, weights=counts).astype(np.float64, copy=False)


def measure_closeness(
    codes: Index, rows: Index, groups: Index, *, ordered: bool, counts: Index | None = None
) -> Floats:
    """Return for the groups 0, 1, ... of these rows the earth mover's distance to the codes of all rows.

    Between levels the distance is 1, or with ordered=True their difference in rank over the largest one.

    Examples
    --------
    >>> codes, everyone = np.array([0, 1, 2, 3]), np.arange(4)
    >>> measure_closeness(codes, everyone, np.array([0, 0, 1, 1]), ordered=True).round(4).tolist()
    [0.3333, 0.3333]
    >>> measure_closeness(codes, everyone, np.array([0, 0, 1, 1]), ordered=False).tolist()
    [0.5, 0.5]
    """
    n_codes, n_groups = int(codes.max()) + 1, int(groups.max()) + 1
    overall = np.bincount(codes) / len(codes)
    keys, total = _count(groups * n_codes + codes[rows], counts)
    group, code = keys // n_codes, keys % n_codes
    share = total / np.bincount(group, weights=total, minlength=n_groups)[group]
    if not ordered:
        nearer = np.maximum(share - overall[code], 0.0)
        return np.bincount(group, weights=nearer, minlength=n_groups).astype(np.float64, copy=False)
    if n_codes == 1:
        return np.zeros(n_groups)
    # The distance is the area between two cumulative distributions; a group's is constant from one of its codes to
    # the next, and the overall one crosses that level at most once: two sums of it, taken from running totals.
    overall_cdf = np.cumsum(overall)
    totals = np.concatenate([[0.0], np.cumsum(overall_cdf)])
    opens = np.append(True, group[1:] != group[:-1])
    running = np.cumsum(share)
    level = running - (running - share)[opens][np.cumsum(opens) - 1]
    stop = np.where(np.append(opens[1:], True), n_codes - 1, np.append(code[1:], 0))
    cross = np.clip(np.searchsorted(overall_cdf, level), code, stop)
    area = level * (2 * cross - code - stop) + totals[code] + totals[stop] - 2 * totals[cross]
    area[opens] += totals[code[opens]]
    return np.maximum(np.bincount(group, weights=area, minlength=n_groups) / (n_codes - 1), 0.0)


def meet_requirements(
    points: Floats, labels: Index, k: int, requirements: Sequence[Requirement]
) -> tuple[Index, str, Floats]:
    """Return clusters that meet all requirements, how they were made, and information loss before and after.

    Violating clusters are merged with near ones. For every constrained column the same is tried on clusters that take
    equally many members from each stratum of that column, which are close to the whole from the start; the tightest
    wins.
    """
    for requirement in requirements:
        requirement.check_reachable()
    starts = [("merging", labels)]
    if any(_violations(labels, requirements) > 0):
        for requirement in requirements:
            strata = _count_strata(requirement, len(points))
            size = strata * -(-k // strata)
            if 2 * size <= len(points):
                how = f"{size // strata} from each of {strata} strata of {requirement.column!r}"
                starts.append((how, _spread(points, requirement, size, strata)))
    merged = [(how, _merge(points, start, requirements)) for how, start in starts]
    losses = [_information_loss(points, found) for _, found in merged]
    best = int(np.argmin(losses))
    how, found = merged[best]
    how = how if found is not labels else "as they were"
    return found, how, np.array([_information_loss(points, labels), losses[best]])


def _count_strata(requirement: Requirement, n: int) -> int:
    """Return from how many strata a cluster must take equally many members, if all values differed."""
    if requirement.model != "closeness":
        return int(np.ceil(requirement.level))
    return max(2, int(np.ceil(n / (2 * (n - 1) * requirement.level + 1))))


def _spread(points: Floats, requirement: Requirement, size: int, strata: int) -> Index:
    sums = np.bincount(requirement.person, weights=requirement.codes[requirement.rows])
    return stratify(points, sums / np.bincount(requirement.person), size, strata)


def _information_loss(points: Floats, labels: Index) -> float:
    """Return 100 SSE / SST."""
    one = np.ones(len(points))
    total = float(squared_distances(points, one, np.zeros(len(points), dtype=np.int64)).sum())
    return 100 * float(squared_distances(points, one, labels).sum()) / total if total else 0.0


def _violations(labels: Index, requirements: Sequence[Requirement]) -> Floats:
    """Return for every cluster by how much it misses the requirements together."""
    gap = np.zeros(int(labels.max()) + 1)
    for requirement in requirements:
        gap += requirement.violation(requirement.measure(requirement.rows, labels[requirement.person]))
    return gap


def _merge(points: Floats, labels: Index, requirements: Sequence[Requirement]) -> Index:
    """Merge violating clusters with near ones, round by round, until none is left."""
    while True:
        gap = _violations(labels, requirements)
        bad, n_clusters = np.flatnonzero(gap), len(gap)
        if not len(bad):
            return labels
        if n_clusters == 1:
            raise CheckError("The clusters cannot meet the models asked for; nothing is released.")
        first, second, cost = _propose(points, labels, bad)
        left = _violations_of_pairs(labels, first, second, requirements)
        helps = left < gap[first] - _ROUNDING
        if len(np.unique(first[helps])) >= _HELPED * len(bad):  # whoever gains from no neighbour yet waits for a round
            first, second, cost, left = first[helps], second[helps], cost[helps], left[helps]
        order = np.lexsort((cost, left, first))
        choice = order[np.append(True, first[order][1:] != first[order][:-1])]
        into = np.arange(n_clusters)
        free = np.ones(n_clusters, dtype=bool)
        for pair in choice[np.lexsort((cost[choice], left[choice]))]:
            a, b = first[pair], second[pair]
            if free[a] and free[b]:
                into[b], free[a], free[b] = a, False, False
        labels = np.unique(into[labels], return_inverse=True)[1].astype(np.int64)


def _propose(points: Floats, labels: Index, bad: Index) -> tuple[Index, Index, Floats]:
    """Return pairs of a violating and a near cluster, and the squared error that merging them adds."""
    centres, sizes = find_centres(points, np.ones(len(points)), labels), np.bincount(labels)
    count = min(_NEIGHBOURS + 1, len(sizes))
    near = cKDTree(centres).query(centres[bad], np.arange(1, count + 1))[1]
    first, second = np.repeat(bad, count), near.ravel()
    other = first != second
    first, second = first[other], second[other]
    gap = ((centres[first] - centres[second]) ** 2).sum(axis=1)
    return first, second, gap * sizes[first] * sizes[second] / (sizes[first] + sizes[second])


def _violations_of_pairs(labels: Index, first: Index, second: Index, requirements: Sequence[Requirement]) -> Floats:
    """Return by how much the union of each pair of clusters would miss the requirements."""
    gap = np.zeros(len(first))
    for requirement in requirements:
        rows, cluster, counts = requirement.tally(labels)  # of few levels few, however large clusters are
        sizes = np.bincount(cluster)
        starts = np.cumsum(sizes) - sizes
        rows_before = np.concatenate([[0], np.cumsum(sizes[first] + sizes[second])])
        borders = np.searchsorted(rows_before, np.arange(0, rows_before[-1], _ROWS_AT_ONCE), side="right") - 1
        for start, stop in pairwise(np.unique(np.append(borders, len(first)))):
            members = np.concatenate([first[start:stop], second[start:stop]])
            length = sizes[members]
            at = np.repeat(starts[members] - np.cumsum(length) + length, length) + np.arange(length.sum())
            pair = np.repeat(np.tile(np.arange(stop - start), 2), length)
            gap[start:stop] += requirement.violation(requirement.measure(rows[at], pair, counts[at]))
    return gap
