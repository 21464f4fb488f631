"""The estimator around the clustering algorithms."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, validate_data

from shoal.clustering.distortion import find_centres, squared_distances
from shoal.clustering.flow import flow
from shoal.clustering.greedy import greedy
from shoal.clustering.mdav import mdav
from shoal.clustering.optimal import optimal
from shoal.clustering.refined import Budget, Found, auto_sweeps, default_sweeps, refine
from shoal.errors import CheckError, InputError, suggest
from shoal.notebook import html_table
from shoal.progress import ignore
from shoal.randomness import make_generator

ALGORITHMS = ("auto", "greedy", "refined", "mdav", "optimal", "flow")

_SQUARES_OVERFLOW = 1e100  # beyond this, distances are taken between scaled points
_LONGEST = 1e15  # sweeps or seconds
_LIGHT = 1e-50  # of the heaviest weight; what is lighter is raised a little for the search
_NEARLY_NOTHING = 1e-9  # of the smallest weight, in place of 0: such a record is a person too, but pulls no centroid


class KMemberClustering(ClusterMixin, BaseEstimator):
    """Cluster rows into groups of at least k, with a small within-cluster sum of squares.

    Parameters
    ----------
    k : int, default 5
        The smallest size of a cluster.
    algorithm : {"greedy", "auto", "refined", "mdav", "optimal", "flow"}, default "greedy"
        "greedy": grow one cluster after the other around the record farthest from the last (Byun et al. 2007);
        floor(n / k) clusters. Deterministic: the lowest row index wins every tie.
        "auto": greedy, then as much annealing as takes about as long, (20 + 100,000 / n) * max(1, d / 8) sweeps.
        "refined": greedy, then annealing and descent until `time_limit` or `max_iter`; the number of clusters is free.
        "mdav": maximum distance to average vector (Domingo-Ferrer and Torra 2005), the standard of microaggregation.
        "optimal": exact, along one column or an order of the rows (Hansen and Mukherjee 2003).
        "flow": k-means with a smallest size, by minimum-cost flow (Demiriz et al. 2008); for some thousand rows,
        needs OR-tools (the extra `flow`).
    max_iter : int, default None
        "refined" only: sweeps of annealing, each trying as many changes as there are records. None with no `time_limit`
        makes max(200, 50,000,000 / n).
    time_limit : float, default None
        "refined" only: seconds for the whole fit. The greedy start and the neighbour graph are never cut short.
        Results then depend on the machine's speed.
    random_state : int or numpy.random.Generator, default None
        For "refined" and "auto": the same seed gives the same labels, whatever the threads.
    n_jobs : int, default None
        Threads for the neighbour graph of "refined" and "auto"; None and -1 are every core.
    progress : callable, default None
        Called with the share done, from 0 to 1.

    Attributes
    ----------
    labels_ : array of shape (n,)
    cluster_sizes_ : array of shape (c,)
    cluster_centers_ : array of shape (c, d)
        Weighted means.
    inertia_ : float
        Weighted sum of squared distances to the centres.
    n_clusters_ : int
    n_iter_ : int
        Sweeps of annealing made by "refined" and "auto", assignments made by "flow"; 1 for the others.
    interrupted_ : bool
        Whether Ctrl-C ended the search of "refined", "auto" or "flow"; the best clusters so far are kept. Before there
        are any, it raises as usual.

    Examples
    --------
    >>> KMemberClustering(k=2).fit([[0.0], [0.1], [5.0], [5.1], [5.2]]).labels_.tolist()
    [0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        k: int = 5,
        *,
        algorithm: str = "greedy",
        max_iter: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self.k = k
        self.algorithm = algorithm
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _html_repr(self) -> str:
        """Return what a notebook shows: scikit-learn's diagram, and once fitted the clusters' sizes."""
        diagram = str(super()._html_repr())
        if not hasattr(self, "labels_"):
            return diagram
        sizes, counts = np.unique(self.cluster_sizes_, return_counts=True)
        said = ", ".join(f"{count:,} of {size:,}" for size, count in zip(sizes[:12], counts[:12], strict=True))
        rows = [
            ("rows", f"{len(self.labels_):,}"),
            ("clusters", f"{self.n_clusters_:,}, sizes {sizes[0]:,} to {sizes[-1]:,}"),
            ("how many of each size", said + (", ..." if len(sizes) > 12 else "")),
            ("within-cluster sum of squares", f"{self.inertia_:.6g}"),
        ]
        return diagram + html_table(rows)

    def fit(
        self,
        X: ArrayLike,
        y: object = None,  # noqa: ARG002
        sample_weight: ArrayLike | None = None,
        order: ArrayLike | None = None,
    ) -> Self:
        """Find the clusters of X, shape (n, d).

        A record's weight counts in centroids, never towards k. order: for "optimal", the rows in the order in which
        clusters are to be contiguous, shape (n,).
        """
        began = time.monotonic()
        self._check_options(order)
        points = read_points(self, X)
        check_enough(self.k, len(points))
        largest = max(float(points.max()), -float(points.min()))
        scale = float(2.0 ** np.floor(np.log2(largest))) if largest > _SQUARES_OVERFLOW else 1.0  # ties stay ties
        if scale != 1.0:
            points = points / scale
        weight = _check_sample_weight(sample_weight, points, dtype=np.float64, ensure_non_negative=True)
        heaviest = float(2.0 ** np.floor(np.log2(weight.max())))
        if heaviest != 1.0:
            weight = weight / heaviest
        raised = raise_weights(weight)
        progress = self.progress or ignore
        progress(0.0)
        found = self._find(points, raised, began, order, progress)
        self.labels_, self.interrupted_ = found.labels, found.interrupted
        self.n_iter_ = found.sweeps if self.algorithm in ("auto", "refined", "flow") else 1
        self.cluster_sizes_ = check_sizes(self.labels_, self.k)
        self.n_clusters_ = len(self.cluster_sizes_)
        massless = np.bincount(self.labels_, weights=weight) == 0
        weight = np.where(massless[self.labels_], raised, weight) if massless.any() else weight
        self.cluster_centers_ = find_centres(points, weight, self.labels_) * scale
        self.inertia_ = float(weight @ squared_distances(points, weight, self.labels_)) * heaviest * scale * scale
        if not self.interrupted_:
            progress(1.0)
        else:
            warnings.warn("Interrupted: the best clusters so far are kept.", ConvergenceWarning, stacklevel=2)
        return self

    def _check_options(self, order: ArrayLike | None) -> None:
        check_k(self.k)
        if not isinstance(self.algorithm, str) or self.algorithm not in ALGORITHMS:
            raise InputError(f"algorithm={self.algorithm!r} is not known{suggest(self.algorithm, ALGORITHMS)}")
        for name, kind in (("max_iter", Integral), ("time_limit", Real)):
            limit = getattr(self, name)
            if limit is None:
                continue
            if not isinstance(limit, kind) or isinstance(limit, bool) or not 0 <= limit <= _LONGEST:  # type: ignore[operator]
                what = "a whole number of sweeps" if kind is Integral else "a number of seconds"
                raise InputError(f"{name}={limit!r} must be {what}, 0 or more, or None.")
            if self.algorithm != "refined":
                raise InputError(f"{name} goes with algorithm='refined' only, not with {self.algorithm!r}.")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise InputError(f"n_jobs={self.n_jobs!r} must be a whole number of threads, -1 for all, or None.")
        if order is not None and self.algorithm != "optimal":
            raise InputError(f"order goes with algorithm='optimal' only, not with {self.algorithm!r}.")

    def _find(
        self,
        X: NDArray[np.float64],
        weight: NDArray[np.float64],
        began: float,
        order: ArrayLike | None,
        progress: Callable[[float], None],
    ) -> Found:
        n, d, k = *X.shape, int(self.k)
        if self.algorithm == "optimal":
            return Found(optimal(X, weight, k, None if order is None else read_order(order, n)))
        if self.algorithm == "flow":
            return flow(X, weight, k, progress)
        if self.algorithm in ("greedy", "mdav"):
            return Found({"greedy": greedy, "mdav": mdav}[self.algorithm](X, weight, k, progress))
        if self.algorithm == "auto":
            budget = Budget(auto_sweeps(n, d), began=began)
        elif self.max_iter is None and self.time_limit is None:
            budget = Budget(default_sweeps(n), began=began)
        else:
            budget = Budget(self.max_iter, self.time_limit, began)
        start = 0.5 if self.algorithm == "auto" else 0.1  # of the bar is for the greedy start
        labels = greedy(X, weight, k, lambda share: progress(start * share))
        rng = make_generator(self.random_state)
        return refine(
            X, weight, k, labels, budget, rng, self.n_jobs, lambda share: progress(start + (1 - start) * share)
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        searching = self.algorithm in ("auto", "refined")
        tags.non_deterministic = self.time_limit is not None or (searching and self.random_state is None)
        return tags


def raise_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights above 0 for the search, which divides by them."""
    if weight.min() > _LIGHT:
        return weight
    return np.maximum(weight, max(_NEARLY_NOTHING * weight[weight > 0].min(), _LIGHT * _LIGHT))


def read_order(order: ArrayLike, n: int) -> NDArray[np.int64]:
    """Return an order of n rows, refusing what is not a permutation."""
    rows = np.asarray(order)
    if rows.shape != (n,) or rows.dtype.kind not in "iu" or not np.array_equal(np.sort(rows), np.arange(n)):
        raise InputError(f"order must hold every row number from 0 to {n - 1} once.")
    return rows.astype(np.int64)


def read_points(estimator: BaseEstimator, X: Any, **checks: Any) -> NDArray[np.float64]:
    """Return X as an array of numbers, checked by scikit-learn."""
    try:
        return validate_data(estimator, X, dtype=np.float64, order="C", **checks)
    except ValueError as error:
        if "could not convert string" in str(error):  # NumPy would quote the text
            raise InputError("X must hold numbers only, but it holds text.") from None
        raise


def check_k(k: Any) -> None:
    """Refuse a k that is not a whole number of at least 2."""
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 2:
        raise InputError(f"k={k!r} must be a whole number of at least 2: with k=1 nobody is hidden.")


def check_enough(k: int, n: int, who: str = "row") -> None:
    """Refuse a table of fewer than k rows or persons."""
    if n < k:
        plural = f"{who} (n_samples=1)" if n == 1 else f"{who}s"
        raise InputError(f"k={k} needs at least {k} {who}s, but the table has {n} {plural}; lower k or pool tables.")


def check_sizes(labels: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the sizes of the clusters 0, 1, ..., refusing any below k."""
    sizes = np.bincount(labels) if (labels >= 0).all() else np.zeros(1, dtype=np.int64)
    if sizes.min() < k:
        raise CheckError(
            f"The clustering left a cluster under k={k}, or records without a cluster; nothing is released."
        )
    return sizes
