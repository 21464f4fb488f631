"""Kernels that look at all free records, vectorised: nearest, farthest, remove; the lowest row wins every tie."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import inlined, subroutine

_BLOCK = 256


class Free(NamedTuple):
    """The free records in row order; some of the first `held[0]` may be taken."""

    points: NDArray[np.float64]  # (d, n)
    row: NDArray[np.int64]  # (n,)
    weight: NDArray[np.float64]  # (n,)
    taken: NDArray[np.float64]  # (n,), 0, or infinite once taken
    buffer: NDArray[np.float64]  # (_BLOCK,)
    held: NDArray[np.int64]  # (2,), records held, and of them taken


def make_free(X: NDArray[np.float64], weight: NDArray[np.float64], rows: NDArray[Any]) -> Free:
    """Return these rows of X, shape (n, d), as free records."""
    n = len(rows)
    points = np.ascontiguousarray(X[rows].T)
    return Free(
        points, rows.astype(np.int64), weight[rows], np.zeros(n), np.empty(_BLOCK), np.array([n, 0], dtype=np.int64)
    )


@inlined
def _measure(free: Free, start: int, stop: int, point: NDArray[Any]) -> NDArray[Any]:
    """Return the squared distances of the records start .. stop - 1 to the point; infinite where taken."""
    out = free.buffer[: stop - start]
    out[:] = free.taken[start:stop]
    for j in range(free.points.shape[0]):
        column = free.points[j, start:stop]  # slices let the compiler see that no index wraps around
        centre = point[j]
        for p in range(out.shape[0]):
            difference = column[p] - centre
            out[p] += difference * difference
    return out


@subroutine()
def scan_nearest(free: Free, point: NDArray[Any]) -> int:
    """Return the position of the first of the records nearest to the point."""
    best, at = np.inf, -1
    for start in range(0, free.held[0], _BLOCK):
        out = _measure(free, start, min(start + _BLOCK, free.held[0]), point)
        smallest = np.inf
        for p in range(out.shape[0]):
            smallest = min(smallest, out[p])
        if smallest < best:
            best = smallest
            for p in range(out.shape[0]):
                if out[p] == smallest:
                    at = start + p
                    break
    return at


@subroutine()
def scan_farthest(free: Free, point: NDArray[Any]) -> int:
    """Return the position of the first of the records farthest from the point."""
    best, at = -1.0, -1
    for start in range(0, free.held[0], _BLOCK):
        out = _measure(free, start, min(start + _BLOCK, free.held[0]), point)
        largest = -1.0
        for p in range(out.shape[0]):
            largest = max(largest, out[p] if out[p] < np.inf else -1.0)
        if largest > best:
            best = largest
            for p in range(out.shape[0]):
                if out[p] == largest:
                    at = start + p
                    break
    return at


@subroutine()
def scan_several(free: Free, point: NDArray[Any], positions: NDArray[Any], distances: NDArray[Any]) -> None:
    """Find the positions of the len(positions) records nearest to the point, in the order of (distance, row)."""
    number, room, worst = 0, len(positions), np.inf
    for start in range(0, free.held[0], _BLOCK):
        out = _measure(free, start, min(start + _BLOCK, free.held[0]), point)
        smallest = np.inf
        for p in range(out.shape[0]):
            smallest = min(smallest, out[p])
        if smallest >= worst:
            continue
        for p in range(out.shape[0]):
            if out[p] < worst:
                at = min(number, room - 1)
                while at > 0 and distances[at - 1] > out[p]:
                    distances[at], positions[at] = distances[at - 1], positions[at - 1]
                    at -= 1
                distances[at], positions[at] = out[p], start + p
                number = min(number + 1, room)
                if number == room:
                    worst = distances[room - 1]


@subroutine()
def take(free: Free, at: int) -> None:
    """Take the record at this position."""
    free.taken[at] = np.inf
    free.held[1] += 1


@subroutine()
def pack(free: Free) -> None:
    """Close the gaps once an eighth of the records has been taken."""
    if free.held[1] * 8 <= free.held[0]:
        return
    kept = 0
    for p in range(free.held[0]):
        if free.taken[p] == 0.0:
            for j in range(free.points.shape[0]):
                free.points[j, kept] = free.points[j, p]
            free.row[kept], free.weight[kept], free.taken[kept] = free.row[p], free.weight[p], 0.0
            kept += 1
    free.held[0], free.held[1] = kept, 0
