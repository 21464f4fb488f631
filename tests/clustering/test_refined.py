from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from shoal.clustering import KMemberClustering, _refined, neighbours, refined
from shoal.clustering._refined import Problem, anneal, centre, descend, join_cost, leave_cost, make_partition, swap_cost
from shoal.clustering.distortion import squared_distances
from shoal.clustering.neighbours import find_neighbours


def recomputed(X, weight, labels):
    return weight @ squared_distances(X, weight, np.unique(labels, return_inverse=True)[1])


@given(seed=st.integers(0, 10_000), d=st.integers(1, 6), scale=st.sampled_from([1e-3, 1.0, 1e6]))
def test_what_a_move_and_a_swap_cost_is_the_difference_of_recomputed_errors(seed, d, scale):
    rng = np.random.default_rng(seed)
    X, weight = scale * rng.standard_normal((9, d)), rng.random(9) + 0.1
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
    centres = [np.average(X[labels == c], axis=0, weights=weight[labels == c]) for c in (0, 1)]
    mass = [weight[labels == c].sum() for c in (0, 1)]
    before = recomputed(X, weight, labels)
    i, q = 2, 7
    moved, swapped = labels.copy(), labels.copy()
    moved[i] = 1
    swapped[[i, q]] = 1, 0
    cost = leave_cost(X[i], weight[i], centres[0], mass[0]) + join_cost(X[i], weight[i], centres[1], mass[1])
    assert cost == pytest.approx(recomputed(X, weight, moved) - before, rel=1e-9, abs=1e-12 * before)
    cost = swap_cost(X[i], weight[i], X[q], weight[q], centres[0], mass[0], centres[1], mass[1])
    assert cost == pytest.approx(recomputed(X, weight, swapped) - before, rel=1e-9, abs=1e-12 * before)


def make_problem(X, weight, k, rng):
    graph, squared = find_neighbours(X, min(3 * k, len(X) - 1), rng)
    return Problem(X, weight, k, graph, squared + 1e-9, _refined.make_thresholds())


def check(now, k, n):
    """Whatever the search did, its books are in order."""
    used = now.size[now.size > 0]
    assert used.min() >= k
    assert used.max() <= 2 * k - 1
    assert used.sum() == n
    assert now.empty[0] == (now.size == 0).sum()
    assert set(now.empty[1 : 1 + now.empty[0]]) == set(np.flatnonzero(now.size == 0))
    for cluster in np.flatnonzero(now.size):
        members = now.members[cluster, : now.size[cluster]]
        assert (now.labels[members] == cluster).all()
        np.testing.assert_array_equal(now.place[members], np.arange(len(members)))


