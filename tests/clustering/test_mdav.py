from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.clustering import KMemberClustering

from .test_greedy import WAYS, force, squared


def plain_mdav(X, k, weight):
    """The specification in plain NumPy, with exact sums."""
    labels, free, cluster = np.full(len(X), -1), np.arange(len(X)), 0

    def centroid():
        mass = math.fsum(weight[free])
        return np.array([math.fsum(weight[free] * X[free, j]) / mass for j in range(X.shape[1])])

    def take_around(point):
        nonlocal free, cluster
        pick = free[np.argmax(squared(X, free, point))]
        others = free[free != pick]
        near = others[np.argsort(squared(X, others, X[pick]), kind="stable")[: k - 1]]
        labels[pick] = labels[near] = cluster
        free, cluster = np.flatnonzero(labels < 0), cluster + 1
        return X[pick]

    while len(free) >= 3 * k:
        take_around(take_around(centroid()))
    if len(free) >= 2 * k:
        take_around(centroid())
    labels[free] = cluster
    return labels


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40)
@given(data=st.data())
def test_equals_the_plain_version_label_for_label_ties_included(way, data):
    n = data.draw(st.integers(2, 90))
    d = data.draw(st.integers(1, 4))
    k = data.draw(st.integers(2, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    X = rng.integers(0, data.draw(st.integers(1, 5)), (n, d)).astype(float)
    weight = rng.integers(1, 4, n).astype(float) if data.draw(st.booleans()) else np.ones(n)
    with pytest.MonkeyPatch.context() as monkeypatch:
        force(way, monkeypatch)
        labels = KMemberClustering(k, algorithm="mdav").fit(X, sample_weight=weight).labels_
    np.testing.assert_array_equal(labels, plain_mdav(X, k, weight))


@pytest.mark.parametrize("way", WAYS)
def test_equals_the_plain_version_on_continuous_data_with_outliers(way, rng, monkeypatch):
    force(way, monkeypatch)
    X, weight = rng.standard_normal((600, 3)), rng.random(600) + 0.1
    X[:3] *= 1e12  # once they are gone, the mean of the rest must be exact again
    labels = KMemberClustering(5, algorithm="mdav").fit(X, sample_weight=weight).labels_
    np.testing.assert_array_equal(labels, plain_mdav(X, 5, weight))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("CASCrefmicrodata.csv", [5.692, 7.495, 9.088, 14.156]), ("Tarragona.csv", [16.933, 19.546, 22.462, 33.193])],
)
def test_published_information_loss(microaggregation, name, expected):
    Z = microaggregation(name)
    measured = [100 * KMemberClustering(k, algorithm="mdav").fit(Z).inertia_ / (Z**2).sum() for k in (3, 4, 5, 10)]
    np.testing.assert_allclose(measured, expected, atol=5.1e-4)  # to three decimals
