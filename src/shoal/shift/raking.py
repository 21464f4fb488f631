"""Weights that give a sample the margins of another population: iterative proportional fitting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike

from shoal.coding import Codes, Floats, read_keys
from shoal.encoding import is_missing, joint_codes, level_key
from shoal.errors import InputError, suggest
from shoal.schema import read_any, read_frame
from shoal.shift.ratio import DensityRatio, read_weights

MET = 1e-10  # margins are met when no share is off by more,
NEARLY = 1e-8  # and, where that takes too long, when none is off by more than this
AGREE = 1e-6  # two margins agree when no share, or total, is off by more (relative, for totals)
MOST_ROUNDS = 20_000
STALLED = 500  # rounds after which a gap that has not shrunk to a half of itself is taken for one that stays

Margins = Mapping[Any, Any]


@dataclass(frozen=True)
class Margin:
    """The shares that combinations of some columns are to have."""

    columns: tuple[str, ...]
    shares: Mapping[tuple[Any, ...], float]
    total: float

    @property
    def name(self) -> str:
        """What the caller calls it."""
        return " x ".join(repr(column) for column in self.columns)

    def of(self, columns: Sequence[str]) -> dict[tuple[Any, ...], float]:
        """Return the shares of fewer columns."""
        at = [self.columns.index(column) for column in columns]
        shares: dict[tuple[Any, ...], float] = {}
        for key, share in self.shares.items():
            part = tuple(key[i] for i in at)
            shares[part] = shares.get(part, 0.0) + share
        return shares


def read_margins(margins: Margins) -> list[Margin]:
    """Return margins as shares, having checked that they can be true together.

    A margin is given under its column, or under a tuple of columns: a mapping from level (or tuple of levels) to count
    or share, or a table of the columns and one more with the counts.
    """
    if not isinstance(margins, Mapping) or not margins:
        raise InputError("margins must map columns, or tuples of columns, to the counts or shares of their levels.")
    read = [
        _read_margin(tuple(map(str, key)) if isinstance(key, tuple | list) else (str(key),), given)
        for key, given in margins.items()
    ]
    counts = [margin for margin in read if not any(abs(margin.total / whole - 1) < 1e-4 for whole in (1, 100))]
    for a, b in combinations(counts, 2):
        if abs(a.total - b.total) > AGREE * max(a.total, b.total):
            raise InputError(
                f"The margins {a.name} and {b.name} count different numbers of people ({a.total:,.10g} and "
                f"{b.total:,.10g}); give shares if they are about the same people."
            )
    for a, b in combinations(read, 2):
        shared = [column for column in a.columns if column in b.columns]
        if shared:
            one, other = a.of(shared), b.of(shared)
            gap = max(abs(one.get(key, 0.0) - other.get(key, 0.0)) for key in {*one, *other})
            if gap > AGREE:
                raise InputError(
                    f"The margins {a.name} and {b.name} disagree about {', '.join(map(repr, shared))}: shares differ "
                    f"by up to {gap:.2g}; rescale one of them, or give the shared column in one of them only."
                )
    return read


def _read_margin(columns: tuple[str, ...], given: Any) -> Margin:
    name = " x ".join(repr(column) for column in columns)
    if isinstance(given, Mapping) or (hasattr(given, "items") and not hasattr(given, "columns")):  # or a pandas Series
        pairs = [(key if isinstance(key, tuple) else (key,), number) for key, number in given.items()]
    else:
        frame = read_frame(given)
        rest = [column for column in frame.columns if column not in columns]
        if len(rest) != 1 or len(rest) + len(columns) != len(frame.columns):
            raise InputError(f"The margin {name} must have the columns {name} and one more with the counts.")
        levels = zip(*(frame[column].to_list() for column in columns), strict=True)
        pairs = list(zip(levels, frame[rest[0]].to_list(), strict=True))
    shares: dict[tuple[Any, ...], float] = {}
    for key, number in pairs:
        if len(key) != len(columns):
            raise InputError(f"The margin {name} needs {len(columns)} levels for every count, as a tuple.")
        try:
            count = float(number)
        except (TypeError, ValueError):
            count = np.nan
        if not np.isfinite(count) or count < 0:
            raise InputError(f"The margin {name} must hold counts or shares, none missing or negative.")
        cell = tuple(None if is_missing(level) else level_key(level) for level in key)
        if cell in shares:
            raise InputError(f"The margin {name} has a level twice.")
        shares[cell] = count
    total = sum(shares.values())
    if not total > 0:
        raise InputError(f"The margin {name} is zero throughout.")
    return Margin(columns, {key: count / total for key, count in shares.items()}, total)


class RakedRatio(DensityRatio):
    """Weigh a sample so that it has the margins of another population, and is otherwise as much as ever itself.

    Among all weights that meet the margins, those of iterative proportional fitting (Deming and Stephan 1940) are
    nearest to the sample in relative entropy. They are a product of one factor a margin, w(x) = prod_m f_m(x_m), and so
    a density ratio like the others: the associations that the margins do not tell are those of the source.

    Parameters
    ----------
    max_weight : float, optional
        Cap the weights; those capped keep mean 1, but not the margins.

    Attributes
    ----------
    weights_ : array of shape (n_source,)
        Target over source, mean 1 over the source (in its record weights, if any: multiply by them to train).
    diagnostics_ : Diagnostics
    n_rounds_ : int
    cells_ : array of shape (n_cells, n_margins)
        The combinations that occur in the source: in every margin the number of the level, in the order given.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"sex": ["f", "f", "f", "m"], "old": [True, False, False, True]})
    >>> RakedRatio().fit(people, {"sex": {"f": 0.5, "m": 0.5}}).weights_.round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    """

    def __init__(self, *, max_weight: float | None = None) -> None:
        self.max_weight = max_weight

    def fit(self, X_source: Any, margins: Margins, *, weight_source: ArrayLike | None = None) -> Self:
        """Find the weights that give the source these margins, to 1e-8.

        Parameters
        ----------
        X_source : table
        margins : mapping
            From a column, or a tuple of columns, to the counts or shares of its levels: a mapping from level (or tuple
            of levels), or a table of the columns and one more. {"sex": {"f": 510, "m": 490}, ("age", "sex"): table}
        weight_source : array of shape (n,), default 1
        """
        self._check()
        source = read_any(X_source, "X_source")
        omega = read_weights(weight_source, len(source), "weight_source")
        self._margins = read_margins(margins)
        self.feature_names_in_ = np.array(
            list(dict.fromkeys(c for m in self._margins for c in m.columns)), dtype=object
        )
        self.n_features_in_ = len(source.columns)
        self._source = self._code(source)
        self._refuse_empty_levels(omega)
        self._solve(omega, omega)
        return self._settle(omega, warn=True)

    def _code(self, frame: nw.DataFrame[Any]) -> Codes:
        """Return every record's cell in every margin, shape (n, number of margins)."""
        for column in self.feature_names_in_:
            if column not in frame.columns:
                raise InputError(f"margins name {column!r}, which the table has not{suggest(column, frame.columns)}")
        keys = {column: read_keys(frame[column]) for column in self.feature_names_in_}
        codes = np.empty((len(frame), len(self._margins)), dtype=np.int64)
        for m, margin in enumerate(self._margins):
            at = {cell: i for i, cell in enumerate(margin.shares)}
            cells = zip(*(keys[column] for column in margin.columns), strict=True)
            codes[:, m] = np.fromiter((at.get(cell, -1) for cell in cells), dtype=np.int64, count=len(frame))
            unknown = int((codes[:, m] < 0).sum())
            if unknown:
                raise InputError(
                    f"The margin {margin.name} says nothing of the levels of {unknown:,} of {len(frame):,} records; "
                    "add them to it, with 0 if the target has nobody there, or spell them alike."
                )
        return codes

    def _refuse_empty_levels(self, omega: Floats) -> None:
        for m, margin in enumerate(self._margins):
            mass = np.bincount(self._source[:, m], omega, minlength=len(margin.shares))
            empty = [
                cell
                for cell, share, here in zip(margin.shares, margin.shares.values(), mass, strict=True)
                if share > 0 and here == 0
            ]
            if empty:
                shown = ", ".join(
                    " x ".join(f"{level:g}" if isinstance(level, float) else str(level) for level in cell)
                    for cell in empty[:5]
                )
                raise InputError(
                    f"The margin {margin.name} has people where X_source has nobody ({shown}"
                    f"{' ...' if len(empty) > 5 else ''}); pool these levels with others in both."
                )

    def _solve(self, weight_source: Floats, weight_target: Floats) -> None:  # noqa: ARG002  margins have none
        cell = joint_codes(list(self._source.T))
        first = np.unique(cell, return_index=True)[1]
        p = np.bincount(cell, weight_source) / weight_source.sum()
        self.cells_ = self._source[first]
        every = range(len(self._margins))
        self._logs, self.n_rounds_, gap = self._fit_proportions(p, self._source[first], every)
        if gap > NEARLY:
            self._refuse(p, self._source[first])
        self._source_logs = self._log_ratio(self._source)
        self._outside = float(p[np.isneginf(self._log_ratio(self._source[first]))].sum()), 0.0

    def _refuse(self, p: Floats, codes: Codes) -> None:
        """Name margins that cannot be met together, none of which could be left out."""
        some = list(range(len(self._margins)))
        for m in list(some):
            rest = [other for other in some if other != m]
            if len(rest) > 1 and self._fit_proportions(p, codes, rest)[2] > NEARLY:
                some = rest
        gap = self._fit_proportions(p, codes, some)[2]
        names = " and ".join(self._margins[m].name for m in some)
        raise InputError(
            f"The margins {names} cannot be met together with positive weights of the combinations that occur in "
            f"X_source: a share stays off by {gap:.2g}. Pool levels, drop one of the margins, or correct it."
        )

    def _fit_proportions(self, p: Floats, codes: Codes, some: Sequence[int]) -> tuple[list[Floats], int, float]:
        """Scale to one margin after the other until all are met; return log factors, rounds, and the largest gap."""
        wanted = {m: np.array(list(self._margins[m].shares.values())) for m in some}
        factors = {m: np.ones(len(shares)) for m, shares in wanted.items()}
        mass, checked, gap = p.copy(), np.inf, np.inf
        for n_rounds in range(1, MOST_ROUNDS + 1):
            for m, shares in wanted.items():
                have = np.bincount(codes[:, m], mass, minlength=len(shares))
                scale = np.divide(shares, have, out=np.zeros(len(shares)), where=have > 0)
                factors[m] *= scale
                mass *= scale[codes[:, m]]
            gap = max(
                float(np.abs(np.bincount(codes[:, m], mass, minlength=len(shares)) - shares).max())
                for m, shares in wanted.items()
            )
            if gap < MET or (n_rounds % STALLED == 0 and gap > checked / 2):
                break
            checked = gap if n_rounds % STALLED == 0 else checked
        with np.errstate(divide="ignore"):
            return [np.log(factor) for factor in factors.values()], n_rounds, gap

    def _log_ratio(self, coded: Codes) -> Floats:
        return np.sum([logs[coded[:, m]] for m, logs in enumerate(self._logs)], axis=0)
