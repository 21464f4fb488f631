"""The ratio of two empirical distributions of discrete columns, cell by cell."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np

from shoal.coding import Codes, Coding, Kinds
from shoal.encoding import joint_codes
from shoal.errors import InputError
from shoal.shift.ratio import Floats, SampleRatio


class EmpiricalRatio(SampleRatio):
    """Weigh by the share of a record's combination of values in the target over that in the source.

    Cells that occur in both samples have q(x) / p(x), the ratio of their shares. Target mass in cells where the source
    has nobody is not lost: it *backs off* to the source records that agree in all columns but one, or else but two, and
    so on, in proportion to their mass; the column to give up next is the one that differs least between the samples.
    So the weighted source has at least the target's share in every cell where it has anybody at all. With many columns
    most cells are empty, and a :class:`LogisticRatio` does better.

    Parameters
    ----------
    smoothing : float, default 0
        Shrink a cell's ratio towards that of the cells that agree in all columns but the one given up first: the mass
        added on both sides, in units of the average source cell. 0 keeps the ratios as observed.
    n_bins : int, default 10
        Columns with more than 32 distinct numbers are cut into so many bins of equal mass.
    kinds : mapping, optional
        Kinds of columns, as in :func:`shoal.anonymize`.
    max_weight : float, optional
        Cap the weights; those capped keep mean 1.

    Attributes
    ----------
    weights_ : array of shape (n_source,)
        Target over source, mean 1 over the source (in its record weights, if any: multiply by them to train).
    diagnostics_ : Diagnostics
    backoff_ : list of str
        The columns in the order in which they are given up.

    Examples
    --------
    >>> ratio = EmpiricalRatio().fit([[0], [0], [0], [1]], [[0], [1]])
    >>> ratio.weights_.round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """

    def __init__(
        self,
        *,
        smoothing: float = 0.0,
        n_bins: int = 10,
        kinds: Kinds | None = None,
        max_weight: float | None = None,
    ) -> None:
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.kinds = kinds
        self.max_weight = max_weight

    def _check(self) -> None:
        super()._check()
        if not np.isfinite(self.smoothing) or self.smoothing < 0:
            raise InputError(f"smoothing={self.smoothing!r} must be a number of at least 0.")
        if self.n_bins < 2:
            raise InputError(f"n_bins={self.n_bins!r} must be at least 2.")

    def _read(
        self, source: nw.DataFrame[Any], target: nw.DataFrame[Any], weight_source: Floats, weight_target: Floats
    ) -> None:
        tables = {"X_source": source, "X_target": target}
        self._coding = Coding(tables, (weight_source, weight_target), self.kinds, self.n_bins)
        self._source, self._target = self._code(source), self._code(target)
        self._cells = np.vstack([self._source.codes, self._target.codes])  # a cell may occur in both halves
        self._groups: dict[tuple[int, ...], Codes] = {}
        self._solve(weight_source, weight_target)

    def _code(self, frame: nw.DataFrame[Any]) -> Cells:
        return Cells.of(self._coding.codes(frame))

    def _solve(self, weight_source: Floats, weight_target: Floats) -> None:
        n = len(self._source.codes)
        self._p = np.append(self._source.sum(weight_source), np.zeros(len(self._target.codes)))
        q = np.append(np.zeros(n), self._target.sum(weight_target))
        self._p, q = self._p / self._p.sum(), q / q.sum()
        columns = list(range(self._cells.shape[1]))
        self._levels = [columns]  # the columns that are still compared, after giving up none, one, two, ...
        cell = self._group(columns)
        has_source = np.bincount(cell, self._p)[cell] > 0
        self._outside = float(self._p[np.bincount(cell, q)[cell] == 0].sum()), float(q[~has_source].sum())
        orphan = np.where(has_source, 0.0, q)
        mass = _spread(cell, self._p, np.where(has_source, q, 0.0))  # of the target, at the source's cells
        shifts = self._find_shifts(q)
        while columns:
            least = min(columns, key=lambda j: (round(shifts[j], 12), -j))  # of equal ones the last
            columns = [j for j in columns if j != least]
            self._levels.append(columns)
            cell = self._group(columns)
            placed = np.bincount(cell, self._p)[cell] > 0
            mass += _spread(cell, self._p, np.where(placed, orphan, 0.0))
            orphan = np.where(placed, 0.0, orphan)
        self.backoff_ = [self._coding.names[j] for j in _given_up(self._levels)]
        self._mass = self._smoothed(mass)
        self._source_logs = self._log_ratio(self._source)

    def _group(self, columns: list[int]) -> Codes:
        """Return the combination of these columns in every cell; sorted once, also for a bootstrap."""
        key = tuple(columns)
        if key not in self._groups:
            self._groups[key] = group(self._cells, columns)
        return self._groups[key]

    def _find_shifts(self, q: Floats) -> list[float]:
        """Return for every column how much of its mass would have to move from source to target."""
        cells = [self._group([j]) for j in range(self._cells.shape[1])]
        return [0.5 * float(np.abs(np.bincount(cell, self._p) - np.bincount(cell, q)).sum()) for cell in cells]

    def _smoothed(self, mass: Floats) -> Floats:
        """Return the target's mass with every cell's ratio shrunk towards that of the level above."""
        if self.smoothing == 0:
            return mass
        own, above = (self._group(columns) for columns in self._levels[:2])
        p, prior = np.bincount(own, self._p)[own], np.bincount(above, self._p)[above]
        added = self.smoothing / np.count_nonzero(np.bincount(own, self._p))
        ratio = np.bincount(own, mass)[own] / np.where(p > 0, p, 1.0)
        towards = np.bincount(above, mass)[above] / np.where(prior > 0, prior, 1.0)
        return self._p * (p * ratio + added * towards) / (p + added)

    def _log_ratio(self, coded: Cells) -> Floats:
        """Return the ratio of each record's cell, or of the first cell above it in which the source has anybody."""
        n = len(self._cells)
        ratio = np.full(len(coded.codes), np.nan)
        for columns in self._levels:
            left = np.flatnonzero(np.isnan(ratio))
            if len(left) == 0:
                break
            cell = group(np.vstack([self._cells, coded.codes[left]]), columns)
            p, mass = (np.bincount(cell[:n], m, minlength=cell.max() + 1)[cell[n:]] for m in (self._p, self._mass))
            found = p > 0
            ratio[left[found]] = mass[found] / p[found]
        with np.errstate(divide="ignore"):
            return np.log(ratio)[coded.of_row]


