"""The piecewise-uniform dither of the paper's Theorem 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.dither.resampling import draw_members

_FINE = 2**24


def draw_cells(codes: NDArray[np.int64], labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw for every record a point in a cell of its cluster: the cell by frequency, the place in it uniformly.

    codes: (n, d), level codes. A point is `level + fraction`. The conditional CDFs of all points together are
    `EmpiricalRosenblatt().fit(codes).transform`, and its inverse returns every point to its own cell: the paper's
    transformation with this dither is the same as drawing from the cluster with replacement.
    """
    members = codes[draw_members(labels, rng)]
    return members + draw_fractions(members.shape, rng)


def draw_fractions(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw places inside a cell, uniform over 2^24 inner points: no rounding can carry one across the border."""
    return (rng.integers(0, _FINE, shape) + 0.5) / _FINE
