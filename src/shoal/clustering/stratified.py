"""Clusters with equally many members from each stratum of a sensitive value: t-closeness first (Soria-Comas et al.)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.clustering._stratified import descend
from shoal.clustering.distortion import find_centres
from shoal.clustering.neighbours import find_neighbours

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_LEAF = 64  # members of a stratum, up to which clusters are built by looking at all of them
_NEIGHBOURS, _SWEEPS = 12, 20


def stratify(points: Floats, values: Floats, size: int, strata: int | None = None) -> Index:
    """Return clusters of `size` or a few more records, near one another, equally many from each stratum of the values.

    The sorted values are cut into strata of equal count, `size` of them unless told otherwise (then a divisor of it).
    With one member from each, distinct values and n a multiple of `size`, the ordered earth mover's distance of every
    cluster to the whole is at most (n - size) / (2 (n - 1) size).

    Strata are split together along the widest coordinate until few members are left in each; there every cluster takes
    the record farthest from the middle and from each stratum the nearest ones. Then members of one stratum are
    exchanged between clusters as long as that brings records closer to their centres.

    Examples
    --------
    >>> stratify(np.array([[0.0], [0.1], [9.0], [9.1]]), np.array([1.0, 5.0, 2.0, 6.0]), 2).tolist()
    [0, 0, 1, 1]
    """
    n, strata = len(points), strata or size
    order = np.lexsort((*points.T[::-1], values))
    stratum = np.empty(n, dtype=np.int64)
    stratum[order] = np.arange(n) * strata // n
    members = np.split(order, np.searchsorted(stratum[order], np.arange(1, strata)))
    labels = np.full(n, -1, dtype=np.int64)
    n_clusters = 0
    for leaf in _split(points, members, size // strata):
        n_clusters = _build(points, leaf, labels, n_clusters, size // strata)
    _attach(points, labels)
    _exchange(points, labels, stratum)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _split(points: Floats, members: list[Index], each: int) -> list[list[Index]]:
    """Halve all strata together along the widest coordinate until each has few members."""
    leaves, todo = [], [members]
    while todo:
        strata = todo.pop()
        if max(len(stratum) for stratum in strata) <= _LEAF * each:
            leaves.append(strata)
            continue
        widest = int(np.argmax(points[np.concatenate(strata)].var(axis=0)))
        half = len(strata[0]) // 2 // each * each
        low, high = [], []
        for stratum in strata:
            ranked = stratum[np.argsort(points[stratum, widest], kind="stable")]
            low.append(ranked[:half])
            high.append(ranked[half:])
        todo += [high, low]
    return leaves


def _build(points: Floats, strata: list[Index], labels: Index, first: int, each: int) -> int:
    """Label as many clusters, `each` from every stratum, as the smallest stratum allows; return the next label."""
    count, longest = min(len(stratum) for stratum in strata) // each, max(len(stratum) for stratum in strata)
    table = np.array([np.pad(stratum, (0, longest - len(stratum)), constant_values=-1) for stratum in strata])
    where = points[table]
    free = table >= 0
    rows = np.arange(len(strata))[:, None]
    for label in range(first, first + count):
        middle = where[free].mean(axis=0)
        distance = np.where(free, ((where - middle) ** 2).sum(axis=2), -np.inf)
        centre = where[np.unravel_index(np.argmax(distance), distance.shape)]
        for _ in range(2):  # nearest to the seed, then nearest to the middle of those
            distance = np.where(free, ((where - centre) ** 2).sum(axis=2), np.inf)
            chosen = np.argpartition(distance, each - 1, axis=1)[:, :each]
            centre = where[rows, chosen].mean(axis=(0, 1))
        labels[table[rows, chosen]] = label
        free[rows, chosen] = False
    return first + count


def _attach(points: Floats, labels: Index) -> None:
    """Give the few records that are left over to the cluster with the nearest centre."""
    left = np.flatnonzero(labels < 0)
    if not len(left):
        return
    from scipy.spatial import cKDTree

    given = labels >= 0
    centres = find_centres(points[given], np.ones(int(given.sum())), labels[given])
    labels[left] = cKDTree(centres).query(points[left])[1]


def _exchange(points: Floats, labels: Index, stratum: Index) -> None:
    """Exchange members of one stratum between clusters while that lowers the squared error."""
    n = len(points)
    graph = np.full((n, _NEIGHBOURS), -1, dtype=np.int32)
    for members in np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1]):
        m = min(_NEIGHBOURS, len(members) - 1)
        if m:
            near, _ = find_neighbours(points[members], m, np.random.default_rng(0))
            graph[members, :m] = members[near]
    centres, sizes = find_centres(points, np.ones(n), labels), np.bincount(labels)
    descend(points, labels, centres, sizes, graph, _SWEEPS)
