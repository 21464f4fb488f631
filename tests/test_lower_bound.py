"""The search on which the published lower bound rests, against all clusters of small examples."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from shoal.clustering import KMemberClustering


@pytest.fixture(scope="module")
def lower_bound():
    path = Path(__file__).parents[1] / "benchmarks" / "lower_bound.py"
    spec = importlib.util.spec_from_file_location("lower_bound", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_the_cluster_farthest_below_its_price(lower_bound, m, rng):
    for _ in range(20):
        n = int(rng.integers(m, 10))
        squared, prices = cdist(*[rng.standard_normal((n, 2))] * 2, "sqeuclidean"), rng.normal(0.3, 0.5, n)
        best, columns = np.full(n, np.inf), np.full((n, m), -1)
        lower_bound.price(squared, prices, m, best, columns)
        for i in range(n):
            below = {
                (i, *rest): squared[np.ix_((i, *rest), (i, *rest))].sum() / (2 * m) - prices[[i, *rest]].sum()
                for rest in itertools.combinations(range(i + 1, n), m - 1)
            }
            assert best[i] == pytest.approx(min(below.values(), default=np.inf))
            if below:
                assert below[tuple(sorted(columns[i]))] == pytest.approx(best[i])


def test_the_bound_is_below_the_best_clusters_and_near_them(lower_bound, rng):
    X = rng.standard_normal((60, 1))
    best = KMemberClustering(3, algorithm="optimal").fit(X)
    proved, _ = lower_bound.bound_from_below(X, 3, [best.labels_], seconds=60)
    assert 0.9 * best.inertia_ < proved <= best.inertia_ * (1 + 1e-9)
