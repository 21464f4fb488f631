"""The classical release: every record becomes its cluster's centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
_SUMS_OVERFLOW = 1e290


def cluster_means(numbers: NDArray[np.float64], labels: Index) -> NDArray[np.float64]:
    """Return the mean of the known numbers of every cluster, NaN where more than half of them are missing."""
    known = ~np.isnan(numbers)
    counts = np.bincount(labels, weights=known)
    largest = np.abs(numbers[known]).max(initial=0.0)
    scale = largest if largest > _SUMS_OVERFLOW else 1.0
    sums = np.bincount(labels, weights=np.where(known, numbers, 0.0) / scale)
    means = sums / np.maximum(counts, 1) * scale
    return np.where(2 * counts >= np.bincount(labels), means, np.nan)


def nearest_members(numbers: NDArray[np.float64], labels: Index) -> Index:
    """Return for every cluster a member whose number is nearest to the cluster's mean, or missing where that is."""
    means = cluster_means(numbers, labels)[labels]
    distance = np.where(np.isnan(means) == np.isnan(numbers), np.abs(numbers - means), np.inf)
    return _first_by(np.where(np.isnan(distance), 0.0, distance), numbers, labels)


def modal_members(codes: Index, labels: Index) -> Index:
    """Return for every cluster a member with the cluster's most frequent level, the lowest level on a tie."""
    order = np.lexsort((codes, labels))
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (codes[order][1:] != codes[order][:-1]) | (labels[order][1:] != labels[order][:-1])
    counts = np.diff(np.append(np.flatnonzero(new), len(codes)))
    count_of = np.empty(len(codes))
    count_of[order] = counts[np.cumsum(new) - 1]
    return _first_by(-count_of, codes.astype(np.float64), labels)


def _first_by(key: NDArray[np.float64], tie: NDArray[np.float64], labels: Index) -> Index:
    """Return for every cluster the member with the smallest key, the smallest tie value on a tie."""
    order = np.lexsort((tie, key, labels))
    sizes = np.bincount(labels)
    return order[np.cumsum(sizes) - sizes]
