from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from shoal.dither import (
    GaussianDither,
    cluster_means,
    draw_cells,
    draw_members,
    modal_members,
    nearest_members,
    permute_members,
)
from shoal.dither.gaussian import level_shares

LABELS = np.array([0, 1, 0, 1, 1, 2, 2, 0, 1, 2])


def test_members_are_of_the_own_cluster_and_equally_likely(rng):
    draws = np.array([draw_members(LABELS, rng) for _ in range(4000)])
    assert (LABELS[draws] == LABELS).all()
    for i in range(len(LABELS)):
        members = np.flatnonzero(LABELS[i] == LABELS)
        assert chisquare([(draws[:, i] == m).sum() for m in members]).pvalue > 1e-4


def test_members_of_wanted_clusters(rng):
    wanted = np.array([2, 2, 0])
    assert (LABELS[draw_members(LABELS, rng, wanted)] == wanted).all()


def test_permutation_hands_out_every_member_once_and_fairly(rng):
    draws = np.array([permute_members(LABELS, rng) for _ in range(4000)])
    assert (np.sort(draws, axis=1) == np.arange(len(LABELS))).all()
    assert (LABELS[draws] == LABELS).all()
    for i in range(len(LABELS)):
        members = np.flatnonzero(LABELS[i] == LABELS)
        assert chisquare([(draws[:, i] == m).sum() for m in members]).pvalue > 1e-4


def test_gaussian_moments_are_those_of_the_clusters(rng):
    X = rng.standard_normal((60, 3))
    labels = rng.integers(0, 4, 60)
    dither = GaussianDither.fit(X, labels, loading=0.25)
    for c in range(4):
        members = X[labels == c]
        np.testing.assert_allclose(dither.means[c], members.mean(axis=0), atol=1e-14)
        expected = np.cov(members.T, bias=True) + 0.25 * np.eye(3)
        np.testing.assert_allclose(dither.covariances[c], expected, atol=1e-14)
    assert dither.sizes.tolist() == np.bincount(labels).tolist()


def test_clusters_of_equal_rows_have_equal_moments_bit_for_bit(rng):
    X = rng.standard_normal((9, 2))
    order = rng.permutation(9)
    dither = GaussianDither.fit(np.vstack([X, X[order]]), np.repeat([0, 1], 9))
    assert (dither.means[0] == dither.means[1]).all()
    assert (dither.covariances[0] == dither.covariances[1]).all()


def test_gaussian_draws_have_these_moments(rng, monkeypatch):
    monkeypatch.setattr("shoal.dither.gaussian._ROWS_AT_ONCE", 1000)
    X = np.vstack([rng.standard_normal((30, 2)) @ [[1.0, 0.8], [0.0, 0.5]], rng.standard_normal((30, 2)) + 5])
    dither = GaussianDither.fit(X, np.repeat([0, 1], 30))
    draws = dither.draw(np.repeat([0, 1], 20_000), rng)
    for c, part in enumerate(np.split(draws, 2)):
        np.testing.assert_allclose(part.mean(axis=0), dither.means[c], atol=0.04)
        np.testing.assert_allclose(np.cov(part.T), dither.covariances[c], atol=0.05)


def test_cells_are_drawn_by_frequency(rng):
    codes = np.array([[0], [0], [0], [2], [5], [5]])
    points = np.array([draw_cells(codes, np.array([0, 0, 0, 0, 1, 1]), rng) for _ in range(3000)])
    assert chisquare(np.bincount(points[:, 0].ravel().astype(int), minlength=3)[[0, 2]], [2250, 750]).pvalue > 1e-4
    assert (np.floor(points[:, 4:]) == 5).all()
    fractions = points % 1
    assert (fractions > 0).all()
    assert chisquare(np.histogram(fractions, 10, (0, 1))[0]).pvalue > 1e-4


def test_shares_of_levels():
    got = level_shares(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(got, [[0.5, 0.5, 0], [0, 0.5, 0.5]])


def test_centres():
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    numbers = np.array([1.0, 2.0, 6.0, np.nan, 4.0, np.nan, np.nan, 7.0])
    np.testing.assert_allclose(cluster_means(numbers, labels), [3.0, 4.0, np.nan])
    nearest = nearest_members(numbers, labels)
    assert numbers[nearest[0]] == 2.0
    assert numbers[nearest[1]] == 4.0
    assert np.isnan(numbers[nearest[2]])
    codes = np.array([3, 1, 1, 0, 2, 4, 4, 0])
    assert codes[modal_members(codes, labels)].tolist() == [1, 0, 4]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_centres_do_not_depend_on_the_order_of_rows(order, rng):
    labels = rng.integers(0, 3, 40)
    codes = rng.integers(0, 3, 40)
    numbers = rng.integers(0, 9, 40).astype(float)
    shuffled = np.random.default_rng(order).permutation(40)
    a = codes[modal_members(codes, labels)], numbers[nearest_members(numbers, labels)]
    codes, numbers, labels = codes[shuffled], numbers[shuffled], labels[shuffled]
    b = codes[modal_members(codes, labels)], numbers[nearest_members(numbers, labels)]
    np.testing.assert_array_equal(a, b)
