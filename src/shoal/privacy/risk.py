"""The exact chance of being picked out by the released quasi-identifiers, record by record, without trials.

By exchangeability inside clusters (docs/theory.md) only the chance that the picked record lies in the right cluster is
needed: divided by the cluster's size it is the risk. That chance has a closed form for centroids and permutations, is
an integral for independent draws, and is averaged over repeated releases where a release draws all records together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from shoal.clustering.distortion import find_centres
from shoal.encoding import EncodedColumn, encode_table, positions
from shoal.errors import InputError, suggest
from shoal.hiding import Hidden, hide
from shoal.privacy._shells import PLACES, STARTS, STOPS, WEIGHTS, integrate_shells
from shoal.privacy.classes import Classes, Sparse, count_pairs, find_matches, find_nearest, tolerance_of
from shoal.progress import Progress, Reporter, ignore
from shoal.randomness import make_generator
from shoal.settings import Settings

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
ATTACKERS = ("optimal", "nearest")
THRESHOLDS = (0.09, 0.05)  # what regulators and statistical offices ask for
RELEASES = 40  # drawn where the risk is averaged over releases
_PEOPLE_DRAWN = 60_000  # in all releases drawn for a certificate
_SEARCHES = 20_000  # combinations whose nearest values are sought for a certificate; a quarter in many columns
_GROUPS = 10  # of releases left out in turn, for a standard error
_DOUBT = 5.0  # draws without a hit that the optimal attacker adds to every value before choosing one
_PRIOR = 2.0  # releases in which, he believes beforehand, everybody received a row of the own cluster
_NEARBY, _NEAR = 8, 0.3  # clusters he looks at, and the distance, on standardised columns, that halves their weight


@dataclass(frozen=True)
class Risk:
    """The chance of every record to be picked out by an attacker who uses the released quasi-identifiers only.

    Attributes
    ----------
    attacker : {"nearest", "optimal"}
    per_record : array of shape (n,)
    classes : array of shape (m,)
        A row of each distinct combination of quasi-identifiers: X[classes] are the combinations.
    per_class : array of shape (m,)
        Mean over the records of each combination.
    bound : float
        One over the size of the smallest cluster: no attacker of this kind exceeds it.
    exact : bool
        Whether the figures are exact; else they carry standard errors.
    standard_error, class_standard_error : arrays of shape (n,) and (m,)
        Of `per_record` and `per_class`; 0 where exact.
    mean_standard_error : float
    sampled : bool
        Whether only a random sample of the combinations was measured, as in certificates of large tables.
    """

    attacker: str
    per_record: Floats
    classes: Index
    per_class: Floats
    bound: float
    exact: bool
    standard_error: Floats = field(repr=False)
    class_standard_error: Floats = field(repr=False)
    mean_standard_error: float
    sampled: bool = False

    @property
    def mean(self) -> float:
        """The share of all records that this attacker is expected to pick out."""
        return float(self.per_record.mean())

    @property
    def max(self) -> float:
        """The highest risk of any record; among estimated ones it leans upwards."""
        return float(self.per_record.max())

    def share_above(self, threshold: float) -> float:
        """Return the share of records whose risk is above a threshold."""
        return float((self.per_record > threshold).mean())

    @property
    def reading(self) -> str:
        """The result in one sentence."""
        who = {"nearest": "who takes the nearest match", "optimal": "who also knows the clusters"}[self.attacker]
        about = "" if self.exact else "about "
        return (
            f"An attacker {who} is expected to pick out {about}{self.mean:.2%} of the records, and the record most at "
            f"risk with a chance of {about}{self.max:.4f}; nobody can be above {self.bound:.4f}."
        )

    def describe(self) -> dict[str, Any]:
        """Return the figures of a certificate, to four digits."""
        figures = {"mean": self.mean, "max": self.max}
        figures |= {f"above_{threshold:g}": self.share_above(threshold) for threshold in THRESHOLDS}
        if not self.exact:
            figures["standard_error_of_mean"] = self.mean_standard_error
        said: dict[str, Any] = {"exact": self.exact} | {name: float(f"{v:.4g}") for name, v in figures.items()}
        said["max"] = min(said["max"], self.bound)
        return said | ({"records_sampled": len(self.per_record)} if self.sampled else {})

    def __str__(self) -> str:
        return self.reading


def reidentification_risk(
    X: Any,
    labels: ArrayLike,
    *,
    method: str = "gaussian",
    recovery: str | None = None,
    attacker: str = "nearest",
    loading: float = 1 / 3,
    release_values: str = "observed",
    k: int | None = None,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    n_releases: int = RELEASES,
    random_state: Any = None,
    progress: bool | Progress | None = None,
) -> Risk:
    r"""Return the chance of every record to be picked out by the released quasi-identifiers alone.

    The nearest-match attacker (the paper's) knows everybody's quasi-identifiers and takes the released record nearest
    to them, one of them at random on a tie. The optimal attacker also knows the clusters, and takes a record with the
    value that points most to the cluster of the person sought.

    Exact: centroid and permute (closed form), resample (an integral, error below 1e-10; for the optimal attacker what a
    value tells by itself, or the nearest match if that is more). Estimated, with standard errors: gaussian. For
    recovery="cdf" the released distribution of every cluster is estimated from `n_releases` releases, then integrated;
    for "transport", "rank" and smoothed values the risk is averaged over the releases and, inside each, over everything
    that exchangeability allows. With more than twelve standardised coordinates (a nominal column has one per level),
    time grows with the square of the number of distinct combinations, for methods that take a search.

    Parameters
    ----------
    X : table or array of shape (n, d)
        The original quasi-identifiers.
    labels : array of shape (n,)
        The cluster of every record.
    method, recovery, loading, release_values, kinds
        As in `shoal.anonymize`.
    attacker : {"nearest", "optimal"}, default "nearest"
    k : int, default: the size of the smallest cluster
        Matters for smoothed values only.
    n_releases : int, default 40
        Releases drawn where the risk is estimated; at least 2.
    random_state, progress
        As in `shoal.anonymize`.

    Returns
    -------
    Risk

    Examples
    --------
    Three people who differ and are permuted among themselves: everybody's own row is there, and who holds it is chance.

    >>> risk = reidentification_risk([[1.0], [2.0], [3.0]], [0, 0, 0], method="permute")
    >>> risk.per_record.round(4).tolist(), round(risk.bound, 4)
    ([0.3333, 0.3333, 0.3333], 0.3333)
    >>> risk = reidentification_risk([[1.0], [2.0], [3.0]], [0, 0, 0], method="resample")
    >>> round(risk.mean, 4)  # nobody can be above 1/3, whatever is nearest
    0.3333
    """
    columns = encode_table(X, kinds)
    clusters = _read_labels(labels, len(columns[0].codes))
    smallest = int(np.bincount(clusters).min())
    settings = Settings(
        k=max(smallest, 2) if k is None else k,
        method=method,
        recovery=recovery,
        clustering="auto",
        response_weight=0.0,
        loading=loading,
        release_values=release_values,
    )
    settings.check()
    settings.check_columns(columns)
    if attacker not in ATTACKERS:
        raise InputError(f"attacker={attacker!r} is not known{suggest(attacker, ATTACKERS)}")
    if not isinstance(n_releases, int | np.integer) or isinstance(n_releases, bool) or n_releases < 2:
        raise InputError(f"n_releases={n_releases!r} must be a whole number of at least 2.")
    rng = make_generator(random_state)
    with Reporter(progress) as reporter:
        drawn = draw_releases(columns, clusters, settings, rng, n_releases, reporter.stage("releases"))
        found = measure_risk(columns, clusters, settings, drawn, attackers=[attacker])
    if attacker not in found:
        raise InputError(
            "attacker='optimal' is not measured for smoothed values; nobody is above `bound` of 'nearest'."
        )
    return found[attacker]


def check_releases(n_releases: int | None, n: int) -> int:
    """Return how many releases to draw for the certificate of n people: by default more where they cost little."""
    if n_releases is None:
        return int(np.clip(_PEOPLE_DRAWN // n, 2, 20))
    if (
        not isinstance(n_releases, int | np.integer)
        or isinstance(n_releases, bool)
        or n_releases < 0
        or n_releases == 1
    ):
        raise InputError(f"n_releases={n_releases!r} must be a whole number of at least 2, or 0 to measure nothing.")
    return int(n_releases)


def draw_releases(
    columns: list[EncodedColumn],
    labels: Index,
    settings: Settings,
    rng: np.random.Generator,
    n_releases: int,
    report: Callable[[float], None] = ignore,
) -> Iterator[Hidden]:
    """Return releases drawn one after the other, as they are asked for."""
    for done in range(n_releases):
        yield hide(columns, labels, settings, rng, Reporter(progress=False))
        report((done + 1) / n_releases)


def measure_risk(
    columns: list[EncodedColumn],
    labels: Index,
    settings: Settings,
    drawn: Iterator[Hidden],
    attackers: Sequence[str] = ATTACKERS,
    sample: np.random.Generator | None = None,
) -> dict[str, Risk]:
    """Return the risk under each attacker; releases are drawn only where no formula is known.

    With sample, only so many combinations are measured, drawn at random, where each takes a search among all.
    """
    classes = Classes.find(columns, labels)
    if sample is not None and settings.way not in ("permute", "rank", "transport"):
        classes = classes.sampled(_SEARCHES if classes.is_flat else _SEARCHES // 4, sample)
    smoothed = settings.release_values == "smoothed" and any(column.is_continuous for column in columns)
    if settings.way == "centroid":
        found = _risk_of_centroids(classes, next(drawn))
    elif smoothed:
        found = {"nearest": _average_smoothed(classes, drawn)}  # how much fresh numbers tell of clusters is not known
    elif settings.way in ("permute", "resample"):
        found = _risk_inside_clusters(classes, resampled=settings.way == "resample")
    else:
        found = _average(classes, drawn, independent=settings.way == "cdf")
    return {name: found[name].as_risk(name, classes) for name in attackers if name in found}


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

    def as_risk(self, attacker: str, classes: Classes) -> Risk:
        """Return the risk of every record, never above what its cluster allows."""
        pairs = np.clip(self.pairs, 0.0, 1 / classes.cluster_sizes[classes.shared.items])
        of_classes = np.zeros(len(classes.first)) if self.of_classes is None else self.of_classes
        asked = slice(None) if classes.sample is None else classes.sample
        records = slice(None) if classes.sample is None else np.isin(classes.of_record, classes.sample)
        return Risk(
            attacker=attacker,
            per_record=classes.by_record(pairs)[records],
            classes=classes.first[asked],
            per_class=classes.by_class(pairs)[asked],
            bound=float(1 / classes.cluster_sizes.min()),
            exact=self.exact,
            standard_error=classes.by_record(self.of_pairs)[records],
            class_standard_error=of_classes[asked],
            mean_standard_error=self.of_mean,
            sampled=classes.sample is not None,
        )


def _read_labels(labels: ArrayLike, n: int) -> Index:
    given = np.asarray(labels)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InputError(f"labels must be {n} whole numbers, one for every row of X, but its shape is {given.shape}.")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _risk_inside_clusters(classes: Classes, *, resampled: bool) -> dict[str, Estimate]:
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


def _risk_of_centroids(classes: Classes, hidden: Hidden) -> dict[str, Estimate]:
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


def _average(classes: Classes, drawn: Iterator[Hidden], *, independent: bool) -> dict[str, Estimate]:
    """Return risks from what every cluster received in repeated releases.

    The optimal attacker takes the nearest match if, from so few releases, he learns nothing better.
    """
    received = [classes.count_received(hidden.source) for hidden in drawn]
    nearest = _integrate_draws(classes, received) if independent else _match_in_releases(classes, received)
    learnt = _best_attack(classes, received)
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


def _best_attack(classes: Classes, received: list[Sparse]) -> Estimate:
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


def _average_smoothed(classes: Classes, drawn: Iterator[Hidden]) -> Estimate:
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
