from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.linear_model import LinearRegression

from shoal import Anonymizer
from shoal.errors import InputError
from shoal.recovery import rank_recover, transport_recover


def plain_rank(dithered, X):
    """The specification: sort, hand out, and do the same inside every group of equal values."""
    n, d = X.shape
    index = np.empty(n, dtype=int)

    def recurse(points, rows, j):
        points = points[np.argsort(dithered[points, j], kind="stable")]
        rows = rows[np.argsort(X[rows, j], kind="stable")]
        if j == d - 1:
            index[points] = rows
            return
        for value in np.unique(X[rows, j]):
            same = X[rows, j] == value
            recurse(points[same], rows[same], j + 1)

    recurse(np.arange(n), np.arange(n), 0)
    return X[index]


@given(n=st.integers(1, 60), d=st.integers(1, 4), levels=st.integers(1, 5), seed=st.integers(0, 1000))
def test_rank_is_its_specification(n, d, levels, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d))
    dithered = rng.standard_normal((n, d))
    np.testing.assert_array_equal(rank_recover(dithered, X), plain_rank(dithered, X))


@pytest.mark.parametrize("recover", [rank_recover, transport_recover])
@pytest.mark.parametrize("n", [1, 2, 500, 1500])
def test_the_result_is_a_permutation_of_the_rows(recover, n, rng):
    X = rng.integers(0, 4, (n, 3)).astype(float)
    index = recover(rng.standard_normal((n, 3)), X, return_index=True)
    np.testing.assert_array_equal(np.sort(index), np.arange(n))
    np.testing.assert_array_equal(recover(X, X), X)


def test_ranks_of_one_column_are_the_sorted_column(rng):
    x, dithered = rng.standard_normal((50, 1)), rng.standard_normal((50, 1))
    got = rank_recover(dithered, x)
    np.testing.assert_array_equal(got[np.argsort(dithered[:, 0])], np.sort(x, axis=0))


def pair(rng, n, d, discrete):
    X = rng.standard_normal((n, d))
    X = np.round(1.3 * X) / 1.3 if discrete else X
    return X[rng.permutation(n)] + 0.7 * rng.standard_normal((n, d)), X


def cost(dithered, X, index):
    return ((dithered - X[index]) ** 2).sum()


@pytest.mark.parametrize(("d", "discrete"), [(8, False), (8, True), (3, True)])
def test_transport_is_within_10_percent_of_the_exact_assignment(rng, d, discrete):
    dithered, X = pair(rng, 4000, d, discrete)
    exact = cost(dithered, X, linear_sum_assignment(cdist(dithered, X, "sqeuclidean"))[1])
    ours = cost(dithered, X, transport_recover(dithered, X, return_index=True))
    assert exact <= ours * (1 + 1e-12)
    assert ours < 1.10 * exact


def test_transport_in_a_single_leaf_is_exact(rng):
    dithered, X = pair(rng, 400, 5, discrete=False)
    exact = cost(dithered, X, linear_sum_assignment(cdist(dithered, X, "sqeuclidean"))[1])
    assert cost(dithered, X, transport_recover(dithered, X, return_index=True)) == pytest.approx(exact, rel=1e-12)


def test_every_round_shortens_the_total(rng):
    dithered, X = pair(rng, 3000, 4, discrete=True)
    totals = [
        cost(dithered, X, transport_recover(dithered, X, leaf_size=64, rounds=r, return_index=True)) for r in range(5)
    ]
    assert all(a > b for a, b in itertools.pairwise(totals))


def test_transport_does_not_depend_on_threads_and_reports_progress(rng):
    dithered, X = pair(rng, 3000, 4, discrete=True)
    seen = []
    one = transport_recover(dithered, X, leaf_size=32, n_jobs=1, return_index=True, progress=seen.append)
    four = transport_recover(dithered, X, leaf_size=32, n_jobs=4, return_index=True)
    np.testing.assert_array_equal(one, four)
    assert seen == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_transport_keeps_the_late_columns_that_ranks_lose():
    """Eight ordinal columns, n = 8,000, k = 5: y's dependence on the last column (method S3b)."""
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((8000, 1))
    X = np.clip(np.round(1.5 * (0.5 * factor + rng.standard_normal((8000, 8)))), -4, 4)
    y = X.sum(axis=1) + 3 * rng.standard_normal(8000)
    truth = LinearRegression().fit(X, y)
    kept = {}
    for recovery in ("rank", "transport"):
        hidden = Anonymizer(k=5, recovery=recovery, random_state=0).fit_transform(X)
        model = LinearRegression().fit(hidden, y)
        kept[recovery] = model.coef_[-1] / truth.coef_[-1], model.score(hidden, y) / truth.score(X, y)
    assert kept["rank"][0] < 0.35
    assert kept["transport"][0] > 0.6
    assert kept["transport"][1] > kept["rank"][1] + 0.1


@pytest.mark.slow
def test_a_million_rows():
    rng = np.random.default_rng(0)
    dithered, X = pair(rng, 1_000_000, 5, discrete=False)
    index = transport_recover(dithered, X, return_index=True)
    assert (np.bincount(index) == 1).all()
    assert cost(dithered, X, index) < 0.35 * 1_000_000


def test_tiny_leaves_and_huge_numbers(rng):
    dithered, X = pair(rng, 50, 2, discrete=False)
    for leaf_size in (1, 2):
        assert sorted(transport_recover(dithered, X, leaf_size=leaf_size, return_index=True)) == list(range(50))
    np.testing.assert_array_equal(
        transport_recover(dithered * 1e200, X * 1e200, return_index=True),
        transport_recover(dithered, X, return_index=True),
    )


@pytest.mark.parametrize("recover", [rank_recover, transport_recover])
def test_errors(recover):
    with pytest.raises(InputError, match="same shape"):
        recover([[1.0]], [[1.0], [2.0]])
    with pytest.raises(InputError, match="finite"):
        recover([[np.nan]], [[1.0]])