@pytest.mark.parametrize("temperature", [0.0, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_annealing_keeps_its_books_and_says_truly_how_the_error_changed(temperature, k, rng):
    n = 400
    X, weight = rng.standard_normal((n, 3)), rng.random(n) + 0.1
    task = make_problem(X, weight, k, rng)
    now = make_partition(KMemberClustering(k).fit(X).labels_, k, 3)
    before = centre(task, now)
    grown = anneal(task, now, 0, n, 200, temperature, 1.0, np.array([12345], dtype=np.uint64))
    check(now, k, n)
    running = now.centre[now.size > 0].copy()
    after = centre(task, now)
    np.testing.assert_allclose(running, now.centre[now.size > 0], atol=1e-9)  # centres did not drift
    assert after == pytest.approx(before + grown, rel=1e-9)
    assert after == pytest.approx(recomputed(X, weight, now.labels), rel=1e-9)
    if temperature == 0:
        assert after < before
    elif temperature > 1:
        assert (now.size > 0).sum() != n // k  # clusters were dissolved


def test_descent_ends_where_no_move_and_no_swap_with_a_neighbour_helps(rng):
    n, k = 120, 3
    X, weight = rng.standard_normal((n, 2)), np.ones(n)
    task = make_problem(X, weight, k, rng)
    now = make_partition(KMemberClustering(k).fit(X).labels_, k, 2)
    error = centre(task, now)
    while (change := descend(task, now, 0, n)) < 0:
        assert centre(task, now) == pytest.approx(error + change, rel=1e-9)
        error = centre(task, now)
        check(now, k, n)
    for i in range(n):
        for q in task.graph[i]:
            trial = now.labels.copy()
            trial[[i, q]] = trial[[q, i]]
            assert recomputed(X, weight, trial) >= error * (1 - 1e-9)
            if now.size[now.labels[i]] > k and now.size[now.labels[q]] < 2 * k - 1:
                trial = now.labels.copy()
                trial[i] = trial[q]
                assert recomputed(X, weight, trial) >= error * (1 - 1e-9)


@settings(max_examples=25)
@given(
    n=st.integers(4, 80),
    d=st.integers(1, 4),
    seed=st.integers(0, 1000),
    shape=st.sampled_from(["normal", "constant", "duplicates", "outlier", "heavy"]),
    data=st.data(),
)
def test_never_worse_than_its_start(n, d, seed, shape, data):
    k = data.draw(st.integers(2, n))
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X = {"constant": X * 0 + 3, "duplicates": X[np.arange(n) // 3], "heavy": np.exp(5 * X)}.get(shape, X)
    X[0] *= 1e12 if shape == "outlier" else 1
    weight = 10 ** rng.uniform(-8, 8, n) if seed % 2 else None
    start = KMemberClustering(k).fit(X, sample_weight=weight)
    for algorithm, limit in (("auto", {}), ("refined", {"max_iter": 30}), ("refined", {"max_iter": 0})):
        model = KMemberClustering(k, algorithm=algorithm, random_state=seed, **limit).fit(X, sample_weight=weight)
        assert model.inertia_ <= start.inertia_
        assert model.cluster_sizes_.min() >= k


@pytest.mark.parametrize("algorithm", ["auto", "refined"])
@pytest.mark.parametrize("shape", [(3000, 3), (6000, 9)])
def test_same_seed_same_labels_whatever_the_threads(algorithm, shape, rng, monkeypatch):
    monkeypatch.setattr(neighbours, "_BLOCK", 512)  # so that there is work for several threads
    X = rng.standard_normal(shape)
    limit = {"max_iter": 20} if algorithm == "refined" else {}

    def fit(seed, n_jobs):
        return KMemberClustering(4, algorithm=algorithm, random_state=seed, n_jobs=n_jobs, **limit).fit(X).labels_

    one = fit(0, 1)
    np.testing.assert_array_equal(one, fit(0, 2))
    np.testing.assert_array_equal(one, fit(0, None))
    assert (one != fit(1, 1)).any()


def test_units_do_not_matter(rng):
    X, weight = rng.standard_normal((1500, 3)), rng.random(1500) + 0.1
    model = KMemberClustering(4, algorithm="refined", max_iter=60, random_state=0)
    labels = model.fit(X, sample_weight=weight).labels_
    np.testing.assert_array_equal(model.fit(X * 2.0**30, sample_weight=weight).labels_, labels)
    np.testing.assert_array_equal(model.fit(X, sample_weight=weight * 2.0**14).labels_, labels)


def test_fewer_clusters_where_that_is_better():
    """Twenty groups of four far apart and k = 3: floor(n / k) = 26 clusters tear groups apart."""
    X = np.repeat(np.arange(20.0) * 100, 4)[:, None] + np.tile([0, 0.1, 0.2, 0.3], 20)[:, None]
    start = KMemberClustering(3).fit(X)
    model = KMemberClustering(3, algorithm="refined", max_iter=200, random_state=0).fit(X)
    assert start.n_clusters_ == 26
    assert model.n_clusters_ == 20
    assert model.inertia_ == pytest.approx(20 * 0.05)


@pytest.mark.parametrize(
    ("name", "descent"),
    [("CASCrefmicrodata.csv", [5.070, 6.670, 7.846, 11.967]), ("Tarragona.csv", [15.150, 17.529, 20.573, 30.723])],
)
def test_better_than_greedy_and_descent_in_the_reference_sets(microaggregation, name, descent):
    Z = microaggregation(name)
    for k, bound in zip((3, 4, 5, 10), descent, strict=True):
        model = KMemberClustering(k, algorithm="refined", max_iter=2000, random_state=0).fit(Z)
        assert 100 * model.inertia_ / (Z**2).sum() < bound


def test_auto_improves_the_greedy_clusters_noticeably(rng):
    X = rng.standard_normal((20_000, 4))
    start, model = KMemberClustering(5).fit(X), KMemberClustering(5, algorithm="auto", random_state=0).fit(X)
    assert model.inertia_ < 0.98 * start.inertia_


def test_a_time_limit_is_kept_and_the_start_is_never_lost(rng):
    X = rng.standard_normal((5000, 4))
    start = KMemberClustering(5).fit(X)
    none = KMemberClustering(5, algorithm="refined", time_limit=0).fit(X)
    np.testing.assert_array_equal(none.labels_, start.labels_)
    assert KMemberClustering(5, algorithm="refined", time_limit=0.5, random_state=0).fit(X).inertia_ < start.inertia_


def test_nothing_is_begun_once_the_time_is_over(rng, monkeypatch):
    """With a clock that ticks when it is read, the search stops at the tick it should, whatever the machine."""
    ticks, kernels = iter(np.arange(0, 1e6, 1.0)), []
    monkeypatch.setattr(refined.time, "monotonic", lambda: float(next(ticks)))
    monkeypatch.setattr(refined, "_CHUNK", 500)
    walk_over = refined._Walk._pass_over

    def watch(self, kernel, chunk, *how):
        kernels.append((float(next(ticks)), kernel))
        return walk_over(self, kernel, chunk, *how)

    monkeypatch.setattr(refined._Walk, "_pass_over", watch)
    model = KMemberClustering(5, algorithm="refined", time_limit=300.0, max_iter=10**6, random_state=0)
    model.fit(rng.standard_normal((3000, 3)))
    assert len({kernel for _, kernel in kernels}) == 2
    assert max(tick for tick, _ in kernels) <= 305
    assert float(next(ticks)) < 330


def interrupt_after(calls):
    seen = []

    def progress(share):
        seen.append(share)
        if len(seen) > calls and share > 0.1:
            raise KeyboardInterrupt

    return progress


def test_a_late_interruption_loses_little(rng):
    X = rng.standard_normal((3000, 3))
    shares = []

    def progress(share):
        shares.append(share)
        if share > 0.95:
            raise KeyboardInterrupt

    options = {"algorithm": "refined", "max_iter": 900, "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        stopped = KMemberClustering(4, progress=progress, **options).fit(X).inertia_
    whole, start = KMemberClustering(4, **options).fit(X).inertia_, KMemberClustering(4).fit(X).inertia_
    assert stopped < start - 0.9 * (start - whole)


@pytest.mark.parametrize("calls", [1, 5, 60])
def test_an_interruption_keeps_the_best_so_far(calls, rng):
    X = rng.standard_normal((3000, 3))
    model = KMemberClustering(4, algorithm="refined", max_iter=5000, random_state=0, progress=interrupt_after(calls))
    with pytest.warns(ConvergenceWarning, match="best clusters so far"):
        model.fit(X)
    assert model.interrupted_
    assert model.cluster_sizes_.min() >= 4
    assert model.inertia_ <= KMemberClustering(4).fit(X).inertia_


def test_a_real_ctrl_c(rng, ctrl_c):
    X = rng.standard_normal((2000, 3))
    KMemberClustering(4, algorithm="refined", max_iter=10).fit(X)  # compiled
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = KMemberClustering(4, algorithm="refined", time_limit=60).fit(X)
    assert model.interrupted_
    assert model.inertia_ < KMemberClustering(4).fit(X).inertia_


def test_as_many_sweeps_as_asked_for(rng):
    X = rng.standard_normal((1000, 2))
    for sweeps in (0, 1, 17, 100, 999, 1001):
        assert KMemberClustering(5, algorithm="refined", max_iter=sweeps).fit(X).n_iter_ == sweeps
    assert KMemberClustering(5, algorithm="auto").fit(X).n_iter_ == refined.auto_sweeps(1000, 2)


def test_an_outlier_hides_no_gain_elsewhere(rng):
    X = rng.standard_normal((1000, 3))
    bulk = slice(10, None)
    X[:10] = 1e12 + 1e-3 * X[:10]
    start = KMemberClustering(5).fit(X)
    model = KMemberClustering(5, algorithm="refined", max_iter=200, random_state=0).fit(X)
    near = [recomputed(X[bulk], np.ones(990), fitted.labels_[bulk]) for fitted in (start, model)]
    assert near[1] < 0.95 * near[0]


def test_weights_of_any_size_break_nothing(rng):
    X = rng.standard_normal((1600, 2))
    for low, high in ((150, 200), (-300, 300), (-300, -290), (308, 308.2)):
        weight = 10 ** rng.uniform(low, high, 1600)
        for algorithm in ("greedy", "auto"):
            model = KMemberClustering(3, algorithm=algorithm, random_state=0)
            assert model.fit(X[:100], sample_weight=weight[:100]).cluster_sizes_.min() >= 3
            assert model.fit(X, sample_weight=weight).cluster_sizes_.min() >= 3
    weight = np.where(np.arange(1600) % 2, 5e-324, 0.0)
    assert KMemberClustering(3).fit(X, sample_weight=weight).cluster_sizes_.min() >= 3


@pytest.mark.parametrize("k", [130, 500])
def test_large_k_and_many_columns(k, rng):
    """Rows on a line look the same from everywhere: all windows show the same neighbours."""
    X = rng.standard_normal((5200, 1)) * np.arange(1, 8)
    model = KMemberClustering(k, algorithm="refined", max_iter=5, random_state=0).fit(X)
    assert model.cluster_sizes_.min() >= k


def test_the_budget_of_auto_depends_on_rows_and_columns_only():
    assert refined.auto_sweeps(10**6, 5) == 20
    assert refined.auto_sweeps(10**5, 5) == 21
    assert refined.auto_sweeps(1000, 5) == 120
    assert refined.auto_sweeps(10**5, 16) == 42
    assert refined.default_sweeps(1000) == 50_000
    assert refined.default_sweeps(10**6) == 200
