from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.clustering import KMemberClustering
from shoal.errors import InputError


def error_of(X, weight, labels):
    total = 0.0
    for cluster in np.unique(labels):
        own = labels == cluster
        mean = np.average(X[own], axis=0, weights=weight[own])
        total += (weight[own] * ((X[own] - mean) ** 2).sum(axis=1)).sum()
    return total


def partitions(n, k):
    """All ways to put n records into clusters of at least k, as labels."""

    def extend(labels, number):
        if len(labels) == n:
            if min(np.bincount(labels)) >= k:
                yield np.array(labels)
            return
        for label in range(number + 1):
            yield from extend([*labels, label], max(number, label + 1))

    yield from extend([], 0)


def runs(n, k):
    """All ways to cut n records into runs of at least k."""
    if n == 0:
        yield []
    for first in range(k, n + 1):
        for rest in runs(n - first, k):
            yield [first, *rest]


@given(seed=st.integers(0, 10_000), n=st.integers(2, 8), k=st.integers(2, 3))
def test_one_column_is_the_best_of_all_partitions(seed, n, k):
    rng = np.random.default_rng(seed)
    k = min(k, n)
    X = rng.integers(0, 6, (n, 1)).astype(float) if seed % 2 else rng.standard_normal((n, 1))
    best = min(error_of(X, np.ones(n), labels) for labels in partitions(n, k))
    model = KMemberClustering(k, algorithm="optimal").fit(X)
    assert model.inertia_ == pytest.approx(best, abs=1e-12)
    assert model.cluster_sizes_.min() >= k


@given(seed=st.integers(0, 10_000), n=st.integers(2, 14), k=st.integers(2, 4), d=st.integers(1, 3))
def test_along_an_order_with_weights_it_is_the_best_of_all_cuts(seed, n, k, d):
    rng = np.random.default_rng(seed)
    k = min(k, n)
    X, weight, order = rng.standard_normal((n, d)), rng.random(n) + 0.01, rng.permutation(n)
    best = np.inf
    for sizes in runs(n, k):
        labels = np.empty(n, dtype=int)
        labels[order] = np.repeat(np.arange(len(sizes)), sizes)
        best = min(best, error_of(X, weight, labels))
    model = KMemberClustering(k, algorithm="optimal").fit(X, sample_weight=weight, order=order)
    assert model.inertia_ == pytest.approx(best, rel=1e-9)
    changes = np.count_nonzero(np.diff(model.labels_[order]))
    assert changes == model.n_clusters_ - 1  # contiguous


def test_weights_can_make_a_partition_that_is_not_contiguous_better():
    """Why the docs say 'the best contiguous partition': found by trying all partitions of small examples."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        X, weight = np.sort(rng.random((5, 1)), axis=0), rng.choice([0.01, 1.0, 100.0], 5)
        best = min(error_of(X, weight, labels) for labels in partitions(5, 2))
        if KMemberClustering(2, algorithm="optimal").fit(X, sample_weight=weight).inertia_ > best * (1 + 1e-6):
            return
    pytest.fail("no example found")


def test_large_values_do_not_cancel(rng):
    X = rng.standard_normal((60, 1))
    far = KMemberClustering(4, algorithm="optimal").fit(X + 1e8)
    near = KMemberClustering(4, algorithm="optimal").fit(X)
    np.testing.assert_array_equal(far.labels_, near.labels_)


def test_no_other_algorithm_is_better_in_one_column(rng):
    X = rng.lognormal(0, 1, (500, 1))
    best = KMemberClustering(5, algorithm="optimal").fit(X).inertia_
    for algorithm in ("greedy", "mdav", "auto", "refined"):
        limit = {"max_iter": 300} if algorithm == "refined" else {}
        assert KMemberClustering(5, algorithm=algorithm, random_state=0, **limit).fit(X).inertia_ >= best * (1 - 1e-9)


def test_errors():
    X = np.zeros((6, 2))
    with pytest.raises(InputError, match="needs one column, but X has 2.*order"):
        KMemberClustering(2, algorithm="optimal").fit(X)
    for order in ([0, 1, 2], [0, 1, 2, 3, 4, 4], np.arange(6.0)):
        with pytest.raises(InputError, match="every row number from 0 to 5 once"):
            KMemberClustering(2, algorithm="optimal").fit(X, order=order)
    with pytest.raises(InputError, match="order goes with algorithm='optimal'"):
        KMemberClustering(2).fit(X, order=np.arange(6))
