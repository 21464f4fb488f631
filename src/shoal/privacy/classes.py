"""The distinct combinations of quasi-identifiers, how clusters share them, and which of them are near one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from shoal.compilation import run_in_threads
from shoal.encoding import EncodedColumn, joint_codes, positions

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_FLAT = 12  # columns, up to which a tree finds neighbours faster than comparing all pairs
_BLOCK, _NUMBERS = 1 << 12, 1 << 23  # queries, and coordinates of what they find, at once
_ROUNDING = 1e-11  # distances that differ by less, in units of the largest coordinate, are equal


@dataclass(frozen=True)
class Sparse:
    """Counts of (group, item) that are not 0: those of group g stand from starts[g] to starts[g + 1]."""

    starts: Index
    items: Index
    counts: Index

    @property
    def groups(self) -> Index:
        """The group of every count."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def find(self, groups: Index, items: Index, n_items: int) -> Index:
        """Return the counts of these pairs, 0 where there is none."""
        keys, wanted = self.groups * n_items + self.items, groups * n_items + items
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, self.counts[at], 0)


def count_pairs(groups: Index, items: Index, n_groups: int, n_items: int) -> Sparse:
    """Count how often each pair of group and item occurs."""
    keys, counts = np.unique(groups * n_items + items, return_counts=True)
    starts = np.searchsorted(keys // n_items, np.arange(n_groups + 1))
    return Sparse(starts, keys % n_items, counts)


@dataclass(frozen=True)
class Classes:
    """Records by their combination of quasi-identifiers (their class) and by their cluster.

    Attributes
    ----------
    of_record : array of shape (n,)
    first : array of shape (m,)
        A record of every class.
    labels : array of shape (n,)
    columns : list of EncodedColumn
    sample : array or None
        The classes whose risk is wanted, where it takes a search; None for all.
    """

    of_record: Index
    first: Index
    labels: Index
    columns: list[EncodedColumn]
    sample: Index | None = None

    @property
    def asked(self) -> Index:
        """The classes whose risk is wanted where it takes a search: all, or a sample."""
        return np.arange(len(self.first)) if self.sample is None else self.sample

    def sampled(self, count: int, rng: np.random.Generator) -> Classes:
        """Return the same with a random sample of so many classes asked for, if there are more."""
        if len(self.first) <= count:
            return self
        return replace(self, sample=np.sort(rng.choice(len(self.first), count, replace=False)))

    @classmethod
    def find(cls, columns: list[EncodedColumn], labels: Index) -> Classes:
        """Return the classes of encoded columns."""
        of_record = joint_codes([column.codes for column in columns])
        return cls(of_record, np.unique(of_record, return_index=True)[1], labels, columns)

    @cached_property
    def sizes(self) -> Index:
        """How many records each class has."""
        return np.bincount(self.of_record)

    @cached_property
    def cluster_sizes(self) -> Index:
        """How many records each cluster has."""
        return np.bincount(self.labels)

    @cached_property
    def points(self) -> Floats:
        """Where every class is, shape (m, p)."""
        return positions(self.columns)[self.first]

    @property
    def is_flat(self) -> bool:
        """Whether neighbours are found by a tree."""
        return self.points.shape[1] <= _FLAT

    @cached_property
    def shared(self) -> Sparse:
        """For every class, the clusters that hold it, and how many of its records each."""
        return count_pairs(self.of_record, self.labels, len(self.first), len(self.cluster_sizes))

    def count_received(self, source: Index) -> Sparse:
        """Return for every class, the clusters that receive it, if record i receives the class of record source[i]."""
        return count_pairs(self.of_record[source], self.labels, len(self.first), len(self.cluster_sizes))

    def by_record(self, values: Floats) -> Floats:
        """Return values of (class, cluster) pairs, aligned with `shared`, as values of records."""
        n_clusters = len(self.cluster_sizes)
        keys = self.shared.groups * n_clusters + self.shared.items
        return values[np.searchsorted(keys, self.of_record * n_clusters + self.labels)]

    def by_class(self, values: Floats) -> Floats:
        """Return the mean over the records of every class of values of (class, cluster) pairs."""
        return np.add.reduceat(values * self.shared.counts, self.shared.starts[:-1]) / self.sizes


def tolerance_of(points: Floats) -> float:
    """Return the difference up to which two distances count as equal."""
    return _ROUNDING * max(1.0, float(np.abs(points).max()))


def find_nearest(points: Floats, queries: Floats, count: int) -> Iterator[tuple[slice, Index, Floats]]:
    """Return block by block the nearest points of every query, nearest first, and their distances."""
    flat = points.shape[1] <= _FLAT
    tree: Any = cKDTree(points) if flat else NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points)
    block = int(np.clip(_NUMBERS // (count * points.shape[1]), 16, _BLOCK))
    for start in range(0, len(queries), block):
        part = queries[start : start + block]
        near = np.empty((len(part), count), dtype=np.int64)

        def query(a: int, b: int, part: Floats = part, near: Index = near) -> None:
            near[a:b] = tree.query(part[a:b], np.arange(1, count + 1))[1]

        if flat:
            run_in_threads(query, len(part), max(1, len(part) // 8))
        else:
            near = tree.kneighbors(part, return_distance=False)
        distance = np.sqrt(((points[near] - part[:, None]) ** 2).sum(axis=2))
        order = np.argsort(distance, axis=1, kind="stable")
        sorted_near, sorted_distance = (np.take_along_axis(a, order, axis=1) for a in (near, distance))
        yield slice(start, start + len(part)), sorted_near, sorted_distance


def find_matches(points: Floats, queries: Floats) -> tuple[Index, Index]:
    """Return all nearest points of every query: those of query i stand from starts[i] to starts[i + 1].

    points must be distinct: among equal ones there may be too many.
    """
    count = min(8, len(points))
    todo = np.arange(len(queries))
    found_query, found_point = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    tolerance = tolerance_of(points)
    while len(todo):
        unfinished = []
        for part, near, distance in find_nearest(points, queries[todo], count):
            tied = distance <= distance[:, :1] + tolerance
            cut = tied[:, -1] & (count < len(points))
            unfinished.append(todo[part][cut])
            row, column = np.nonzero(tied & ~cut[:, None])
            found_query.append(todo[part][row])
            found_point.append(near[row, column])
        todo = np.concatenate(unfinished)
        count = min(4 * count, len(points))
    query, point = np.concatenate(found_query), np.concatenate(found_point)
    order = np.argsort(query, kind="stable")
    return np.searchsorted(query[order], np.arange(len(queries) + 1)), point[order]
