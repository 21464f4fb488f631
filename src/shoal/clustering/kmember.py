"""The estimator around the clustering algorithms."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import _check_sample_weight, validate_data

from shoal.clustering.greedy import greedy
from shoal.errors import CheckError, InputError, suggest

ALGORITHMS: dict[str, Callable[..., NDArray[np.int64]]] = {"greedy": greedy}

_SQUARES_OVERFLOW = 1e100  # beyond this, distances are taken between scaled points
_NEARLY_NOTHING = 1e-9  # of the smallest weight: a record of weight 0 is a person too, but pulls no centroid


class KMemberClustering(ClusterMixin, BaseEstimator):
    """Cluster rows into groups of at least k, with a small within-cluster sum of squares.

    Parameters
    ----------
    k : int, default 5
        The smallest size of a cluster.
    algorithm : {"greedy"}, default "greedy"
        "greedy": grow one cluster after the other around the record farthest from the last (Byun et al. 2007);
        floor(n / k) clusters. Deterministic: the lowest row index wins every tie.
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

    Examples
    --------
    >>> KMemberClustering(k=2).fit([[0.0], [0.1], [5.0], [5.1], [5.2]]).labels_.tolist()
    [0, 0, 1, 1, 1]
    """

    def __init__(
        self, k: int = 5, *, algorithm: str = "greedy", progress: Callable[[float], None] | None = None
    ) -> None:
        self.k = k
        self.algorithm = algorithm
        self.progress = progress

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Find the clusters of X, shape (n, d); a record's weight counts in centroids, never towards k."""
        check_k(self.k)
        if self.algorithm not in ALGORITHMS:
            raise InputError(f"algorithm={self.algorithm!r} is not known{suggest(self.algorithm, ALGORITHMS)}")
        points = read_points(self, X)
        check_enough(self.k, len(points))
        largest = float(np.abs(points).max())
        scale = largest if largest > _SQUARES_OVERFLOW else 1.0
        points = points / scale
        weight = _check_sample_weight(sample_weight, points, dtype=np.float64, ensure_non_negative=True)
        weight = np.maximum(weight, _NEARLY_NOTHING * weight[weight > 0].min())
        self.labels_ = ALGORITHMS[self.algorithm](points, self.k, weight, self.progress)
        self.cluster_sizes_ = check_sizes(self.labels_, self.k)
        self.n_clusters_ = len(self.cluster_sizes_)
        centres, inertia = describe_clusters(points, weight, self.labels_, self.n_clusters_)
        self.cluster_centers_, self.inertia_ = centres * scale, inertia * scale * scale
        return self


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


def describe_clusters(
    X: NDArray[np.float64], weight: NDArray[np.float64], labels: NDArray[np.int64], n_clusters: int
) -> tuple[NDArray[np.float64], float]:
    """Return the weighted centres and the weighted sum of squared distances to them."""
    mass = np.bincount(labels, weights=weight, minlength=n_clusters)
    centres = np.column_stack(
        [np.bincount(labels, weights=weight * column, minlength=n_clusters) / mass for column in X.T]
    )
    squared = np.zeros(len(X))
    for j, column in enumerate(X.T):
        squared += (column - centres[labels, j]) ** 2
    return centres, float(weight @ squared)
