"""k-means with a smallest size (Demiriz, Bennett and Bradley 2008): every assignment is a minimum-cost flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from shoal.clustering.distortion import find_centres, squared_distances
from shoal.clustering.greedy import greedy
from shoal.clustering.refined import Found
from shoal.errors import InputError
from shoal.progress import ignore

_ARCS = 20_000_000  # about 2 GB in the solver
_ROUNDS = 100
_LARGEST_COST = 1e9  # costs are whole numbers in the solver


def flow(X: NDArray[np.float64], weight: NDArray[np.float64], k: int, progress: Callable[[float], None]) -> Found:
    """Cluster the rows of X into floor(n / k) groups of at least k, alternating centres and assignments.

    Starts from the greedy clusters; every assignment is the cheapest that leaves no cluster under k, so the squared
    error falls until nothing changes. The flow network has an arc for every record and cluster, n * n / k of them:
    use it up to some thousand records.
    """
    n, c = len(X), len(X) // k
    solver = _load_solver()
    if n * c > _ARCS:
        raise InputError(
            f"algorithm='flow' would need {n * c:,} arcs for {n:,} rows at k={k}, above its limit of {_ARCS:,}; "
            "use 'refined', which is also better."
        )
    labels = greedy(X, weight, k, ignore)
    best = Found(labels)
    error = weight @ squared_distances(X, weight, labels)
    try:
        for best.sweeps in range(1, _ROUNDS + 1):
            progress((best.sweeps - 1) / _ROUNDS)
            cost = cdist(X, find_centres(X, weight, best.labels), "sqeuclidean") * weight[:, None]
            labels = _assign(solver, cost, k)
            lower = weight @ squared_distances(X, weight, labels)
            if lower >= error * (1 - 1e-12):  # costs are rounded, so a step may even go up
                break
            best.labels, error = labels, lower
    except KeyboardInterrupt:
        best.interrupted = True
    return best


def _load_solver() -> Any:
    try:
        from ortools.graph.python import min_cost_flow
    except ImportError:
        raise InputError("algorithm='flow' needs OR-tools: pip install 'shoal[flow]'.") from None
    return min_cost_flow


def _assign(solver: Any, cost: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the cluster of every record, at least k records each, at the least total cost; cost: (n, c)."""
    n, c = cost.shape
    largest = float(cost.max())
    rounded = np.rint(cost / (largest or 1.0) * _LARGEST_COST).astype(np.int64)
    network = solver.SimpleMinCostFlow()
    record, cluster = np.divmod(np.arange(n * c), c)
    ones = np.ones(n * c, dtype=np.int64)
    arcs = network.add_arcs_with_capacity_and_unit_cost(record, n + cluster, ones, rounded.ravel())
    rest = n + c  # takes the records beyond k
    network.add_arcs_with_capacity_and_unit_cost(n + np.arange(c), np.full(c, rest), np.full(c, n), np.zeros(c, int))
    network.set_nodes_supplies(np.arange(n + c + 1), np.r_[np.ones(n), np.full(c, -k), c * k - n].astype(np.int64))
    if network.solve() != network.OPTIMAL:
        raise RuntimeError("The flow solver found no assignment, although there is one.")
    return np.asarray(network.flows(arcs)).reshape(n, c).argmax(axis=1)
