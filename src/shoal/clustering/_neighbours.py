"""Kernel of the approximate neighbour graph."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shoal.compilation import kernel


@kernel(reordered=True)
def look_around(
    X: NDArray[Any], order: NDArray[Any], window: int, start: int, stop: int, graph: NDArray[Any], squared: NDArray[Any]
) -> None:
    """Improve the neighbours of the records order[start:stop] by those within a window of the order around them.

    graph, squared: (n, m), the nearest found so far and their squared distances, in order of distance.
    """
    n, m = graph.shape
    for p in range(start, stop):
        i = order[p]
        first = max(0, min(p - window // 2, n - window))
        nearest, distances = graph[i], squared[i]
        for t in range(first, min(n, first + window)):
            q = order[t]
            distance = 0.0
            for j in range(X.shape[1]):
                difference = X[i, j] - X[q, j]
                distance += difference * difference
            if q == i or distance >= distances[m - 1]:
                continue
            known = False
            for g in range(m):
                known |= nearest[g] == q
            if known:
                continue
            at = m - 1
            while at > 0 and distances[at - 1] > distance:
                distances[at], nearest[at] = distances[at - 1], nearest[at - 1]
                at -= 1
            distances[at], nearest[at] = distance, q
