"""The ratio of two samples among the nearest neighbours of a record."""

from __future__ import annotations

import warnings
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from shoal.coding import Coding, Kinds
from shoal.compilation import run_in_threads
from shoal.errors import InputError
from shoal.shift.diagnostics import ShiftWarning
from shoal.shift.points import Points
from shoal.shift.ratio import Floats, SampleRatio

BLOCK_NUMBERS = 1_000_000  # coordinates of neighbours held at once by one thread
FEW_POINTS = 100  # different records, below which neighbourhoods are too coarse
SAME = 1e-9  # distances that differ by less, relative to themselves, are the same
MOST_ANCHORS = 20_000  # points around which the ratio is learnt; others follow the nearest one


class NeighborRatio(SampleRatio):
    """Weigh by the share of the target over that of the source among a record's nearest neighbours.

    Around every anchor point the log-ratio is taken to be linear: log q / p of the masses nearby, and for its slope the
    difference of the two samples' means there in units of their covariance (a linear discriminant of the
    neighbourhood), so that wide neighbourhoods in the tails do not flatten it. No form is assumed beyond that; for few
    columns with an order, and samples of thousands. With many columns neighbourhoods grow wide: prefer
    :class:`LogisticRatio`.

    Parameters
    ----------
    n_neighbors : int, optional
        How many distinct points of both samples form a neighbourhood; default 7 sqrt(n), from 20 to 2,000. Points at
        the same distance are taken in together or not at all. Never more than half of the points of the smaller sample,
        so that one that lies apart is seen to.
    kinds : mapping, optional
        Kinds of columns, as in :func:`shoal.anonymize`. Numbers are standardised, levels stand at distance 1.
    max_weight : float, optional
        Cap the weights; those capped keep mean 1.
    n_jobs : int, optional
        Threads; default all cores. The result does not depend on it.

    Attributes
    ----------
    weights_ : array of shape (n_source,)
        Target over source, mean 1 over the source (in its record weights, if any: multiply by them to train).
    diagnostics_ : Diagnostics
        Outside the common support is what has no neighbour of the other sample.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(0, 1, (5000, 1)), rng.normal(0.5, 1, (2000, 1))
    >>> ratio = NeighborRatio().fit(source, target)
    >>> bool(ratio.predict([[1.0]])[0] > 1 > ratio.predict([[-1.0]])[0])
    True
    """

    def __init__(
        self,
        n_neighbors: int | None = None,
        *,
        kinds: Kinds | None = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kinds = kinds
        self.max_weight = max_weight
        self.n_jobs = n_jobs

    def _check(self) -> None:
        super()._check()
        if self.n_neighbors is not None and self.n_neighbors < 1:
            raise InputError(f"n_neighbors={self.n_neighbors!r} must be at least 1.")

    def _read(
        self, source: nw.DataFrame[Any], target: nw.DataFrame[Any], weight_source: Floats, weight_target: Floats
    ) -> None:
        tables = {"X_source": source, "X_target": target}
        self._coding = Coding(tables, (weight_source, weight_target), self.kinds)
        self._points = Points.of([self._code(source), self._code(target)])
        if len(self._points.at) < FEW_POINTS:
            warnings.warn(
                f"NeighborRatio: there are only {len(self._points.at)} different records, so that neighbourhoods are "
                "coarse and weights too even; use EmpiricalRatio.",
                ShiftWarning,
                stacklevel=3,
            )
        self._solve(weight_source, weight_target)

    def _code(self, frame: nw.DataFrame[Any]) -> Floats:
        return self._coding.positions(frame)

    def _solve(self, weight_source: Floats, weight_target: Floats) -> None:
        masses = self._points.masses((weight_source, weight_target))
        occurs = masses.sum(axis=1) > 0
        at = self._points.at[occurs]
        self._shares = masses[occurs] / masses.sum(axis=0)
        self._tree = cKDTree(at)
        n = len(at)
        wanted = int(np.clip(7 * np.sqrt(n), 20, 2000)) if self.n_neighbors is None else self.n_neighbors
        self._k = max(min(wanted, int((self._shares > 0).sum(axis=0).min()) // 2), 1)
        self._learn(at[:: -(-n // MOST_ANCHORS)])  # points are sorted: these are spread over all of them
        logs, anchor = np.zeros(len(occurs)), self._nearest_anchor(at)
        logs[occurs] = self._from_anchor(at, anchor)
        self._source_logs = logs[self._points.of_row[0]]
        alone = self._nearby[anchor] == 0
        self._outside = float(self._shares[alone[:, 1], 0].sum()), float(self._shares[alone[:, 0], 1].sum())

    def _log_ratio(self, coded: Floats) -> Floats:
        return self._from_anchor(coded, self._nearest_anchor(coded))

    def _learn(self, anchors: Floats) -> None:
        """Learn the local model of every anchor: masses nearby, log-ratio, slope, and how far it reaches."""
        n, d = anchors.shape
        self._anchors, self._anchor_tree = anchors, cKDTree(anchors)
        self._nearby, self._value = np.empty((n, 2)), np.empty(n)
        self._slope, self._reach = np.zeros((n, d)), np.zeros(n)
        k = self._k + 1  # one more, to see whether the last one is at the same distance
        mass = np.vstack([self._shares, np.zeros(2)])  # the tree says "none" by the number of points
        points = np.vstack([self._tree.data, np.zeros(d)])

        def work(start: int, stop: int) -> None:
            distance, index = self._tree.query(anchors[start:stop], k=k)
            inside = distance < distance[:, -1:] * (1 - SAME)
            inside |= ~inside.any(axis=1, keepdims=True)  # all at one distance
            local = _fit_locally(points[index] - anchors[start:stop, None], mass[index] * inside[:, :, None])
            self._nearby[start:stop], self._value[start:stop], self._slope[start:stop] = local
            self._reach[start:stop] = np.where(inside & np.isfinite(distance), distance, 0.0).max(axis=1)

        run_in_threads(work, n, max(BLOCK_NUMBERS // (k * d), 1), self.n_jobs)

    def _nearest_anchor(self, at: Floats) -> NDArray[np.int64]:
        found = np.empty(len(at), dtype=np.int64)

        def work(start: int, stop: int) -> None:
            found[start:stop] = self._anchor_tree.query(at[start:stop])[1]

        run_in_threads(work, len(at), 20_000, self.n_jobs)
        return found

    def _from_anchor(self, at: Floats, anchor: NDArray[np.int64]) -> Floats:
        """Return the log-ratio by the model of the anchor, which is not followed beyond its neighbourhood."""
        away = at - self._anchors[anchor]
        length = np.sqrt((away**2).sum(axis=1))
        kept = np.minimum(1.0, self._reach[anchor] / np.where(length > 0, length, 1.0))
        logs = self._value[anchor] + (self._slope[anchor] * away).sum(axis=1) * kept
        most = np.log(2 * len(self._shares))  # no more can be told from so many points
        return np.clip(logs, -most, most)


def _fit_locally(away: Floats, mass: Floats) -> tuple[Floats, Floats, Floats]:
    """Return masses, log-ratio at the centre, and its slope, from neighbours' positions relative to the centre.

    away has shape (n, k, d), mass shape (n, k, 2). A neighbourhood without one of the samples has slope 0, and half a
    mean neighbour's mass is added to both, so that none nearby is not quite none at all.
    """
    nearby = mass.sum(axis=1)
    both = (nearby > 0).all(axis=1)
    share = mass / np.where(nearby > 0, nearby, 1.0)[:, None]
    means = share.transpose(0, 2, 1) @ away  # (n, 2, d)
    pooled = share.mean(axis=2)
    spread = (away * pooled[:, :, None]).transpose(0, 2, 1) @ away - means.transpose(0, 2, 1) @ means / 2
    d = away.shape[2]
    trace = np.trace(spread, axis1=1, axis2=2)
    ridge = np.where(trace > 0, 1e-3 * trace / d, 1.0)
    slope = np.linalg.solve(spread + ridge[:, None, None] * np.eye(d), (means[:, 1] - means[:, 0])[:, :, None])[:, :, 0]
    slope[~both] = 0.0
    few = 0.5 * nearby.mean(axis=1) / np.maximum((mass > 0).any(axis=2).sum(axis=1), 1)
    value = np.log(nearby[:, 1] + few) - np.log(nearby[:, 0] + few) - (slope * means.mean(axis=1)).sum(axis=1)
    return nearby, value, slope
