"""How close two joint distributions are."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.encoding import encode, joint_codes
from shoal.errors import InputError
from shoal.schema import read_schema


def histogram_intersection(
    a: Any, b: Any, weight_a: ArrayLike | None = None, weight_b: ArrayLike | None = None
) -> float:
    """Return the sum over all combinations of values of the smaller of their two shares.

    1: the joint distributions are equal. 0: no combination occurs in both (Swain and Ballard 1991).

    Parameters
    ----------
    a, b : frames with the same columns, or arrays of shape (n, d)
        Missing values are a level of their own.
    weight_a, weight_b : arrays of shape (n,), default 1

    Examples
    --------
    >>> histogram_intersection([[0, 1], [0, 1], [2, 3]], [[0, 1], [4, 5]])
    0.5
    """
    cells, split = _shared_codes(a, b)
    return intersect(cells[:split], cells[split:], weight_a, weight_b)


def intersect(
    cells_a: NDArray[np.int64],
    cells_b: NDArray[np.int64],
    weight_a: ArrayLike | None = None,
    weight_b: ArrayLike | None = None,
) -> float:
    """Return the histogram intersection of two samples of cells, given by their codes."""
    n_cells = int(max(cells_a.max(), cells_b.max())) + 1
    masses = []
    for cells, weight in ((cells_a, weight_a), (cells_b, weight_b)):
        mass = None if weight is None else np.asarray(weight, dtype=np.float64)
        masses.append(np.bincount(cells, weights=mass, minlength=n_cells))
    a, b = masses
    total_a, total_b = a.sum(), b.sum()  # without weights these are counts, and every product below is exact
    return float(min(np.minimum(a * total_b, b * total_a).sum() / (total_a * total_b), 1.0))


def _shared_codes(a: Any, b: Any) -> tuple[NDArray[np.int64], int]:
    if not hasattr(a, "columns") and not hasattr(a, "column_names"):
        a, b = np.asarray(a), np.asarray(b)
        if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or 0 in (*a.shape, *b.shape):
            raise InputError(
                f"a and b must have the same number of columns and rows, but they have {a.shape} and {b.shape}."
            )
        both = np.concatenate([a, b])
        return joint_codes([np.unique(column, return_inverse=True)[1] for column in both.T]), len(a)
    left, right = nw.from_native(a, eager_only=True), nw.from_native(b, eager_only=True)
    if set(left.columns) != set(right.columns) or len(left) == 0 or len(right) == 0:
        raise InputError("a and b must be tables with the same columns, and not empty.")
    together = nw.concat([left, right.select(left.columns)], how="vertical")
    schema = read_schema(together, quasi_identifiers=together.columns)
    return joint_codes([encode(together[column.name], column).codes for column in schema.columns]), len(left)
