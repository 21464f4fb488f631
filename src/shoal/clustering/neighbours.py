"""Who is near whom: a graph of nearest neighbours, exact for few records and close to it for many."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from shoal.clustering._neighbours import look_around
from shoal.clustering._tree import make_tree
from shoal.compilation import run_in_threads

_FEW = 5_000  # records, up to which neighbours are exact
_FLAT = 6  # columns, up to which a tree finds neighbours fast
_ROTATIONS, _WINDOW = 4, 256
_BLOCK = 1 << 13


def find_neighbours(
    X: NDArray[np.float64], m: int, rng: np.random.Generator, n_jobs: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return m near neighbours of every row of X, nearest first, and the mean of their squared distances.

    Exact up to 5,000 rows. Beyond, with up to 6 columns, every neighbour is at most twice as far as the true one; with
    more columns, up to 255 neighbours are sought among the 256 rows around each row in the order of four kd-trees, each
    of the points turned at random; their squared distances are some tenths larger than the true ones'.
    """
    n, d = X.shape
    if n > _FEW and d > _FLAT and m < _WINDOW:  # then one window alone has neighbours enough for everybody
        return _look_around_in_rotations(X, m, rng, n_jobs)
    tree = cKDTree(X)
    graph, mean = np.empty((n, m), dtype=np.int32), np.empty(n)

    def query(start: int, stop: int) -> None:
        rows = np.arange(start, stop)
        distance, near = tree.query(X[start:stop], m + 1, eps=float(n > _FEW))
        own = near == rows[:, None]
        own[~own.any(axis=1), -1] = True  # among many equal rows a row may miss itself
        graph[rows] = near[~own].reshape(len(rows), m)
        mean[rows] = (distance**2).sum(axis=1) / m

    run_in_threads(query, n, _BLOCK, n_jobs)  # scipy's own threads run on into freed memory after Ctrl-C
    return graph, mean


def _look_around_in_rotations(
    X: NDArray[np.float64], m: int, rng: np.random.Generator, n_jobs: int | None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    n, d = X.shape
    graph, squared = np.full((n, m), -1, dtype=np.int32), np.full((n, m), np.inf)
    for _ in range(_ROTATIONS):
        turned = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
        order = np.arange(n, dtype=np.int32)
        make_tree(turned, order, np.empty(n, dtype=np.int32))

        def look(start: int, stop: int, order: NDArray[np.int32] = order) -> None:
            look_around(X, order, _WINDOW, start, stop, graph, squared)

        run_in_threads(look, n, _BLOCK, n_jobs)
    return graph, squared.mean(axis=1)
