"""Columns of two samples as a design matrix, rare levels pooled so that no effect is one person's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, bin_codes, standardise
from shoal.utility.pairs import Pair

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_BINS = 10
_MOST_LEVELS = 40
_MOST_DUMMIES = 600


@dataclass(frozen=True)
class Effect:
    """What a column of a design stands for: a number, a level by its code, or all rare or missing ones."""

    column: str
    what: str  # "number", "level", "bin", "rare levels" or "missing"
    code: int = -1


@dataclass(frozen=True)
class Design:
    """A matrix, its rows those of the original and then of the release, and what its columns stand for."""

    matrix: Floats
    effects: list[Effect]


def make_design(pair: Pair, *, dummies: bool = False, rare: int = 10) -> Design:
    """Return standardised numbers and a dummy for every level that `rare` rows of the original have.

    The most frequent level is what the others are compared with. dummies=True gives columns with an order dummies
    too, continuous ones for ten quantile bins.
    """
    blocks, effects = [np.empty((len(pair.columns[0].codes), 0))], []
    for column in pair.columns:
        if column.numbers is None or dummies:
            found, said = _dummies(column, pair.n, rare)
        else:
            found, said = [standardise(column.numbers, pair.n)], [Effect(column.name, "number")]
            missing = int(column.missing[: pair.n].sum())
            if rare <= missing <= pair.n - rare:
                found.append(column.missing.astype(np.float64))
                said.append(Effect(column.name, "missing"))
        blocks += [block[:, None] for block in found]
        effects += said
    return Design(np.hstack(blocks), effects)


def fits_dummies(pair: Pair) -> bool:
    """Return whether dummies for all columns make a design that is not too wide."""
    return sum(min(column.n_levels, _MOST_LEVELS) for column in pair.columns) <= _MOST_DUMMIES


def _dummies(column: EncodedColumn, n: int, rare: int) -> tuple[list[Floats], list[Effect]]:
    binned = column.numbers is not None and column.n_levels > _BINS
    codes = bin_codes(column.codes, _BINS) if binned else column.codes
    gone = int(codes.max()) + 1
    codes = np.where(column.missing, gone, codes)
    counts = np.bincount(codes[:n], minlength=gone + 1)
    by_count = np.argsort(-counts, kind="stable")
    own = [int(level) for level in by_count[1 : _MOST_LEVELS + 1] if counts[level] >= rare]
    found = [(codes == level).astype(np.float64) for level in own]
    said = [Effect(column.name, "missing" if c == gone else "bin" if binned else "level", c) for c in own]
    rest = ~np.isin(codes, [*own, by_count[0]])
    if rest[:n].sum() >= rare:
        found.append(rest.astype(np.float64))
        said.append(Effect(column.name, "rare levels"))
    return found, said


def solve(design: Floats, y: Floats, weight: NDArray[Any] | None = None) -> tuple[Floats, Floats]:
    """Return least-squares coefficients, the intercept first, and the inverse of the Gram matrix.

    Columns that others determine share their effect with them (the least-norm solution).
    """
    whole = np.column_stack([np.ones(len(design)), design])
    weighted = whole if weight is None else whole * np.asarray(weight, dtype=np.float64)[:, None]
    inverse = np.linalg.pinv(weighted.T @ whole, rcond=1e-10, hermitian=True)
    return inverse @ (weighted.T @ y), inverse


def predict(design: Floats, coefficients: Floats) -> Floats:
    """Return what a linear model expects."""
    return coefficients[0] + design @ coefficients[1:]
