"""Kernel of the descent that exchanges records of one stratum."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from shoal.compilation import kernel


@kernel(fused=True)
def descend(
    X: NDArray[Any], labels: NDArray[Any], centres: NDArray[Any], sizes: NDArray[Any], graph: NDArray[Any], sweeps: int
) -> int:
    """Exchange each record with one of graph[i] (-1: none) in another cluster whenever the squared error falls.

    labels and centres are changed in place. Return the number of exchanges.
    """
    exchanges = 0
    for _ in range(sweeps):
        before = exchanges
        for i in range(len(X)):
            for j in graph[i]:
                a, b = labels[i], labels[j]
                if j < 0 or a == b:
                    continue
                change, apart = 0.0, 0.0
                for q in range(X.shape[1]):
                    u, v = X[i, q], X[j, q]
                    change += (v - centres[a, q]) ** 2 - (u - centres[a, q]) ** 2
                    change += (u - centres[b, q]) ** 2 - (v - centres[b, q]) ** 2
                    apart += (u - v) ** 2
                if change - apart * (1.0 / sizes[a] + 1.0 / sizes[b]) >= -1e-12 * (1.0 + apart):
                    continue
                for q in range(X.shape[1]):
                    step = X[j, q] - X[i, q]
                    centres[a, q] += step / sizes[a]
                    centres[b, q] -= step / sizes[b]
                labels[i], labels[j] = b, a
                exchanges += 1
        if exchanges == before:
            break
    return exchanges
