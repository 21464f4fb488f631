from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from shoal.dither import draw_cells
from shoal.errors import InputError
from shoal.recovery import EmpiricalRosenblatt


def plain_inverse(X, weight, u):
    """The specification: the generalised inverse of the paper, by its definition."""
    result = []
    for row in u:
        prefix = []
        for quantile in row:
            fits = np.ones(len(X), dtype=bool)
            for j, v in enumerate(prefix):
                fits &= X[:, j] == v
            values = np.unique(X[fits, len(prefix)])
            below = [weight[fits & (X[:, len(prefix)] <= v)].sum() for v in values]
            reached = [v for v, mass in zip(values, below, strict=True) if mass >= quantile * weight[fits].sum()]
            prefix.append(reached[0] if reached else values[-1])
        result.append(prefix)
    return np.array(result)


@given(n=st.integers(1, 40), d=st.integers(1, 4), levels=st.integers(1, 4), seed=st.integers(0, 1000))
def test_generalised_inverse(n, d, levels, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d))
    weight = 2.0 ** rng.integers(-2, 3, n)
    u = rng.integers(0, 65, (20, d)) / 64  # dyadic: sums are exact, so borders are hit exactly
    got = EmpiricalRosenblatt().fit(X, weight).inverse_transform(u)
    np.testing.assert_array_equal(got, plain_inverse(X, weight, u))


def test_uniforms_become_the_weighted_distribution(rng):
    X = rng.integers(0, 3, (60, 2))
    weight = rng.random(60)
    drawn = EmpiricalRosenblatt().fit(X, weight).inverse_transform(rng.random((20_000, 2)))
    expected = np.bincount(X @ [3, 1], weights=weight, minlength=9) / weight.sum()
    assert chisquare(np.bincount(drawn @ [3, 1], minlength=9), 20_000 * expected).pvalue > 1e-4


def test_rounding_does_not_skip_a_value():
    target = EmpiricalRosenblatt().fit(np.arange(1, 101)[:, None])
    np.testing.assert_array_equal(target.inverse_transform(np.arange(1, 101)[:, None] / 100).ravel(), np.arange(1, 101))
    assert EmpiricalRosenblatt().fit([[1], [2]], [1e308, 1e308]).inverse_transform([[0.4], [0.6]]).tolist() == [
        [1],
        [2],
    ]


def test_records_of_weight_0_are_never_drawn():
    got = EmpiricalRosenblatt().fit([[0], [1], [2]], [0.0, 1.0, 0.0]).inverse_transform([[0.0], [0.5], [1.0]])
    assert got.ravel().tolist() == [1, 1, 1]


@given(seed=st.integers(0, 10_000), n=st.integers(4, 60), d=st.integers(1, 4))
def test_theorem_1_same_cell_in_same_value_out(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, d))
    labels = np.arange(n) % 2
    dithered = draw_cells(X, labels, rng)
    target = EmpiricalRosenblatt().fit(X)
    received = target.inverse_transform(target.transform(dithered))
    np.testing.assert_array_equal(received, np.floor(dithered))


def test_forward_transform_is_the_mixture_over_clusters(rng):
    """u computed from the clusters' own cell probabilities, by total probability, equals the shortcut."""
    X = rng.integers(0, 3, (40, 3))
    labels = rng.integers(0, 4, 40)
    points = draw_cells(X, labels, rng)
    u = EmpiricalRosenblatt().fit(X).transform(points)
    for point, got in zip(points, u, strict=True):
        cell = np.floor(point).astype(int)
        for j in range(3):
            joint = below = inside = 0.0
            for cluster in range(4):
                members = X[labels == cluster]
                share = len(members) / len(X)
                prefix = (members[:, :j] == cell[:j]).all(axis=1)
                joint += share * prefix.mean()
                below += share * (prefix & (members[:, j] < cell[j])).mean()
                inside += share * (prefix & (members[:, j] == cell[j])).mean()
            assert got[j] == pytest.approx((below + inside * (point[j] - cell[j])) / joint, abs=1e-12)


def test_points_of_cells_are_uniform_after_the_transform(rng):
    X = rng.integers(0, 3, (200, 2))
    u = EmpiricalRosenblatt().fit(X).transform(draw_cells(np.repeat(X, 20, axis=0), np.zeros(4000, int), rng))
    assert chisquare(np.histogram(u[:, 1], 20, (0, 1))[0]).pvalue > 1e-4


def test_errors():
    with pytest.raises(InputError, match="X must have shape"):
        EmpiricalRosenblatt().fit([])
    with pytest.raises(InputError, match="none negative or missing"):
        EmpiricalRosenblatt().fit([[1], [2]], [1.0, -1.0])
    target = EmpiricalRosenblatt().fit([[0, 0], [1, 1]])
    with pytest.raises(InputError, match=r"u must have shape \(n, 2\)"):
        target.inverse_transform([[0.5]])
    with pytest.raises(InputError, match="values in"):
        target.inverse_transform([[0.5, 1.5]])
    with pytest.raises(InputError, match="cells of observed rows"):
        target.transform([[0.5, 1.5]])
