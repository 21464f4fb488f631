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

from shoal.encoding import EncodedColumn, encode_table
from shoal.errors import InputError, suggest
from shoal.hiding import Hidden, hide
from shoal.privacy.chances import Estimate, average_releases, average_smoothed, risk_inside_clusters, risk_of_centroids
from shoal.privacy.classes import Classes
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
    whole = isinstance(n_releases, int | np.integer) and not isinstance(n_releases, bool)
    if not whole or n_releases < 0 or n_releases == 1:
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
    smoothed = settings.release_values == "smoothed" and any(column.is_continuous for column in columns)
    if sample is not None and (smoothed or settings.way not in ("permute", "rank", "transport")):
        classes = classes.sampled(_SEARCHES if classes.is_flat else _SEARCHES // 4, sample)
    if settings.way == "centroid":
        found = risk_of_centroids(classes, next(drawn))
    elif smoothed:
        found = {"nearest": average_smoothed(classes, drawn)}  # how much fresh numbers tell of clusters is not known
    elif settings.way in ("permute", "resample"):
        found = risk_inside_clusters(classes, resampled=settings.way == "resample")
    else:
        found = average_releases(classes, drawn, independent=settings.way == "cdf")
    return {name: _as_risk(found[name], name, classes) for name in attackers if name in found}


def _as_risk(estimate: Estimate, attacker: str, classes: Classes) -> Risk:
    """Return the risk of every record, never above what its cluster allows."""
    pairs = np.clip(estimate.pairs, 0.0, 1 / classes.cluster_sizes[classes.shared.items])
    of_classes = np.zeros(len(classes.first)) if estimate.of_classes is None else estimate.of_classes
    asked = slice(None) if classes.sample is None else classes.sample
    records = slice(None) if classes.sample is None else np.isin(classes.of_record, classes.sample)
    return Risk(
        attacker=attacker,
        per_record=classes.by_record(pairs)[records],
        classes=classes.first[asked],
        per_class=classes.by_class(pairs)[asked],
        bound=float(1 / classes.cluster_sizes.min()),
        exact=estimate.exact,
        standard_error=classes.by_record(estimate.of_pairs)[records],
        class_standard_error=of_classes[asked],
        mean_standard_error=estimate.of_mean,
        sampled=classes.sample is not None,
    )


def _read_labels(labels: ArrayLike, n: int) -> Index:
    given = np.asarray(labels)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InputError(f"labels must be {n} whole numbers, one for every row of X, but its shape is {given.shape}.")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)
