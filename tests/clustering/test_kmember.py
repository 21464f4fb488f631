from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from shoal.clustering import KMemberClustering
from shoal.clustering.kmember import check_sizes
from shoal.errors import CheckError, InputError


def plain_greedy(X, k, weight):
    """The specification: method P1 in plain NumPy, one record at a time."""

    def squared(rows, point):
        total = np.zeros(len(rows))
        for j in range(X.shape[1]):
            total += (X[rows, j] - point[j]) ** 2
        return total

    n = len(X)
    labels = np.full(n, -1)
    free = np.arange(n)
    previous = np.average(X, axis=0, weights=weight)
    for cluster in range(n // k):
        pick = free[np.argmax(squared(free, previous))]
        previous = X[pick]
        total, mass = weight[pick] * X[pick], weight[pick]
        labels[pick] = cluster
        free = free[free != pick]
        for _ in range(k - 1):
            pick = free[np.argmin(squared(free, total / mass))]
            total, mass = total + weight[pick] * X[pick], mass + weight[pick]
            labels[pick] = cluster
            free = free[free != pick]
    members = [labels == cluster for cluster in range(n // k)]
    totals = np.array([weight[m] @ X[m] for m in members])
    masses = np.array([weight[m].sum() for m in members])
    for i in free:
        raised = masses / (masses + weight[i]) * ((X[i] - totals / masses[:, None]) ** 2).sum(axis=1)
        cluster = int(np.argmin(raised))
        labels[i] = cluster
        totals[cluster] += weight[i] * X[i]
        masses[cluster] += weight[i]
    return labels


@given(data=st.data())
def test_equals_the_plain_version_label_for_label_ties_included(data):
    n = data.draw(st.integers(4, 70))
    d = data.draw(st.integers(1, 4))
    k = data.draw(st.integers(2, n))
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    X = rng.integers(0, data.draw(st.integers(1, 4)), (n, d)).astype(float)  # a lattice: ties everywhere
    weight = rng.integers(1, 4, n).astype(float) if seed % 2 else np.ones(n)
    np.testing.assert_array_equal(KMemberClustering(k).fit(X, sample_weight=weight).labels_, plain_greedy(X, k, weight))


def test_equals_the_plain_version_on_continuous_data_across_blocks(rng):
    X, weight = rng.standard_normal((900, 3)), rng.random(900) + 0.1
    np.testing.assert_array_equal(KMemberClustering(7).fit(X, sample_weight=weight).labels_, plain_greedy(X, 7, weight))


@given(
    n=st.integers(2, 60),
    d=st.integers(1, 3),
    seed=st.integers(0, 1000),
    shape=st.sampled_from(["normal", "constant", "duplicates", "outlier"]),
    data=st.data(),
)
def test_no_cluster_is_ever_under_k(n, d, seed, shape, data):
    k = data.draw(st.integers(2, n))
    X = np.random.default_rng(seed).standard_normal((n, d))
    X = {"normal": X, "constant": X * 0 + 3, "duplicates": X[np.arange(n) // 3], "outlier": X}[shape]
    X[0] *= 1e12 if shape == "outlier" else 1
    model = KMemberClustering(k).fit(X)
    assert model.cluster_sizes_.min() >= k
    assert model.n_clusters_ == n // k
    assert model.cluster_sizes_.sum() == n


def test_numbers_whose_squares_overflow(rng):
    X = rng.standard_normal((50, 2))
    model = KMemberClustering(5).fit(X * 1e300)
    np.testing.assert_array_equal(model.labels_, KMemberClustering(5).fit(X).labels_)
    assert np.isfinite(model.cluster_centers_).all()


def test_row_order_does_not_matter(rng):
    X = rng.standard_normal((300, 3))
    order = rng.permutation(300)
    a, b = KMemberClustering(5).fit(X), KMemberClustering(5).fit(X[order])
    np.testing.assert_array_equal(a.labels_[order], b.labels_)


def test_inertia_and_centres_are_those_of_the_labels(rng):
    X, weight = rng.standard_normal((200, 3)), rng.random(200) + 0.5
    model = KMemberClustering(6).fit(X, sample_weight=weight)
    centres = [
        np.average(X[model.labels_ == c], axis=0, weights=weight[model.labels_ == c]) for c in range(model.n_clusters_)
    ]
    np.testing.assert_allclose(model.cluster_centers_, centres, rtol=1e-12)
    expected = (weight * ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)).sum()
    assert model.inertia_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("CASCrefmicrodata.csv", [5.405, 7.228, 8.750, 14.430]), ("Tarragona.csv", [15.548, 19.063, 22.721, 36.969])],
)
def test_published_information_loss(microaggregation, name, expected):
    Z = microaggregation(name)
    assert Z.shape[1] == 13
    measured = [100 * KMemberClustering(k).fit(Z).inertia_ / (Z**2).sum() for k in (3, 4, 5, 10)]
    np.testing.assert_allclose(measured, expected, atol=2e-3)


def test_progress_goes_from_0_to_1_and_can_interrupt(rng, monkeypatch):
    monkeypatch.setattr("shoal.clustering.greedy._WORK_PER_CALL", 1e4)
    seen = []
    KMemberClustering(5, progress=seen.append).fit(rng.standard_normal((200, 3)))
    assert len(seen) > 5
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)

    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        KMemberClustering(5, progress=interrupt).fit(rng.standard_normal((200, 3)))


def test_results_do_not_depend_on_the_size_of_a_call(rng, monkeypatch):
    X = rng.integers(0, 5, (400, 2)).astype(float)
    whole = KMemberClustering(4).fit(X).labels_
    monkeypatch.setattr("shoal.clustering.greedy._WORK_PER_CALL", 1)
    np.testing.assert_array_equal(KMemberClustering(4).fit(X).labels_, whole)


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, "5", None, True])
def test_bad_k(k):
    with pytest.raises(InputError, match="whole number of at least 2"):
        KMemberClustering(k).fit([[1.0], [2.0], [3.0]])


def test_errors_say_what_to_do():
    X = np.ones((3, 1))
    with pytest.raises(InputError, match="k=5 needs at least 5 rows, but the table has 3 rows; lower k or pool tables"):
        KMemberClustering(5).fit(X)
    with pytest.raises(InputError, match="did you mean 'greedy'"):
        KMemberClustering(2, algorithm="greddy").fit(X)
    with pytest.raises(ValueError, match="(?i)sample weights.*zero|zero.*sample.weight"):
        KMemberClustering(2).fit(X, sample_weight=[0.0, 0.0, 0.0])


def test_a_record_of_weight_0_counts_towards_k_but_pulls_no_centre():
    model = KMemberClustering(3).fit([[0.0], [1.0], [9.0]], sample_weight=[1, 1, 0])
    assert model.cluster_sizes_.tolist() == [3]
    assert model.cluster_centers_[0, 0] == pytest.approx(0.5)


@pytest.mark.parametrize("labels", [[0, 0, 1], [0, 0, -1], [1, 1, 1]])
def test_a_cluster_under_k_fails_closed(labels):
    with pytest.raises(CheckError, match="nothing is released"):
        check_sizes(np.array(labels), 2)


@parametrize_with_checks([KMemberClustering(k=10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
