from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from shoal.clustering import KMemberClustering, flow
from shoal.errors import InputError


def test_every_assignment_is_the_cheapest_with_k_in_every_cluster(rng):
    """The oracle: k places for every cluster, and the rest of the records wherever it is cheapest."""
    n, c, k = 37, 7, 5
    cost = rng.random((n, c))
    labels = flow._assign(flow._load_solver(), cost, k)
    assert np.bincount(labels, minlength=c).min() >= k
    places = np.hstack([np.repeat(cost, k, axis=1), np.repeat(cost.min(axis=1)[:, None], n - c * k, axis=1)])
    rows, columns = linear_sum_assignment(places)
    assert cost[np.arange(n), labels].sum() == pytest.approx(places[rows, columns].sum(), rel=1e-7)


def test_it_is_no_worse_than_the_greedy_start_and_nothing_changes_any_more(rng):
    X = rng.standard_normal((300, 3))
    model, start = KMemberClustering(4, algorithm="flow").fit(X), KMemberClustering(4).fit(X)
    assert model.inertia_ < 0.99 * start.inertia_
    assert model.n_clusters_ == 75
    cost = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    again = flow._assign(flow._load_solver(), cost, 4)
    assert cost[np.arange(300), again].sum() >= model.inertia_ * (1 - 1e-6)


def test_too_many_rows_and_a_missing_solver_say_what_to_do(rng, monkeypatch):
    monkeypatch.setattr(flow, "_ARCS", 1000)
    with pytest.raises(InputError, match="2,500 arcs for 100 rows at k=4.*use 'refined'"):
        KMemberClustering(4, algorithm="flow").fit(rng.random((100, 2)))
    monkeypatch.setitem(sys.modules, "ortools.graph.python", None)
    with pytest.raises(InputError, match=r"pip install 'shoal\[flow\]'"):
        KMemberClustering(4, algorithm="flow").fit(rng.random((20, 2)))
