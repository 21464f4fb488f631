"""Weighted means of clusters and the squared error around them, one column at a time so that memory stays bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def weighted_mean(X: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted mean of the rows of X, bit for bit that of `numpy.average`."""
    if X.shape[1] == 1:
        return (weight * X[:, 0]).sum(keepdims=True) / weight.sum()
    total, _ = weighted_sums(X, weight, np.zeros(len(X), dtype=np.int64), 1)
    return total[0] / weight.sum()


def weighted_sums(
    X: NDArray[np.float64], weight: NDArray[np.float64], labels: NDArray[np.int64], n_clusters: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the clusters' weighted sums, shape (c, d), and their weights, adding in row order."""
    mass = np.bincount(labels, weights=weight, minlength=n_clusters).astype(np.float64, copy=False)
    sums = [np.bincount(labels, weights=weight * column, minlength=n_clusters) for column in X.T]
    return np.column_stack(sums), mass


def find_centres(X: NDArray[np.float64], weight: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weighted centres of the clusters 0, 1, ..., shape (c, d)."""
    total, mass = weighted_sums(X, weight, labels, int(labels.max()) + 1)
    return total / mass[:, None]


def squared_distances(
    X: NDArray[np.float64], weight: NDArray[np.float64], labels: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return every row's squared distance to the weighted centre of its cluster."""
    squared = np.zeros(len(X))
    for column, centre in zip(X.T, find_centres(X, weight, labels).T, strict=True):
        squared += (column - centre[labels]) ** 2
    return squared
