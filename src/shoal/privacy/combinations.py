"""Which columns together single people out: how many people are alone in each combination of a few columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, encode_table, joint_codes
from shoal.errors import InputError, suggest

Codes = NDArray[np.int64]
_WORK = 3e8  # rows read for all combinations
_LEAST_WORK = 10_000  # of one combination, in rows
_MOST_COLUMNS = 3  # taken together, but for all of them
_NEARLY_ALL = 0.9
_DENSE = 1 << 24  # cells that are counted without sorting


@dataclass(frozen=True)
class Combination:
    """Some columns, and how many people are alone in their values of these.

    Attributes
    ----------
    columns : tuple of str
    alone : int
        People whose values of these columns nobody else has.
    below : int
        People who share them with fewer than `k` people, themselves included.
    classes : int
        How many different values of these columns occur.
    """

    columns: tuple[str, ...]
    alone: int
    below: int
    classes: int


def risky_combinations(
    table: Any, quasi_identifiers: Sequence[str] | None = None, *, k: int = 10, most: int = _MOST_COLUMNS
) -> list[Combination]:
    """Return how many people each combination of up to `most` columns singles out, and all together, worst first.

    Of many columns, smaller combinations only, and of the columns with the most values.

    Examples
    --------
    >>> found = risky_combinations([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0], [2.0, 1.0]])
    >>> [(c.columns, c.alone) for c in found]
    [(('x0', 'x1'), 2), (('x1',), 1), (('x0',), 0)]
    """
    columns = {column.name: column for column in encode_table(table)}
    names = list(columns) if quasi_identifiers is None else list(quasi_identifiers)
    for name in names:
        if name not in columns:
            raise InputError(f"quasi_identifiers names {name!r}, which is not a column{suggest(name, columns)}")
    return count_combinations([columns[name] for name in names], k, most)


def count_combinations(columns: Sequence[EncodedColumn], k: int = 10, most: int = _MOST_COLUMNS) -> list[Combination]:
    """Return the combinations of encoded columns, one row a person."""
    n, d = max(len(columns[0].codes), _LEAST_WORK), len(columns)
    by_levels = sorted(columns, key=lambda column: -column.n_levels)
    found, spent = {_count(columns, k)}, 0.0
    for size in range(1, min(most, d - 1) + 1):
        chosen = by_levels
        while len(chosen) > size and spent + n * comb(len(chosen), size) > _WORK:
            chosen = chosen[:-1]
        if spent + n * comb(len(chosen), size) > _WORK and size > 1:
            break
        spent += n * comb(len(chosen), size)
        names = {column.name for column in chosen}
        kept = [column for column in columns if column.name in names]
        found |= {_count(group, k) for group in combinations(kept, size)}
    return sorted(found, key=lambda c: (-c.alone, -c.below, len(c.columns), c.columns))


def leave_out_supersets(found: Sequence[Combination], people: int) -> list[Combination]:
    """Return combinations without those that add columns to one that singles out nearly everybody by itself."""
    enough = {frozenset(c.columns) for c in found if c.alone >= _NEARLY_ALL * people}

    def adds_nothing(c: Combination) -> bool:
        if len(c.columns) > _MOST_COLUMNS:  # all of them together
            return any(one < set(c.columns) for one in enough)
        parts = (combinations(c.columns, size) for size in range(1, len(c.columns)))
        return any(frozenset(part) in enough for group in parts for part in group)

    return [c for c in found if not adds_nothing(c)]


def _count(columns: Sequence[EncodedColumn], k: int) -> Combination:
    sizes = _class_sizes([column.codes for column in columns])
    names = tuple(column.name for column in columns)
    return Combination(names, int((sizes == 1).sum()), int(sizes[sizes < k].sum()), len(sizes))


def _class_sizes(codes: list[Codes]) -> Codes:
    levels = [int(column.max()) + 1 for column in codes]
    if np.log(levels).sum() > np.log(_DENSE):
        return np.bincount(joint_codes(codes))
    cells = np.zeros(len(codes[0]), dtype=np.int64)
    for column, count in zip(codes, levels, strict=True):
        cells = cells * count + column
    sizes = np.bincount(cells)
    return sizes[sizes > 0]
