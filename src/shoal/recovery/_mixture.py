"""Kernel of the mixture transform: every conditional CDF of a mixture in one pass over its components.

For every coordinate j both halves of u_j = sum_l w_lj F_lj(x_j) / sum_l w_lj are plain sums over components, where
w_lj is the component's weight times its density at x_1 .. x_(j-1). One pass over the components serves all j. Rows
are handled in full blocks of `BLOCK`, so that the compiler vectorises every loop and no row's arithmetic depends on
its neighbours: the result is the same, bit for bit, however the rows are batched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import inlined, kernel

BLOCK = 64
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds to an integer


@inlined
def _mills(t: float) -> float:
    """Return (1 - Phi(t)) / exp(-t^2 / 2) for 0 <= t <= 40, relative error 1e-14.

    A Chebyshev interpolant of degree 18 in y, an affine map of 1 / (t + 5) onto [-1, 1], computed to 60 digits.
    """
    q = 1.0 / (t + 5.0)
    y = 11.25 * q - 1.25
    h = -2.552398392184609e-09 * y - 1.0949676071859355e-08
    h = h * y + 3.4991926747035695e-08
    h = h * y + 1.501385216667453e-07
    h = h * y - 3.1164314407526796e-07
    h = h * y - 1.6154911179051581e-06
    h = h * y + 1.9797924006333605e-06
    h = h * y + 1.829934045139572e-05
    h = h * y + 4.027566656328392e-06
    h = h * y - 0.0001983575848558678
    h = h * y - 0.0005313522894628467
    h = h * y + 0.0008922351074490845
    h = h * y + 0.011238259260683591
    h = h * y + 0.04643984858160349
    h = h * y + 0.1294816507495505
    h = h * y + 0.2781194819524231
    h = h * y + 0.4843749841428457
    h = h * y + 0.7004649271684168
    h = h * y + 0.8496957717177205
    return q * h


@inlined
def _exp_reduced(r: float) -> float:
    """Return exp(r) for |r| <= log(2) / 2 by its Taylor polynomial of degree 13."""
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    return p * r + 1.0


@kernel(fused=True)
def mixture_sums(  # noqa: PLR0912, one loop nest
    x: NDArray[Any],
    weights: NDArray[Any],
    means: NDArray[Any],
    whiteners: NDArray[Any],
    is_cell: NDArray[Any],
    cell_offset: NDArray[Any],
    cell_pmf: NDArray[Any],
    cell_below: NDArray[Any],
    numerator: NDArray[Any],
    denominator: NDArray[Any],
) -> None:
    """Add up numerator and denominator of every conditional CDF, for a whole number of blocks of rows.

    x, numerator, denominator: (blocks, d, BLOCK). weights: (c,). means: (c, d), 0 for cells. whiteners: (c, d, d),
    the inverse Cholesky factors, rows and columns of cells 0. For a cell coordinate x is code + fraction, and level v
    of coordinate j has in component l the mass cell_pmf[l, cell_offset[j] + v], with cell_below the mass below it.
    """
    n_blocks, d, _ = x.shape
    centred = np.empty((d, BLOCK))
    power = np.empty(BLOCK, dtype=np.int64)
    two_to = power.view(np.float64)
    scratch = np.empty((3, BLOCK))
    w, z, e = scratch[0], scratch[1], scratch[2]
    for b in range(n_blocks):
        for component in range(weights.shape[0]):
            for r in range(BLOCK):
                w[r] = weights[component]
            for j in range(d):
                for r in range(BLOCK):
                    denominator[b, j, r] += w[r]
                if is_cell[j]:
                    for r in range(BLOCK):
                        level = int(x[b, j, r])
                        mass = cell_pmf[component, cell_offset[j] + level]
                        below = cell_below[component, cell_offset[j] + level]
                        numerator[b, j, r] += w[r] * (below + mass * (x[b, j, r] - level))
                        w[r] *= mass
                    continue
                for r in range(BLOCK):
                    centred[j, r] = x[b, j, r] - means[component, j]
                    z[r] = 0.0
                for i in range(j + 1):
                    a = whiteners[component, j, i]
                    if a != 0.0:
                        for r in range(BLOCK):
                            z[r] += a * centred[i, r]
                for r in range(BLOCK):
                    s = max(-0.5 * z[r] * z[r], -708.0)
                    m = s * _LOG2_E + _ROUND
                    k = m - _ROUND
                    e[r] = _exp_reduced((s - k * _LN2_HIGH) - k * _LN2_LOW)
                    power[r] = (np.int64(k) + 1023) << 52
                scale = whiteners[component, j, j]
                for r in range(BLOCK):
                    e[r] *= two_to[r]
                    tail = e[r] * _mills(min(abs(z[r]), 40.0))
                    numerator[b, j, r] += w[r] * (tail if z[r] < 0.0 else 1.0 - tail)
                    w[r] *= e[r] * scale
