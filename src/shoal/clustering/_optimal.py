"""Kernel of the optimal clustering along an order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import kernel


@kernel()
def cut(X: NDArray[Any], weight: NDArray[Any], k: int, error: NDArray[Any], start: NDArray[Any]) -> None:
    """Find the best partition of the first i rows into runs of k to 2k - 1, for every i.

    X: (n, d), in order. error: (n + 1,), its squared error, infinite where there is none; start: (n + 1,), where its
    last run begins. The error of a run is updated row by row (Welford), so that large values do not cancel.
    """
    n, d = X.shape
    mean = np.empty(d)
    error[0] = 0.0
    for i in range(1, n + 1):
        error[i], start[i] = np.inf, -1
        mass, inside = 0.0, 0.0
        mean[:] = 0.0
        for j in range(i - 1, max(i - 2 * k, -1), -1):
            w = weight[j]
            mass += w
            for t in range(d):
                before = X[j, t] - mean[t]
                mean[t] += w / mass * before
                inside += w * before * (X[j, t] - mean[t])
            if i - j >= k and error[j] + inside < error[i]:
                error[i], start[i] = error[j] + inside, j
