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
    """Return (1 - Phi(t)) / exp(-t^2 / 2) for 0 <= t <= 40, relative error 3e-13.

    A Chebyshev interpolant of degree 16 in y, an affine map of 1 / (t + 5) onto [-1, 1], computed to 60 digits.
    """
    q = 1.0 / (t + 5.0)
    y = 11.25 * q - 1.25
    h = 2.4129643649069516e-08 * y + 1.0351859629764756e-07
    h = h * y - 2.9260491589338683e-07
    h = h * y - 1.5337379427340036e-06
    h = h * y + 1.962082659241152e-06
    h = h * y + 1.822324557806321e-05
    h = h * y + 4.036951797857798e-06
    h = h * y - 0.0001983172299209237
    h = h * y - 0.0005313551119082365
    h = h * y + 0.0008922229608196101
    h = h * y + 0.01123825971103149
    h = h * y + 0.04643985052175255
    h = h * y + 0.12948165071726683
    h = h * y + 0.2781194818131588
    h = h * y + 0.4843749841435213
    h = h * y + 0.7004649271713362
    h = h * y + 0.8496957717177205
    return q * h


@inlined
def _exp(s: float) -> float:
    """Return exp(s) for -708 <= s <= 0, relative error 1e-15: 2^k times a polynomial of degree 10 in s - k log 2."""
    shifted = s * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (s - k * _LN2_HIGH) - k * _LN2_LOW
    p = 2.7626357241447223e-07 * r + 2.764018079620985e-06
    p = p * r + 2.4801504346997686e-05
    p = p * r + 0.00019841170270440067
    p = p * r + 0.0013888888932488599
    p = p * r + 0.008333333385667782
    p = p * r + 0.04166666666657314
    p = p * r + 0.16666666666554406
    p = p * r + 0.5000000000000006
    p = p * r + 1.0000000000000067
    p = p * r + 1.0
    return p * np.int64((np.int64(k) + 1023) << 52).view(np.float64)


@kernel(fused=True)
def mixture_sums(
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
    scratch = np.empty((2, BLOCK))
    w, z = scratch[0], scratch[1]
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
                own, across = whiteners[component, j, j], whiteners[component, j]
                for r in range(BLOCK):
                    centred[j, r] = x[b, j, r] - means[component, j]
                    z[r] = own * centred[j, r]
                for i in range(j):
                    if across[i] != 0.0:
                        for r in range(BLOCK):
                            z[r] += across[i] * centred[i, r]
                for r in range(BLOCK):
                    e = _exp(max(-0.5 * z[r] * z[r], -708.0))
                    tail = e * _mills(min(abs(z[r]), 40.0))
                    numerator[b, j, r] += w[r] * (tail if z[r] < 0.0 else 1.0 - tail)
                    w[r] *= e * own
