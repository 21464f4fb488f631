from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from shoal.clustering import KMemberClustering
from shoal.clustering.kmember import check_sizes
from shoal.errors import CheckError, InputError

ALGORITHMS = ["greedy", "mdav", "auto", "refined", "flow"]


def make(k, algorithm, **options):
    """A model of this algorithm, with few sweeps."""
    limit = {"max_iter": 12} if algorithm == "refined" else {}
    return KMemberClustering(k, algorithm=algorithm, random_state=0, **limit, **options)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=40)
@given(
    n=st.integers(2, 60),
    d=st.integers(1, 3),
    seed=st.integers(0, 1000),
    shape=st.sampled_from(["normal", "constant", "duplicates", "outlier"]),
    data=st.data(),
)
def test_no_cluster_is_ever_under_k(algorithm, n, d, seed, shape, data):
    k = data.draw(st.one_of(st.integers(2, n), st.just(n), st.just(max(2, (n + 1) // 2))))  # n = k, n = 2k - 1
    X = np.random.default_rng(seed).standard_normal((n, d))
    X = {"normal": X, "constant": X * 0 + 3, "duplicates": X[np.arange(n) // 3], "outlier": X}[shape]
    X[0] *= 1e12 if shape == "outlier" else 1
    model = make(k, algorithm).fit(X)
    assert model.cluster_sizes_.min() >= k
    assert model.cluster_sizes_.sum() == n
    assert model.n_clusters_ <= n // k
    if algorithm in ("greedy", "mdav", "flow"):
        assert model.n_clusters_ == n // k
    centres = np.array([X[model.labels_ == c].mean(axis=0) for c in range(model.n_clusters_)])
    expected = ((X - centres[model.labels_]) ** 2).sum()
    assert model.inertia_ == pytest.approx(expected, rel=1e-9, abs=1e-12 * np.abs(X).max())


def test_numbers_whose_squares_overflow(rng):
    X = rng.standard_normal((50, 2))
    model = KMemberClustering(5).fit(X * 1e300)
    np.testing.assert_array_equal(model.labels_, KMemberClustering(5).fit(X).labels_)
    assert np.isfinite(model.cluster_centers_).all()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_inertia_and_centres_are_those_of_the_labels(algorithm, rng):
    X, weight = rng.standard_normal((200, 3)), rng.random(200) + 0.5
    model = make(6, algorithm).fit(X, sample_weight=weight)
    centres = [
        np.average(X[model.labels_ == c], axis=0, weights=weight[model.labels_ == c]) for c in range(model.n_clusters_)
    ]
    np.testing.assert_allclose(model.cluster_centers_, centres, rtol=1e-12)
    expected = (weight * ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)).sum()
    assert model.inertia_ == pytest.approx(expected, rel=1e-9)


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


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "optimal"])
@pytest.mark.parametrize("n", [5, 23, 2000])
def test_progress_goes_from_0_to_1(algorithm, n, rng):
    seen = []
    if algorithm == "flow" and n == 2000:
        n = 50
    make(4, algorithm, progress=seen.append).fit(rng.standard_normal((n, 1)))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 1)


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), n=st.integers(6, 60), calls=st.integers(0, 30), data=st.data())
def test_no_cluster_is_ever_under_k_whatever_stops_the_search(seed, n, calls, data):
    k = data.draw(st.integers(2, n // 2))
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((n, 2)), rng.choice([0.0, 1e-6, 1.0, 1e6], n) + (np.arange(n) == 0)
    X[-1] *= data.draw(st.sampled_from([1, 1e12]))
    seen = []

    def progress(share):
        seen.append(share)
        if len(seen) > calls and 0.1 < share < 1:
            raise KeyboardInterrupt

    limit = data.draw(st.sampled_from([{"time_limit": 0.0}, {"time_limit": 1e-3}, {"max_iter": 40}]))
    model = KMemberClustering(k, algorithm="refined", random_state=0, progress=progress, **limit)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X, sample_weight=weight)
    assert model.cluster_sizes_.min() >= k
    assert model.inertia_ <= KMemberClustering(k).fit(X, sample_weight=weight).inertia_ * (1 + 1e-12)


def test_a_record_of_weight_0_counts_towards_k_but_pulls_no_centre():
    model = KMemberClustering(3).fit([[0.0], [1.0], [9.0]], sample_weight=[1, 1, 0])
    assert model.cluster_sizes_.tolist() == [3]
    assert model.cluster_centers_[0, 0] == 0.5
    far = KMemberClustering(3).fit([[0.0], [1.0], [1e12]], sample_weight=[1, 1, 0])
    assert (far.cluster_centers_[0, 0], far.inertia_) == (0.5, 0.5)
    nobody = KMemberClustering(2).fit([[0.0], [1.0], [8.0], [9.0]], sample_weight=[1, 1, 0, 0])
    assert sorted(nobody.cluster_centers_[:, 0]) == [0.5, 8.5]


@pytest.mark.parametrize("labels", [[0, 0, 1], [0, 0, -1], [1, 1, 1]])
def test_a_cluster_under_k_fails_closed(labels):
    with pytest.raises(CheckError, match="nothing is released"):
        check_sizes(np.array(labels), 2)


def test_options_that_do_not_go_together():
    X = np.ones((9, 1))
    with pytest.raises(InputError, match="time_limit goes with algorithm='refined' only, not with 'auto'"):
        KMemberClustering(2, algorithm="auto", time_limit=1.0).fit(X)
    with pytest.raises(InputError, match="max_iter=2.5 must be a whole number of sweeps"):
        KMemberClustering(2, algorithm="refined", max_iter=2.5).fit(X)
    for jobs in (0, "a", 1.5):
        with pytest.raises(InputError, match="n_jobs=.* must be a whole number"):
            KMemberClustering(2, n_jobs=jobs).fit(X)
    for limit in (-1, np.inf, np.nan, "3", True, 10**400):
        with pytest.raises(InputError, match="time_limit=.* must be a number of seconds"):
            KMemberClustering(2, algorithm="refined", time_limit=limit).fit(X)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")
def test_memory_is_bounded():
    """No quadratic memory: 300,000 rows of 10 columns in under 2 GB, and the greedy in under 100 bytes a row at 5."""
    code = """
import sys, numpy as np
from shoal.clustering import KMemberClustering
def peak():  # not getrusage, which counts the peak of the process that started this one too
    return int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
algorithm, n, d = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
KMemberClustering(10, algorithm=algorithm).fit(np.random.default_rng(0).standard_normal((2000, d)))
X = np.random.default_rng(0).standard_normal((n, d))
before = peak()
assert KMemberClustering(10, algorithm=algorithm).fit(X).cluster_sizes_.min() >= 10
after = peak()
print(after, (after - before) * 1024 / n)
"""
    for algorithm in ("greedy", "mdav", "auto"):
        command = [sys.executable, "-c", code, algorithm, "300000", "10"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert float(done.stdout.split()[0]) < 2e6  # kilobytes, of the whole process
    command = [sys.executable, "-c", code, "greedy", "1000000", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[1]) < 100


@parametrize_with_checks([make(10, algorithm) for algorithm in ALGORITHMS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_notebook_shows_what_was_found():
    estimator = KMemberClustering(k=5)
    assert "clusters" not in estimator._repr_html_()
    points = np.random.default_rng(0).normal(size=(53, 2))
    shown = estimator.fit(points)._repr_html_()
    assert f"{estimator.n_clusters_}, sizes {estimator.cluster_sizes_.min()} to" in shown
    assert "within-cluster sum of squares" in estimator._repr_mimebundle_()["text/html"]