class Cells(NamedTuple):
    """The distinct combinations of codes of a table, shape (m, d), and that of every row, shape (n,)."""

    codes: Codes
    of_row: Codes

    @classmethod
    def of(cls, codes: Codes) -> Self:
        """Return the cells of a table's codes."""
        cell = group(codes, list(range(codes.shape[1])))
        first = np.unique(cell, return_index=True)[1]
        return cls(codes[first], cell)

    def sum(self, weight: Floats) -> Floats:
        """Return the weight of every cell."""
        return np.bincount(self.of_row, weight, minlength=len(self.codes)).astype(np.float64)


def group(codes: Codes, columns: list[int]) -> Codes:
    """Return one number for every combination of these columns; -1 is a code like any other."""
    return joint_codes([codes[:, j] + 1 for j in columns]) if columns else np.zeros(len(codes), dtype=np.int64)


def _spread(cell: Codes, p: Floats, mass: Floats) -> Floats:
    """Return the mass of every cell handed to its source records, in proportion to theirs."""
    total = np.bincount(cell, p)
    return p * (np.bincount(cell, mass) / np.where(total > 0, total, 1.0))[cell]


def _given_up(levels: list[list[int]]) -> list[int]:
    return [next(iter(set(before) - set(after))) for before, after in pairwise(levels)]
