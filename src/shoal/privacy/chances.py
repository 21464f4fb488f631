"""The chance that an attacker picks a record of the right cluster: by formula, by an integral, or over releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.clustering.distortion import find_centres
from shoal.encoding import EncodedColumn, positions
from shoal.hiding import Hidden
from shoal.privacy._shells import PLACES, STARTS, STOPS, WEIGHTS, integrate_shells
from shoal.privacy.classes import Classes, Sparse, count_pairs, find_matches, find_nearest, tolerance_of

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_GROUPS = 10  # of releases left out in turn, for a standard error
_DOUBT = 5.0  # draws without a hit that the optimal attacker adds to every value before choosing one
_PRIOR = 2.0  # releases in which, he believes beforehand, everybody received a row of the own cluster
_NEARBY, _NEAR = 8, 0.3  # clusters he looks at, and the distance, on standardised columns, that halves their weight


@dataclass(frozen=True)
class Estimate:
    """Risks of (class, cluster) pairs with their standard errors: of the pairs, of classes, and of the mean."""

    pairs: Floats
    of_pairs: Floats
    of_classes: Floats | None = None
    of_mean: float = 0.0
    exact: bool = False

    @classmethod
    def exactly(cls, pairs: Floats) -> Estimate:
        """Return an estimate without error."""
        return cls(pairs, np.zeros(len(pairs)), exact=True)

    @classmethod
    def of_replicates(cls, classes: Classes, replicates: Sequence[Floats], spread: float) -> Estimate:
        """Return the mean over replicates; a variance is `spread` times their mean squared deviation."""
        pairs = np.mean(replicates, axis=0)
        of_pairs, of_classes, of_mean = np.zeros(len(pairs)), np.zeros(len(classes.first)), 0.0
        counted = np.where(np.isin(classes.shared.groups, classes.asked), classes.shared.counts, 0)
        for replicate in replicates:
            of_pairs += (replicate - pairs) ** 2
            of_classes += classes.by_class(replicate - pairs) ** 2
            of_mean += float((replicate - pairs) @ counted / counted.sum()) ** 2
        factor = spread / len(replicates)
        return cls(pairs, np.sqrt(factor * of_pairs), np.sqrt(factor * of_classes), float(np.sqrt(factor * of_mean)))


def risk_inside_clusters(classes: Classes, *, resampled: bool) -> dict[str, Estimate]:
    """Return the risks where a record receives the row of a member of its cluster."""
    shared, sizes = classes.shared, classes.cluster_sizes
    best = _best_share(shared.groups, shared.items, shared.counts, classes)[shared.items] / sizes[shared.items]
    if not resampled:
        nearest = shared.counts / classes.sizes[shared.groups] / sizes[shared.items]
        return {"nearest": Estimate.exactly(nearest), "optimal": Estimate.exactly(best)}
    nearest = _integrate(classes, shared, 1)
    return {"nearest": Estimate.exactly(nearest), "optimal": Estimate(np.maximum(best, nearest), np.zeros(len(best)))}


def _best_share(values: Index, clusters: Index, counts: NDArray[Any], classes: Classes) -> Floats:
    """Return for every cluster the largest share it has in the records that receive one value."""
    best = np.zeros(len(classes.cluster_sizes))
    np.maximum.at(best, clusters, counts / classes.sizes[values])
    return best


# ---------------------------------------------------------------- centroids


def risk_of_centroids(classes: Classes, hidden: Hidden) -> dict[str, Estimate]:
    """Return both risks exactly: everybody in a cluster releases the same point."""
    n, m = len(classes.labels), len(classes.first)
    first = np.unique(classes.labels, return_index=True)[1]
    centres = hidden_columns(classes.columns, hidden, first)
    both = [column.followed_by(centre) for column, centre in zip(classes.columns, centres, strict=True)]
    placed = positions(both, reference=n)[n:]
    points, of_cluster = np.unique(placed.round(12), axis=0, return_inverse=True)
    of_cluster = of_cluster.ravel()
    crowd = np.bincount(of_cluster, weights=classes.cluster_sizes)  # records released at every point
    matches = _find_all_matches(classes, points, positions(both, reference=n)[:n], crowd)
    total = np.bincount(matches.groups, weights=matches.counts, minlength=m)
    hit = matches.find(classes.shared.groups, of_cluster[classes.shared.items], len(points)) > 0
    return {
        "nearest": Estimate.exactly(hit / np.maximum(total, 1)[classes.shared.groups]),
        "optimal": Estimate.exactly(1 / crowd[of_cluster[classes.shared.items]]),
    }


def _find_all_matches(classes: Classes, points: Floats, placed: Floats, crowd: NDArray[Any]) -> Sparse:
    """Return for every class asked for all nearest points, and how many records are there."""
    starts, matched = find_matches(points, placed[classes.first[classes.asked]])
    group = np.repeat(classes.asked, np.diff(starts))
    order = np.lexsort((matched, group))
    group, matched = group[order], matched[order]
    starts = np.searchsorted(group, np.arange(len(classes.first) + 1))
    return Sparse(starts, matched, crowd[matched].astype(np.int64))


def hidden_columns(columns: list[EncodedColumn], hidden: Hidden, rows: Index) -> list[EncodedColumn]:
    """Return what the records of `rows` receive, encoded as the original columns are."""
    received = []
    for i, column in enumerate(columns):
        taken = column.take(hidden.members.get(i, hidden.source)[rows])
        fresh = hidden.numbers.get(i)
        if fresh is not None and taken.numbers is not None:
            numbers = np.where(np.isnan(fresh[rows]) | taken.missing, taken.numbers, fresh[rows])
            taken = EncodedColumn(column.name, column.kind, taken.codes, column.n_levels, taken.missing, numbers)
        received.append(taken)
    return received


# ---------------------------------------------------------------- independent draws


def _integrate(classes: Classes, released: Sparse, draws: int) -> Floats:
    """Return for every (class, cluster) pair the chance that the nearest match is a given record of the cluster.

    released: for every value, how many of a cluster's draws have it; a cluster of size n_l has draws * n_l of them.
    """
    risk = np.zeros(len(classes.shared.items))
    sizes, m = classes.cluster_sizes, len(classes.first)
    tolerance = tolerance_of(classes.points)
    todo, count = classes.asked, min(16, m)
    while len(todo):
        unfinished = []
        for part, near, distance in find_nearest(classes.points, classes.points[todo], count):
            done = integrate_shells(
                near,
                distance,
                tolerance,
                count == m,
                todo[part],
                (released.starts, released.items, released.counts),
                draws * sizes,
                sizes,
                (classes.shared.starts, classes.shared.items),
                (STARTS, STOPS, PLACES, WEIGHTS),
                risk,
            )
            unfinished.append(todo[part][~done])
        todo, count = np.concatenate(unfinished), min(4 * count, m)
    return risk


# ---------------------------------------------------------------- averages over releases


def average_releases(classes: Classes, drawn: Iterator[Hidden], *, independent: bool) -> dict[str, Estimate]:
    """Return risks from what every cluster received in repeated releases.

    The optimal attacker takes the nearest match if, from so few releases, he learns nothing better.
    """
    received = [classes.count_received(hidden.source) for hidden in drawn]
    nearest = _integrate_draws(classes, received) if independent else _match_in_releases(classes, received)
    learnt = find_best_attack(classes, received)
    counts = np.where(np.isin(classes.shared.groups, classes.asked), classes.shared.counts, 0)
    return {"nearest": nearest, "optimal": max(learnt, nearest, key=lambda found: float(found.pairs @ counts))}


def _match_in_releases(classes: Classes, received: list[Sparse]) -> Estimate:
    """Return the nearest-match risk where the released rows are the original ones: the nearest is an equal one."""
    shared, n_clusters = classes.shared, len(classes.cluster_sizes)
    scale = classes.sizes[shared.groups] * classes.cluster_sizes[shared.items]
    replicates = [counts.find(shared.groups, shared.items, n_clusters) / scale for counts in received]
    return Estimate.of_replicates(classes, replicates, 1 / (len(replicates) - 1))


def _integrate_draws(classes: Classes, received: list[Sparse]) -> Estimate:
    """Integrate over the estimated distributions; leaving groups of releases out gives bias and standard error."""
    groups = np.array_split(np.arange(len(received)), min(_GROUPS, len(received)))
    whole = _integrate(classes, _add(received, classes), len(received))
    g = len(groups)
    replicates = []
    for group in groups:
        rest = [counts for i, counts in enumerate(received) if i not in group]
        replicates.append(g * whole - (g - 1) * _integrate(classes, _add(rest, classes), len(rest)))
    return Estimate.of_replicates(classes, replicates, 1 / (g - 1))


def _add(received: list[Sparse], classes: Classes) -> Sparse:
    n_clusters, m = len(classes.cluster_sizes), len(classes.first)
    keys = np.concatenate([counts.groups * n_clusters + counts.items for counts in received])
    weights = np.concatenate([counts.counts for counts in received])
    return _tabulate(keys, weights, m, n_clusters)


def _tabulate(keys: Index, weights: Index, n_groups: int, n_items: int) -> Sparse:
    """Add up the weights of equal keys, group * n_items + item."""
    distinct, at = np.unique(keys, return_inverse=True)
    totals = np.bincount(at, weights=weights).astype(np.int64)
    return Sparse(np.searchsorted(distinct // n_items, np.arange(n_groups + 1)), distinct % n_items, totals)


def find_best_attack(classes: Classes, received: list[Sparse]) -> Estimate:
    """Return the optimal attacker's risk: the value is chosen on all releases but one, and tried on that one.

    However a release is made, a value is expected to be received as often as it occurs; of that the cluster's part is
    estimated. To choose well from few releases he also looks at what nearby clusters received, and holds a choice
    among rarely drawn values back. With fewer releases he chooses worse, so the figure leans downwards.
    """
    sizes, m = classes.cluster_sizes, len(classes.first)
    n_clusters, n_rest = len(sizes), len(received) - 1
    tables = [csr_array((r.counts, (r.items, r.groups)), shape=(n_clusters, m), dtype=np.float64) for r in received]
    around = _nearby_clusters(classes)
    doubt = _DOUBT / around.sum(axis=1)
    own = csr_array(
        (classes.shared.counts * _PRIOR, (classes.shared.items, classes.shared.groups)), shape=(n_clusters, m)
    )
    total = sum(tables, start=own)
    replicates = []
    for table in tables:
        score = (around @ (total - table)).tocsr()
        cluster = np.repeat(np.arange(n_clusters), np.diff(score.indptr))
        score.data /= n_rest * classes.sizes[score.indices] + doubt[cluster]
        order = np.lexsort((-score.data, cluster))
        chosen = score.indices[order[score.indptr[:-1]]]
        share = table[np.arange(n_clusters), chosen] / classes.sizes[chosen]
        replicates.append((share / sizes)[classes.shared.items])
    return Estimate.of_replicates(classes, replicates, 1 / n_rest)


def _nearby_clusters(classes: Classes) -> Any:
    """Return how much every cluster is believed to tell about each other one, shape (c, c), sparse."""
    points, n_clusters = classes.points[classes.of_record], len(classes.cluster_sizes)
    centres = find_centres(points, np.ones(len(points)), classes.labels)
    parts = list(find_nearest(centres, centres, min(_NEARBY, n_clusters)))
    near, distance = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    belief = 1 / (1 + (distance / _NEAR) ** 2)
    rows = np.repeat(np.arange(n_clusters), near.shape[1])
    return csr_array((belief.ravel(), (rows, near.ravel())), shape=(n_clusters, n_clusters))


def average_smoothed(classes: Classes, drawn: Iterator[Hidden]) -> Estimate:
    """Return the nearest-match risk where fresh numbers are released."""
    n, shared, n_clusters = len(classes.labels), classes.shared, len(classes.cluster_sizes)
    everyone = np.arange(n)
    replicates = []
    for hidden in drawn:
        received = hidden_columns(classes.columns, hidden, everyone)
        both = [column.followed_by(other) for column, other in zip(classes.columns, received, strict=True)]
        placed = positions(both, reference=n)
        points, of_record = np.unique(placed[n:].round(12), axis=0, return_inverse=True)
        holders = count_pairs(of_record.ravel(), classes.labels, len(points), n_clusters)
        matches = _find_all_matches(classes, points, placed, np.bincount(of_record.ravel()))
        crowd = np.bincount(matches.groups, weights=matches.counts, minlength=len(classes.first))
        length = np.diff(holders.starts)[matches.items]
        entry = np.repeat(holders.starts[:-1][matches.items] - np.cumsum(length) + length, length)
        entry += np.arange(length.sum())
        keys = np.repeat(matches.groups, length) * n_clusters + holders.items[entry]
        table = _tabulate(keys, holders.counts[entry], len(classes.first), n_clusters)
        hits = table.find(shared.groups, shared.items, n_clusters)
        replicates.append(hits / np.maximum(crowd, 1)[shared.groups] / classes.cluster_sizes[shared.items])
    return Estimate.of_replicates(classes, replicates, 1 / (len(replicates) - 1))
