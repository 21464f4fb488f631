"""Recovery by transport: match dithered points to original rows so that little is moved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from shoal.compilation import run_in_threads
from shoal.recovery.rank import check_pair

# Shares at which later rounds cut, so that no two rounds draw the same borders.
_CUTS = (0.38, 0.62, 0.45, 0.55, 0.33, 0.67)
_LARGE = 50_000
_SQUARES_OVERFLOW = 1e100
_LEAVES_AT_ONCE = 2

Index = NDArray[np.int64]


def transport_recover(
    dithered: ArrayLike,
    X: ArrayLike,
    *,
    leaf_size: int | None = None,
    rounds: int | None = None,
    return_index: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> NDArray[Any]:
    """Match every dithered point to one original row, with a small total squared distance.

    Both sets are split again and again at equal counts along the widest coordinate; inside every leaf the assignment
    is exact. Each further round splits the matched pairs elsewhere and assigns anew inside its leaves, which can only
    shorten the total. The result is a permutation of the rows of X, and all columns are treated alike.

    Parameters
    ----------
    dithered, X : arrays of shape (n, d)
        Standardised, so that a squared distance means the same in every column.
    leaf_size : int, default 512, or 128 above 50,000 rows
    rounds : int, default 4, or 2 above 50,000 rows
        Measured against the exact optimum at n = 4,000, the total is 6 % above it at d = 8 and 2 % at d = 4; the
        settings for large tables give 19 % and 9 % there, and 7 % more than the better ones at n = 100,000 and d = 5,
        in a sixth of the time.
    return_index : bool, default False
        Return for every point the index of its row instead of the row.
    n_jobs : int or None, default None
        Threads; None is every core. The result does not depend on it.
    progress : callable, default None
        Called with the share done, from 0 to 1.

    Examples
    --------
    >>> transport_recover([[0.1, 0.0], [0.9, 1.2]], [[1.0, 1.0], [0.0, 0.0]]).tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    points, given = check_pair(dithered, X)
    rows = given.astype(np.float64)
    largest = max(np.abs(points).max(), np.abs(rows).max())
    if largest > _SQUARES_OVERFLOW:
        points, rows = points / largest, rows / largest
    leaf_size = max(leaf_size or (512 if len(points) <= _LARGE else 128), 2)
    rounds = rounds if rounds is not None else (4 if len(points) <= _LARGE else 2)
    everyone = np.arange(len(points))
    index = np.empty(len(points), dtype=np.int64)
    leaves = _split_both(points, rows, leaf_size)
    rounds = rounds if len(leaves) > 1 else 0
    for done in range(rounds + 1):
        if done:
            pairs = points + rows[index] if done % 2 else points
            leaves = [(leaf, index[leaf]) for leaf in _split(pairs, everyone, leaf_size, _CUTS[done % len(_CUTS)])]
        _assign(points, rows, leaves, index, n_jobs)
        if progress is not None:
            progress((done + 1) / (rounds + 1))
    return index if return_index else given[index]


def _assign(
    points: NDArray[np.float64],
    rows: NDArray[np.float64],
    leaves: list[tuple[Index, Index]],
    index: Index,
    n_jobs: int | None,
) -> None:
    """Match points and rows of every leaf exactly, writing the rows' indices into `index`."""

    def work(start: int, stop: int) -> None:
        for of_points, of_rows in leaves[start:stop]:
            cost = cdist(points[of_points], rows[of_rows], "sqeuclidean")
            index[of_points] = of_rows[linear_sum_assignment(cost)[1]]

    run_in_threads(work, len(leaves), _LEAVES_AT_ONCE, n_jobs)


def _split_both(points: NDArray[np.float64], rows: NDArray[np.float64], leaf_size: int) -> list[tuple[Index, Index]]:
    """Halve points and rows together along their widest coordinate until every leaf is small."""
    leaves = []
    todo = [(np.arange(len(points)), np.arange(len(rows)))]
    while todo:
        of_points, of_rows = todo.pop()
        if len(of_points) <= leaf_size:
            leaves.append((of_points, of_rows))
            continue
        a, b = points[of_points], rows[of_rows]
        j = int(np.argmax(a.var(axis=0) + b.var(axis=0)))
        half = len(a) // 2
        a_order, b_order = np.argpartition(a[:, j], half), np.argpartition(b[:, j], half)
        todo.append((of_points[a_order[:half]], of_rows[b_order[:half]]))
        todo.append((of_points[a_order[half:]], of_rows[b_order[half:]]))
    return leaves


def _split(points: NDArray[np.float64], everyone: Index, leaf_size: int, share: float) -> list[Index]:
    """Cut points at a share along their widest coordinate until every leaf is small."""
    leaves = []
    todo = [everyone]
    while todo:
        members = todo.pop()
        if len(members) <= leaf_size:
            leaves.append(members)
            continue
        inside = points[members]
        cut = max(1, int(len(members) * share))
        order = np.argpartition(inside[:, int(np.argmax(inside.var(axis=0)))], cut)
        todo += [members[order[:cut]], members[order[cut:]]]
    return leaves
