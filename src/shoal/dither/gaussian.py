"""Gaussian dither: every record becomes a draw from a Gaussian with its cluster's mean and loaded covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.dither.resampling import Index
from shoal.errors import InputError

Floats = NDArray[np.float64]
_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class GaussianDither:
    """One Gaussian per cluster, N(mean, covariance + loading * I), the covariance with divisor n_l.

    Examples
    --------
    >>> X = np.array([[0.0], [2.0], [5.0], [5.0]])
    >>> dither = GaussianDither.fit(X, np.array([0, 0, 1, 1]), loading=1.0)
    >>> dither.means.ravel().tolist(), dither.covariances.ravel().tolist()
    ([1.0, 5.0], [2.0, 1.0])
    """

    sizes: Index
    means: Floats
    covariances: Floats

    @classmethod
    def fit(cls, X: Floats, labels: Index, loading: float = 1 / 3) -> GaussianDither:
        """Return the Gaussians of the clusters 0, 1, ... of the rows of X, shape (n, p).

        A cluster's rows are added up in sorted order, so that clusters of equal rows have equal moments, bit for bit.
        """
        p = X.shape[1]
        order = np.lexsort((*X.T[::-1], labels))
        rows, cluster = X[order], labels[order]
        sizes = np.bincount(labels)
        starts = np.cumsum(sizes) - sizes
        means = np.add.reduceat(rows, starts, axis=0) / sizes[:, None]
        rows = rows - means[cluster]
        covariances = np.empty((len(sizes), p, p))
        for a in range(p):
            for b in range(a + 1):
                product = np.add.reduceat(rows[:, a] * rows[:, b], starts) / sizes
                covariances[:, a, b] = covariances[:, b, a] = product
        covariances += loading * np.eye(p)
        return cls(sizes, means, covariances)

    def draw(self, labels: Index, rng: np.random.Generator) -> Floats:
        """Draw one point for every record, shape (n, p), depending on the record through its cluster only."""
        p = self.means.shape[1]
        try:
            factors = np.linalg.cholesky(self.covariances) if p else np.zeros_like(self.covariances)
        except np.linalg.LinAlgError:
            raise InputError("loading is too small for columns that determine one another; raise it.") from None
        points = rng.standard_normal((len(labels), p))
        for start in range(0, len(labels), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            cluster = labels[part]
            points[part] = self.means[cluster] + np.einsum("nij,nj->ni", factors[cluster], points[part])
        return points


def level_shares(codes: Index, labels: Index) -> Floats:
    """Return the share of every level in every cluster, shape (c, levels)."""
    n_levels, n_clusters = int(codes.max()) + 1, int(labels.max()) + 1
    counts = np.bincount(labels * n_levels + codes, minlength=n_clusters * n_levels)
    table = counts.reshape(n_clusters, n_levels).astype(np.float64)
    return table / table.sum(axis=1, keepdims=True)
