"""What all density ratios share: two samples in, weights of mean 1 out, and how far they can be trusted."""

from __future__ import annotations

import copy
from abc import abstractmethod
from numbers import Real
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shoal.errors import InputError
from shoal.people import read_weight
from shoal.schema import read_any
from shoal.shift.diagnostics import Diagnostics

Floats = NDArray[np.float64]

LARGEST_LOG = 600.0


class DensityRatio(BaseEstimator):
    """Base of the estimators of w(x) = q(x) / p(x), target over source.

    A subclass says how the ratio at the source follows from the records' weights (`_solve`, which sets `_source_logs`
    and `_outside`), and what it is elsewhere (`_code`, `_log_ratio`). The order of the rows does not matter, and all
    but classifiers of another make see records only through the mass at each point, so that a record that occurs twice
    is a record of twice the weight.
    """

    max_weight: float | None
    _source_logs: Floats  # log q(x) - log p(x) of the source's records, up to a constant
    _outside: tuple[float, float]  # the shares of source and target that have no counterpart in the other

    def predict(self, X: Any) -> Floats:
        """Return the weights of other records, on the scale of `weights_`, shape (n,)."""
        return self.weigh(self.prepare(X))

    def prepare(self, X: Any) -> Any:
        """Return records in the form that `weigh` takes: to weigh them several times, and read them once."""
        check_is_fitted(self, "weights_")
        return self._code(read_any(X, "X", self.n_features_in_))

    def weigh(self, prepared: Any) -> Floats:
        """Return the weights of records that were prepared, shape (n,)."""
        ratio = _exp(self._log_ratio(prepared) - self._log_scale)
        return np.minimum(ratio, self._cap) * self._cap_scale

    def reweigh(self, weight_source: Floats, weight_target: Floats) -> Self:
        """Return the ratio of the same records with other record weights: a bootstrap, without reading again."""
        other = copy.copy(self)
        other._solve(weight_source, weight_target)  # noqa: SLF001  of its own class
        return other._settle(weight_source, warn=False)  # noqa: SLF001

    def _check(self) -> None:
        top = self.max_weight
        if top is not None and (not isinstance(top, Real) or not top >= 1):
            raise InputError(f"max_weight={top!r} must be a number of at least 1 (weights have mean 1), or None.")

    @abstractmethod
    def _code(self, frame: nw.DataFrame[Any]) -> Any:
        """Return a table in the form that `_log_ratio` takes."""

    @abstractmethod
    def _log_ratio(self, coded: Any) -> Floats:
        """Return log q(x) - log p(x), up to a constant."""

    def _settle(self, omega: Floats, *, warn: bool) -> Self:
        """Scale the weights to mean 1 over the source, cap them, and say what they are worth."""
        share = omega / omega.sum()
        logs = self._source_logs
        self._log_scale = _log_mean(logs, share)
        ratio = _exp(logs - self._log_scale)
        self._cap, self._cap_scale, clipped = np.inf, 1.0, 0.0
        if self.max_weight is not None:
            self._cap = _find_cap(ratio, share, float(self.max_weight))
            capped = np.minimum(ratio, self._cap)
            self._cap_scale = float(1 / (share @ capped))
            clipped = 1 - 1 / self._cap_scale
        self.weights_ = np.minimum(ratio, self._cap) * self._cap_scale
        self.diagnostics_ = Diagnostics.of(share, self.weights_, clipped=clipped, outside=self._outside)
        if warn:
            self.diagnostics_.warn(type(self).__name__)
        return self

    @abstractmethod
    def _solve(self, weight_source: Floats, weight_target: Floats) -> None:
        """Estimate from the weights of the records that were read."""


class SampleRatio(DensityRatio):
    """Base of the ratios whose target is a sample too."""

    def fit(
        self,
        X_source: Any,
        X_target: Any,
        *,
        weight_source: ArrayLike | None = None,
        weight_target: ArrayLike | None = None,
    ) -> Self:
        """Estimate the ratio from two samples.

        Parameters
        ----------
        X_source, X_target : tables with the same columns (pandas, polars, pyarrow), or arrays of shape (n, d)
            The sizes may differ, columns may stand in any order, missing values are a level of their own.
        weight_source, weight_target : arrays of shape (n,), default 1
            Survey weights, or how often each record occurs.
        """
        self._check()
        source, target = read_any(X_source, "X_source"), read_any(X_target, "X_target")
        omega = read_weights(weight_source, len(source), "weight_source")
        self._read(source, target, omega, read_weights(weight_target, len(target), "weight_target"))
        self.feature_names_in_ = np.array(source.columns, dtype=object)
        self.n_features_in_ = len(source.columns)
        return self._settle(omega, warn=True)

    @abstractmethod
    def _read(
        self, source: nw.DataFrame[Any], target: nw.DataFrame[Any], weight_source: Floats, weight_target: Floats
    ) -> None:
        """Learn how to read the columns, read the two samples, and solve."""


def read_weights(weight: ArrayLike | None, n: int, what: str) -> Floats:
    """Return record weights as numbers, 1 where none are given."""
    if weight is None:
        return np.ones(n)
    try:
        values = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} must be {n} numbers.") from None
    return read_weight(values, n, what)


def _exp(logs: Floats) -> Floats:
    """Return exp without overflow: a record unlike any of the source may have any weight."""
    return np.exp(np.minimum(logs, LARGEST_LOG))


def _log_mean(logs: Floats, share: Floats) -> float:
    """Return the log of the mean of exp(logs), shares as weights."""
    top = logs[share > 0].max()
    return float(top + np.log(share @ np.exp(np.minimum(logs, top) - top)))


def _find_cap(ratio: Floats, share: Floats, top: float) -> float:
    """Return where to cut the ratios so that, scaled back to mean 1, none is above top.

    The scaled cap c / mean(min(r, c)) grows with c: bisection. Where top is too low for that (a part of the source has
    weight 0), all positive weights become equal.
    """
    low, high = 0.0, float(ratio.max())
    if high <= top:
        return top
    for _ in range(200):
        middle = (low + high) / 2
        if middle > top * float(share @ np.minimum(ratio, middle)):
            high = middle
        else:
            low = middle
    return max(low, float(ratio[ratio > 0].min()))
