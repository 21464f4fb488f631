"""Kernels that find the farthest point among those far from the middle, most often without a tree.

Points are kept in the order of their distance from a fixed middle, the farthest first. A point at distance r from the
middle is at most r + |q - middle| from q: once something farther has been found, the rest need not be looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.clustering._tree import NONE
from shoal.compilation import kernel, subroutine

_ROOM = 1 << 15  # points held ready; beyond them a tree is faster
_BLOCK = 64
_VANISHING = 1e-280  # squared distances below this may have lost digits
_TRIALS = 64  # searches after which a rim that seldom helps is given up


class Rim(NamedTuple):
    """The points farthest from the middle that are still there, in order of (distance downwards, row upwards)."""

    middle: NDArray[np.float64]  # (d,)
    order: NDArray[np.int32]  # (n,), all rows in that order
    points: NDArray[np.float64]  # (d, _ROOM), those held ready
    row: NDArray[np.int64]  # (_ROOM,)
    radius: NDArray[np.float64]  # (_ROOM,), distance from the middle
    taken: NDArray[np.float64]  # (_ROOM,), 0, or minus infinity once taken away
    buffer: NDArray[np.float64]  # (_BLOCK,)
    state: NDArray[np.int64]  # held, of them taken, next in `order`, searches, searches in vain


def make_rim(X: NDArray[np.float64], middle: NDArray[np.float64]) -> Rim:
    """Return the rim of all rows of X, shape (n, d)."""
    room = min(_ROOM, len(X))
    radius = np.empty(len(X))
    _measure_all(X, middle, radius)
    order = np.argsort(np.negative(radius, out=radius), kind="stable").astype(np.int32)
    rim = Rim(
        middle.copy(),
        order,
        np.empty((X.shape[1], room)),
        np.empty(room, dtype=np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(_BLOCK),
        np.zeros(5, dtype=np.int64),
    )
    _pack_once(rim, X, np.full(1, -1))
    return rim


@subroutine()
def _measure(X: NDArray[Any], row: int, middle: NDArray[Any]) -> float:
    total = 0.0
    for j in range(X.shape[1]):
        difference = X[row, j] - middle[j]
        total += difference * difference
    return np.sqrt(total)


@kernel()
def _measure_all(X: NDArray[Any], middle: NDArray[Any], radius: NDArray[Any]) -> None:
    for i in range(X.shape[0]):
        radius[i] = _measure(X, i, middle)


@subroutine()
def _pack(rim: Rim, X: NDArray[Any], labels: NDArray[Any]) -> None:
    """Drop what has been taken, and fill up from the order with rows that have no label."""
    d, held = X.shape[1], 0
    for p in range(rim.state[0]):
        if rim.taken[p] == 0.0:
            rim.row[held], rim.radius[held] = rim.row[p], rim.radius[p]
            for j in range(d):
                rim.points[j, held] = rim.points[j, p]
            held += 1
    after = rim.state[2]
    while held < rim.row.shape[0] and after < rim.order.shape[0]:
        row = int(rim.order[after])
        after += 1
        if labels[row] < 0:
            rim.row[held], rim.radius[held] = row, _measure(X, row, rim.middle)
            for j in range(d):
                rim.points[j, held] = X[row, j]
            held += 1
    rim.taken[:held] = 0.0
    rim.state[0], rim.state[1], rim.state[2] = held, 0, after


@kernel()
def _pack_once(rim: Rim, X: NDArray[Any], nobody: NDArray[Any]) -> None:
    _pack(rim, X, np.broadcast_to(nobody, rim.order.shape))


@subroutine()
def take_from_rim(rim: Rim, X: NDArray[Any], row: int, labels: NDArray[Any]) -> None:
    """Take a row away, if it is held; labels: (n,), at least 0 for all rows taken so far."""
    held = rim.state[0]
    radius = _measure(X, row, rim.middle)
    low, high = 0, held
    while low < high:
        at = (low + high) // 2
        if rim.radius[at] > radius or (rim.radius[at] == radius and rim.row[at] < row):
            low = at + 1
        else:
            high = at
    if low < held and rim.row[low] == row:
        rim.taken[low] = -np.inf
        rim.state[1] += 1
        if 2 * rim.state[1] > held:
            _pack(rim, X, labels)


@subroutine()
def find_on_rim(rim: Rim, point: NDArray[Any]) -> int:
    """Return the row farthest from the point, the lowest of equals, or -1 if that cannot be said from the rim."""
    tried, failed = rim.state[3], rim.state[4]
    if tried >= _TRIALS and 2 * failed > tried:
        return -1
    rim.state[3] += 1
    held = rim.state[0]
    offset = 0.0
    for j in range(point.shape[0]):
        difference = point[j] - rim.middle[j]
        offset += difference * difference
    offset = np.sqrt(offset)
    best, best_row, reach = -1.0, NONE, 0.0
    for start in range(0, held, _BLOCK):
        if (offset + rim.radius[start]) * (1 + 1e-12) < reach:
            return best_row
        stop = min(start + _BLOCK, held)
        out = rim.buffer[: stop - start]
        out[:] = rim.taken[start:stop]
        for j in range(point.shape[0]):
            column, centre = rim.points[j, start:stop], point[j]
            for p in range(out.shape[0]):
                difference = column[p] - centre
                out[p] += difference * difference
        largest = -1.0
        for p in range(out.shape[0]):
            largest = max(largest, out[p])
        if largest >= best:
            for p in range(out.shape[0]):
                row = int(rim.row[start + p])
                if out[p] == largest and (largest > best or row < best_row):
                    best, best_row = largest, row
            reach = np.sqrt(best) if best > _VANISHING else 0.0
    if rim.state[2] == rim.order.shape[0] or (offset + rim.radius[held - 1]) * (1 + 1e-12) < reach:
        return best_row
    rim.state[4] += 1
    return -1
