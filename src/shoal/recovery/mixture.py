"""The first half of Rosenblatt's transformation, for a mixture of Gaussians (and of cells)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, logsumexp

from shoal.compilation import run_in_threads
from shoal.errors import InputError

_ROWS_AT_ONCE = 512  # a whole number of kernel blocks: small enough to keep every thread busy
_NEAR_UNDERFLOW = 1e-200
_FARTHEST = 1e150  # standard deviations; beyond this squares overflow


class MixtureRosenblatt:
    """Turn points of a mixture into independent uniforms, one coordinate after the other.

    ::

        u_j   = F(x_j | x_1, ..., x_{j-1}) = sum_l p(l | x_1, ..., x_{j-1}) Phi((x_j - mu_lj) / sigma_lj)
        mu_lj = mean_lj + Lambda_l[j, :j] Lambda_l[:j, :j]^-1 (x[:j] - mean_l[:j])

    (Wei, Natesan Ramamurthy and Varshney, "Distribution-Preserving k-Anonymity", section 3.2.2; the paper prints the
    conditional mean with a minus sign, with which u is not uniform.)

    Parameters
    ----------
    means : array of shape (c, p)
    covariances : array of shape (c, p, p)
        Positive definite.
    weights : array of shape (c,)
        Not negative; scaled to sum to 1.
    cells : mapping from coordinate to array of shape (c, levels), default none
        Coordinates that are levels rather than numbers: row l is the distribution over levels in component l,
        independent of the rest given the component. Their points are `level + fraction`, uniform in their cell.
        The p Gaussian coordinates are the others, in order.
    merge : bool, default True
        Add up the weights of equal components first; exact, and much faster on discrete data.
    n_jobs : int or None, default None
        Threads; None is every core. The result does not depend on it, bit for bit.

    Examples
    --------
    >>> import numpy as np
    >>> mixture = MixtureRosenblatt(means=[[-2.0], [2.0]], covariances=[[[1.0]], [[1.0]]], weights=[0.5, 0.5])
    >>> mixture.transform([[0.0], [2.0]]).round(4).tolist()
    [[0.5], [0.75]]
    """

    def __init__(
        self,
        means: ArrayLike,
        covariances: ArrayLike,
        weights: ArrayLike,
        *,
        cells: Mapping[int, ArrayLike] | None = None,
        merge: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        mean, covariance, weight, pmfs = _check(means, covariances, weights, cells or {})
        if merge:
            mean, covariance, weight, pmfs = _merge(mean, covariance, weight, pmfs)
        self.weights = weight / weight.max() / (weight / weight.max()).sum()
        self.n_components = len(weight)
        self.n_jobs = n_jobs
        d = mean.shape[1] + len(pmfs)
        gaussian = [j for j in range(d) if j not in pmfs]
        self._is_cell = np.array([j in pmfs for j in range(d)])
        self._means = np.zeros((self.n_components, d))
        self._means[:, gaussian] = mean
        self._whiteners = np.zeros((self.n_components, d, d))
        self._whiteners[np.ix_(range(self.n_components), gaussian, gaussian)] = _whiten(covariance)
        sizes = [pmfs[j].shape[1] if j in pmfs else 0 for j in range(d)]
        self._levels = np.array(sizes)
        self._offset = np.concatenate([[0], np.cumsum(sizes)])[:d].astype(np.int64)
        self._pmf = np.hstack([pmfs[j] for j in sorted(pmfs)]) if pmfs else np.zeros((self.n_components, 1))
        below = [np.cumsum(pmfs[j], axis=1) - pmfs[j] for j in sorted(pmfs)]
        self._below = np.hstack(below) if pmfs else np.zeros((self.n_components, 1))

    def transform(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return u of shape (n, d), each row uniform on the unit cube when x is drawn from the mixture."""
        points = np.asarray(x, dtype=np.float64)
        self._check_points(points)
        u = np.empty_like(points)

        def work(start: int, stop: int) -> None:
            u[start:stop] = self._transform_rows(points[start:stop])

        run_in_threads(work, len(points), _ROWS_AT_ONCE, self.n_jobs)
        return u

    def _check_points(self, points: NDArray[np.float64]) -> None:
        if points.ndim != 2 or points.shape[1] != len(self._is_cell):
            raise InputError(f"x must have shape (n, {len(self._is_cell)}), but its shape is {points.shape}.")
        if not np.isfinite(points).all():
            raise InputError("x must be finite, but it has missing or infinite values.")
        for j in np.flatnonzero(self._is_cell):
            if ((points[:, j] < 0) | (points[:, j] >= self._levels[j])).any():
                raise InputError(f"x[:, {j}] must be level + fraction in [0, {self._levels[j]}).")

    def _transform_rows(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        from shoal.recovery._mixture import BLOCK, mixture_sums

        n, d = points.shape
        blocks = -(-n // BLOCK)
        padded = np.empty((blocks * BLOCK, d))
        padded[:n], padded[n:] = points, points[-1]
        x = np.ascontiguousarray(padded.reshape(blocks, BLOCK, d).transpose(0, 2, 1))
        sums = np.zeros((2, blocks, d, BLOCK))
        mixture_sums(
            x,
            self.weights,
            self._means,
            self._whiteners,
            self._is_cell,
            self._offset,
            self._pmf,
            self._below,
            sums[0],
            sums[1],
        )
        numerator, denominator = sums.transpose(0, 1, 3, 2).reshape(2, blocks * BLOCK, d)[:, :n]
        far = (denominator < _NEAR_UNDERFLOW).any(axis=1)
        denominator[far] = 1.0
        u = numerator / denominator
        for i in np.flatnonzero(far):
            u[i] = self._transform_far_row(points[i])
        return np.clip(u, 0.0, 1.0)

    def _transform_far_row(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Transform a point in log space, right however far from every component it lies."""
        log_weight = np.log(self.weights)
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.einsum("cji,ci->cj", self._whiteners, (point - self._means) * ~self._is_cell)
        z = np.clip(np.nan_to_num(z), -_FARTHEST, _FARTHEST)
        u = np.empty(len(point))
        for j, value in enumerate(point):
            if self._is_cell[j]:
                at = self._offset[j] + int(value)
                with np.errstate(divide="ignore"):
                    log_cdf = np.log(self._below[:, at] + self._pmf[:, at] * (value - int(value)))
                    log_density = np.log(self._pmf[:, at])
            else:
                log_cdf = log_ndtr(z[:, j])
                log_density = -0.5 * z[:, j] ** 2 + np.log(self._whiteners[:, j, j])
            u[j] = np.exp(logsumexp(log_weight + log_cdf) - logsumexp(log_weight))
            log_weight = log_weight + log_density
            if np.isneginf(log_weight).all():
                raise InputError(f"x has a point in a cell of coordinate {j} that no component can reach.")
        return u


def _check(means: ArrayLike, covariances: ArrayLike, weights: ArrayLike, cells: Mapping[int, ArrayLike]) -> Any:
    mean = np.asarray(means, dtype=np.float64)
    covariance = np.asarray(covariances, dtype=np.float64)
    weight = np.asarray(weights, dtype=np.float64)
    pmfs = {int(j): np.asarray(table, dtype=np.float64) for j, table in cells.items()}
    if mean.ndim != 2 or len(mean) == 0:
        raise InputError(f"means must have shape (c, p) with c >= 1, but its shape is {mean.shape}.")
    c, p = mean.shape
    if covariance.shape != (c, p, p):
        raise InputError(f"covariances must have shape {(c, p, p)}, but its shape is {covariance.shape}.")
    if weight.shape != (c,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError(f"weights must be {c} numbers, none negative or missing, not all 0.")
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise InputError("means and covariances must be finite, but they have missing or infinite values.")
    if any(j not in range(p + len(pmfs)) for j in pmfs):
        raise InputError(f"cells must name coordinates from 0 to {p + len(pmfs) - 1}, but it names {sorted(pmfs)}.")
    for j, table in pmfs.items():
        if table.ndim != 2 or len(table) != c or (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0):
            raise InputError(f"cells[{j}] must have {c} rows, each a distribution over levels.")
    keep = weight > 0
    return mean[keep], covariance[keep], weight[keep], {j: table[keep] for j, table in pmfs.items()}


def _merge(mean: Any, covariance: Any, weight: Any, pmfs: dict[int, Any]) -> Any:
    c, p = mean.shape
    tables = [pmfs[j] for j in sorted(pmfs)]
    _, first, group = np.unique(
        np.hstack([mean, covariance.reshape(c, p * p), *tables]), axis=0, return_index=True, return_inverse=True
    )
    total = np.bincount(group.ravel(), weights=weight / weight.max())
    return mean[first], covariance[first], total, {j: table[first] for j, table in pmfs.items()}


def _whiten(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse Cholesky factors: z = W (x - mean) are the conditional residuals in standard deviations."""
    try:
        factors = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        raise InputError("covariances must be positive definite; add a loading to their diagonal.") from None
    return np.tril(np.linalg.inv(factors))
