from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.clustering import KMemberClustering, _rim, growing


def squared(X, rows, point):
    """Squared distances as the kernels add them up: column after column."""
    total = np.zeros(len(rows))
    for j in range(X.shape[1]):
        total += (X[rows, j] - point[j]) ** 2
    return total


def plain_greedy(X, k, weight):
    """The specification: method P1 in plain NumPy, one record at a time."""
    n = len(X)
    labels = np.full(n, -1)
    free = np.arange(n)
    previous = np.average(X, axis=0, weights=weight)
    for cluster in range(n // k):
        pick = free[np.argmax(squared(X, free, previous))]
        previous = X[pick]
        total, mass = weight[pick] * X[pick], weight[pick]
        labels[pick] = cluster
        free = free[free != pick]
        for _ in range(k - 1):
            pick = free[np.argmin(squared(X, free, total / mass))]
            total, mass = total + weight[pick] * X[pick], mass + weight[pick]
            labels[pick] = cluster
            free = free[free != pick]
    totals, masses = np.zeros((n // k, X.shape[1])), np.zeros(n // k)
    for i in np.flatnonzero(labels >= 0):  # sums in row order: the last digit decides near ties
        totals[labels[i]] += weight[i] * X[i]
        masses[labels[i]] += weight[i]
    for i in free:
        away = squared(totals / masses[:, None], np.arange(n // k), X[i])
        cluster = int(np.argmin(masses / (masses + weight[i]) * away))
        labels[i] = cluster
        totals[cluster] += weight[i] * X[i]
        masses[cluster] += weight[i]
    return labels


WAYS = ["scanning", "tree", "tree, small rim", "tree, then scanning"]


@pytest.fixture(params=WAYS)
def way(request, monkeypatch):
    """Force one way of finding records, whatever is faster."""
    force(request.param, monkeypatch)
    return request.param


def force(way, monkeypatch):
    if way == "scanning":
        monkeypatch.setattr(growing, "_FEW", 10**9)
        return
    monkeypatch.setattr(growing, "_FEW", 0)
    if way == "tree, then scanning":
        monkeypatch.setattr(growing, "cost_of_searching", lambda nodes, d: np.inf)
        return
    monkeypatch.setattr(growing, "cost_of_searching", lambda nodes, d: 0.0)
    if way == "tree, small rim":
        monkeypatch.setattr(_rim, "_ROOM", 8)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40)
@given(data=st.data())
def test_equals_the_plain_version_label_for_label_ties_included(way, data):
    n = data.draw(st.integers(4, 90))
    d = data.draw(st.integers(1, 5))
    k = data.draw(st.integers(2, n))
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, data.draw(st.integers(1, 5)), (n, d)) * data.draw(
        st.sampled_from([1.0, 0.1, 1e-160])
    )  # a lattice: ties everywhere
    weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    with pytest.MonkeyPatch.context() as monkeypatch:
        force(way, monkeypatch)
        labels = KMemberClustering(k).fit(X, sample_weight=weight).labels_
    np.testing.assert_array_equal(labels, plain_greedy(X, k, weight))


@pytest.mark.parametrize("d", [1, 2, 5, 13, 30])
def test_equals_the_plain_version_on_continuous_data(way, d, rng):
    X, weight = rng.standard_normal((700, d)), rng.random(700) + 0.1
    X[:50] = X[50:100]
    X[0] *= 1e12
    np.testing.assert_array_equal(KMemberClustering(7).fit(X, sample_weight=weight).labels_, plain_greedy(X, 7, weight))


@pytest.mark.parametrize("shape", ["normal", "heavy tails", "discrete", "one direction", "far from the origin"])
def test_tree_and_scanning_agree_on_many_rows(shape, rng, monkeypatch):
    n = 6000
    X = {
        "normal": rng.standard_normal((n, 4)),
        "heavy tails": rng.lognormal(0, 3, (n, 4)),
        "discrete": rng.integers(0, 4, (n, 4)).astype(float),
        "one direction": rng.standard_normal((n, 1)) * np.arange(1, 5) + 1e-9 * rng.standard_normal((n, 4)),
        "far from the origin": rng.standard_normal((n, 4)) + 1e9,
    }[shape]
    labels = []
    for way in WAYS:
        with monkeypatch.context() as patch:
            force(way, patch)
            labels.append(KMemberClustering(6).fit(X).labels_)
    for other in labels[1:]:
        np.testing.assert_array_equal(labels[0], other)


def test_row_order_does_not_matter(rng, way):
    X = rng.standard_normal((300, 3))
    order = rng.permutation(300)
    a, b = KMemberClustering(5).fit(X), KMemberClustering(5).fit(X[order])
    np.testing.assert_array_equal(a.labels_[order], b.labels_)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("CASCrefmicrodata.csv", [5.405, 7.228, 8.750, 14.430]), ("Tarragona.csv", [15.548, 19.063, 22.721, 36.969])],
)
def test_published_information_loss(microaggregation, name, expected):
    Z = microaggregation(name)
    assert Z.shape[1] == 13
    measured = [100 * KMemberClustering(k).fit(Z).inertia_ / (Z**2).sum() for k in (3, 4, 5, 10)]
    np.testing.assert_allclose(measured, expected, atol=1e-3)


def test_progress_is_told_often_and_can_interrupt(rng, monkeypatch, way):
    monkeypatch.setattr(growing, "_WORK_PER_CALL", 1e3)
    seen = []
    KMemberClustering(5, progress=seen.append).fit(rng.standard_normal((2003, 3)))
    assert len(seen) > 5

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KMemberClustering(5, progress=interrupt).fit(rng.standard_normal((200, 3)))


def test_results_do_not_depend_on_the_size_of_a_call(rng, monkeypatch, way):
    X = rng.integers(0, 5, (400, 2)).astype(float)
    whole = KMemberClustering(4).fit(X).labels_
    monkeypatch.setattr(growing, "_WORK_PER_CALL", 1)
    np.testing.assert_array_equal(KMemberClustering(4).fit(X).labels_, whole)


def test_scanning_takes_over_where_a_tree_looks_at_nearly_everything(rng, monkeypatch):
    from shoal.clustering import _greedy

    scanned = []
    scan = _greedy.grow_by_scanning

    def watch(free, state, k, first, last, labels):
        scanned.append(last - first)
        scan(free, state, k, first, last, labels)

    monkeypatch.setattr(_greedy, "grow_by_scanning", watch)
    KMemberClustering(5).fit(rng.standard_normal((4000, 30)))
    assert sum(scanned) > 600
    scanned.clear()
    KMemberClustering(5).fit(rng.standard_normal((4000, 2)))
    assert sum(scanned) < 300
