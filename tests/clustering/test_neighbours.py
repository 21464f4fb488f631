from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from shoal.clustering import neighbours
from shoal.clustering.neighbours import find_neighbours


def test_few_rows_have_exact_neighbours(rng):
    X = rng.standard_normal((500, 4))
    graph, mean = find_neighbours(X, 7, rng)
    distance, expected = cKDTree(X).query(X, 8)
    np.testing.assert_array_equal(graph, expected[:, 1:])
    np.testing.assert_allclose(mean, (distance[:, 1:] ** 2).mean(axis=1))


@pytest.mark.parametrize("d", [3, 12])
def test_nobody_is_an_own_neighbour_or_a_neighbour_twice(d, rng, monkeypatch):
    monkeypatch.setattr(neighbours, "_FEW", 100)
    X = rng.integers(0, 2, (600, d)).astype(float)  # many equal rows
    graph, _ = find_neighbours(X, 9, rng)
    assert (graph != np.arange(600)[:, None]).all()
    assert graph.min() >= 0
    assert all(len(set(row)) == 9 for row in graph.tolist())


def test_everybody_has_neighbours_even_on_a_line(rng):
    X = rng.standard_normal((5200, 1)) * np.arange(1, 8)
    for m in (255, 256):
        graph, mean = find_neighbours(X, m, rng)
        assert graph.min() >= 0
        assert np.isfinite(mean).all()


@pytest.mark.parametrize(("d", "farther"), [(4, 1.2), (12, 1.25)])
def test_many_rows_have_neighbours_not_much_farther_than_the_true_ones(d, farther, rng):
    X = rng.standard_normal((8000, d))
    graph, mean = find_neighbours(X, 10, rng)
    exact = (cKDTree(X).query(X[:500], 11)[0][:, 1:] ** 2).mean(axis=1)
    assert mean[:500].mean() < farther * exact.mean()
    assert (mean[:500] >= exact * (1 - 1e-12)).all()
    distance = ((X[graph[:500]] - X[:500, None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(distance.mean(axis=1), mean[:500])
