"""How close two joint distributions are."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.encoding import N_BINS, encode, find_missing, joint_codes
from shoal.errors import InputError
from shoal.schema import Column, infer_kind

Codes = NDArray[np.int64]


def histogram_intersection(
    a: Any, b: Any, weight_a: ArrayLike | None = None, weight_b: ArrayLike | None = None
) -> float:
    """Return the sum over all combinations of values of the smaller of their two shares.

    1: the joint distributions are equal. 0: no combination occurs in both (Swain and Ballard 1991).

    Parameters
    ----------
    a, b : tables with the same columns (pandas, polars or pyarrow), or arrays of shape (n, d)
        Missing values are a level of their own.
    weight_a, weight_b : arrays of shape (n,), default 1

    Examples
    --------
    >>> histogram_intersection([[0, 1], [0, 1], [2, 3]], [[0, 1], [4, 5]])
    0.5
    """
    if hasattr(a, "columns") and hasattr(b, "columns"):
        left, right = (nw.from_native(table, eager_only=True) for table in (a, b))
        if set(left.columns) != set(right.columns) or len(left) == 0 or len(right) == 0:
            raise InputError("a and b must be tables with the same columns, and not empty.")
        cells = shared_cells(left, right, left.columns)
    else:
        cells = _shared_cells_of_arrays(np.asarray(a), np.asarray(b))
    return intersect(*cells, weight_a, weight_b)


def shared_cells(
    a: nw.DataFrame[Any], b: nw.DataFrame[Any], names: Collection[str], coarse: Collection[str] = ()
) -> tuple[Codes, Codes]:
    """Return the combination of values of every row of two tables, as codes that mean the same in both.

    The columns named in `coarse` are taken in 20 quantile bins of table a.
    """
    codes = []
    for name in names:
        keys = [_keys(table[name]) for table in (a, b)]
        if any(key.dtype == object for key in keys):
            keys = [_texts(table[name]) for table in (a, b)]
        elif name in coarse:
            edges = np.nanquantile(keys[0], np.linspace(0, 1, N_BINS + 1)[1:-1])
            keys = [np.where(np.isnan(key), np.nan, np.searchsorted(edges, key, side="right")) for key in keys]
        codes.append(np.unique(np.concatenate(keys), return_inverse=True)[1])
    together = joint_codes(codes)
    return together[: len(a)], together[len(a) :]


def _keys(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column as numbers, NaN where missing, or as an array of objects where it has none."""
    kind, levels = infer_kind(series)
    missing = find_missing(series)
    if kind not in ("numeric", "datetime") or levels is not None or missing.all():
        return np.empty(0, dtype=object)
    numbers = encode(series, Column(series.name, "kept", kind)).numbers
    assert numbers is not None
    return numbers


def _texts(series: nw.Series[Any]) -> NDArray[Any]:
    """Return a column as texts, the empty one where missing."""
    values = zip(series.to_list(), find_missing(series), strict=True)
    return np.array(["" if gone else f"={value}" for value, gone in values], dtype=object)


def _shared_cells_of_arrays(a: NDArray[Any], b: NDArray[Any]) -> tuple[Codes, Codes]:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or 0 in (*a.shape, *b.shape):
        raise InputError(
            f"a and b must have rows, and equally many columns, but they have shapes {a.shape} and {b.shape}."
        )
    together = joint_codes([np.unique(column, return_inverse=True)[1] for column in np.concatenate([a, b]).T])
    return together[: len(a)], together[len(a) :]


def intersect(
    cells_a: Codes, cells_b: Codes, weight_a: ArrayLike | None = None, weight_b: ArrayLike | None = None
) -> float:
    """Return the histogram intersection of two samples of cells, given by their codes."""
    n_cells = int(max(cells_a.max(), cells_b.max())) + 1
    masses = []
    for cells, weight, name in ((cells_a, weight_a, "weight_a"), (cells_b, weight_b, "weight_b")):
        mass = None if weight is None else np.asarray(weight, dtype=np.float64)
        if mass is not None and (mass.shape != cells.shape or not (mass >= 0).all() or not 0 < mass.sum() < np.inf):
            raise InputError(f"{name} must be {len(cells)} numbers, none negative or missing, not all zero.")
        masses.append(np.bincount(cells, weights=mass, minlength=n_cells))
    a, b = masses
    total_a, total_b = a.sum(), b.sum()  # without weights these are counts, and every product below is exact
    return float(min(np.minimum(a * total_b, b * total_a).sum() / (total_a * total_b), 1.0))
