"""Smoothed values: continuous columns without anybody's exact number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def smooth_values(numbers: Floats, source: NDArray[np.int64], k: int, rng: np.random.Generator) -> Floats:
    """Draw for every record a value near that of its source row, from a smoothed quantile function.

    A value that at least k rows share is to be kept: NaN is returned for it, as for a missing one. All others are
    drawn uniformly from an interval around k or more neighbouring rare values (fewer only where shared values enclose
    fewer). The outermost intervals keep the mean of their values and are not bounded by the largest or smallest one,
    but a column that is never negative stays so.

    Parameters
    ----------
    numbers : array of shape (n,)
    source : array of shape (m,)
        Rows of `numbers`.
    """
    known = ~np.isnan(numbers)
    values, codes, counts = np.unique(numbers[known], return_inverse=True, return_counts=True)
    low, high = _find_intervals(values, counts, k)
    shared = counts >= k
    code = np.zeros(len(numbers), dtype=np.int64)
    code[known] = codes
    at = code[source]
    drawn = low[at] + (high[at] - low[at]) * rng.random(len(source))
    return np.where(known[source] & ~shared[at], drawn, np.nan)


def _find_intervals(values: Floats, counts: NDArray[np.int64], k: int) -> tuple[Floats, Floats]:
    """Return for every distinct value the ends of the interval it is drawn from."""
    low, high = values.copy(), values.copy()
    bins = _find_bins(counts, k)
    last = len(values) - 1
    for start, stop in bins:  # values start .. stop - 1
        mean = np.average(values[start:stop], weights=counts[start:stop])
        spread = np.sqrt(3 * np.average((values[start:stop] - mean) ** 2, weights=counts[start:stop]))
        left, right = mean - spread, mean + spread
        if start > 0:
            left = values[start - 1] if counts[start - 1] >= k else (values[start - 1] + values[start]) / 2
        if stop <= last:
            right = values[stop] if counts[stop] >= k else (values[stop - 1] + values[stop]) / 2
        if start == 0 and stop <= last:
            left = 2 * mean - right
        if start > 0 and stop > last:
            right = 2 * mean - left
        low[start:stop] = max(left, 0.0) if values[0] >= 0 else left
        high[start:stop] = right
    return low, high


def _find_bins(counts: NDArray[np.int64], k: int) -> list[tuple[int, int]]:
    """Group neighbouring rare values until k rows are together; a rest joins the group before it."""
    bins: list[tuple[int, int]] = []
    start, rows, run = 0, 0, 0
    for i, count in enumerate(counts.tolist()):
        if count >= k:
            _close(bins, start, i, run, rows >= k)
            start, rows, run = i + 1, 0, i + 1
            continue
        if rows >= k:
            bins.append((start, i))
            start, rows = i, 0
        rows += count
    _close(bins, start, len(counts), run, rows >= k)
    return bins


def _close(bins: list[tuple[int, int]], start: int, stop: int, run: int, enough: bool) -> None:
    """End a run of rare values that began at `run`, the last group of which begins at `start`."""
    if start == stop:
        return
    if not enough and start > run:
        start = bins.pop()[0]
    bins.append((start, stop))
