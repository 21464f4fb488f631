"""Better clusters: annealing and descent from a first clustering; it can be stopped at any time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.clustering.distortion import squared_distances
from shoal.progress import ignore

if TYPE_CHECKING:
    from shoal.clustering._refined import Partition, Problem

_HOT, _COLD = 0.4, 0.03  # temperatures, in units of the squared distances that are usual around a record
_FROZEN = 0.15  # of a round is spent at temperature 0
_CHUNK = 1 << 16  # records between two chances to stop
_TOGETHER = 8  # sweeps where there are enough, so that records are still in the processor's cache when they come again
_LONG = 1000  # sweeps from which a short round goes before the long one, to have something good early
_ENOUGH = 0.01  # a sweep of descent that gains less than this share of the first one's gain is the last
_SWAPS = 20_000_000  # of descent between two chances to stop, roughly
_DEGREE = 2  # neighbours of a record, in units of k
_EDGES = 20_000_000  # of the neighbour graph, roughly, so that memory stays bounded
_MOST = 250  # neighbours of a record, so that time stays bounded for large k
_LIGHTEST = 1e-12  # of the heaviest weight: differences of weights vanish in rounding below this


def default_sweeps(n: int) -> int:
    """Return how many sweeps `refined` makes when the caller sets no limit: fifty million changes, at least 200 n."""
    return max(200, 50_000_000 // n)


def auto_sweeps(n: int, d: int) -> int:
    """Return how many sweeps `auto` makes: about as much work as the greedy clustering of so many rows and columns."""
    return int((20 + 100_000 / n) * max(1.0, d / 8))


@dataclass
class Budget:
    """How long to search: sweeps over all records, or seconds from the beginning; whichever ends first."""

    sweeps: int | None = None
    seconds: float | None = None
    began: float = field(default_factory=time.monotonic)

    def share(self, sweeps: int) -> float:
        """Return the share that is spent after so many sweeps, from 0 to 1."""
        spent = 0.0 if self.sweeps is None else sweeps / self.sweeps if self.sweeps else 1.0
        if self.seconds is not None:
            spent = max(spent, (time.monotonic() - self.began) / self.seconds if self.seconds else 1.0)
        return min(spent, 1.0)

    def is_late(self) -> bool:
        """Whether the seconds are over."""
        return self.seconds is not None and time.monotonic() - self.began > self.seconds

    def expect(self, n: int) -> float:
        """Return how many sweeps over n records to expect, roughly."""
        by_clock = np.inf if self.seconds is None else self.seconds / (1e-7 * n)
        return min(by_clock, np.inf if self.sweeps is None else self.sweeps)


@dataclass
class Found:
    """What a search found."""

    labels: NDArray[np.int64]  # 0, 1, ...
    sweeps: int = 0
    interrupted: bool = False  # from the keyboard


def refine(
    X: NDArray[np.float64],
    weight: NDArray[np.float64],
    k: int,
    labels: NDArray[np.int64],
    budget: Budget,
    rng: np.random.Generator,
    n_jobs: int | None,
    progress: Callable[[float], None],
) -> Found:
    """Improve a clustering by moves, swaps, and clusters dissolved and made, over a graph of near neighbours.

    Changes are tried at random, and one that raises the squared error is accepted the less often the more it does so
    and the later it is (annealing); then each record is given its best place in turn (descent). Sizes stay between k
    and 2k - 1; how many clusters there are is free. The result is never worse than the given labels 0, 1, ...: that is
    judged by the squared error itself and not by what the search believes.
    """
    best = Found(labels)
    if len(X) < 2 * k or budget.share(0) >= 1:
        return best
    before = weight * squared_distances(X, weight, labels)
    try:
        for found, best.sweeps in _search(X, weight, k, labels, budget, rng, n_jobs, progress):
            after = weight * squared_distances(X, weight, found)
            # Record by record, so that a far outlier, whose cluster does not change, hides no gain elsewhere.
            if (before - after).sum() > 0 and after.sum() <= before.sum():
                best.labels, before = found, after
    except KeyboardInterrupt:
        best.interrupted = True
    return best


def _search(
    X: NDArray[np.float64],
    weight: NDArray[np.float64],
    k: int,
    labels: NDArray[np.int64],
    budget: Budget,
    rng: np.random.Generator,
    n_jobs: int | None,
    progress: Callable[[float], None],
) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield labels, the later ones most often better, and the sweeps made, until the budget is spent."""
    from shoal.clustering._refined import Problem, make_partition, make_thresholds
    from shoal.clustering._tree import make_tree
    from shoal.clustering.neighbours import find_neighbours

    n, d = X.shape
    order = np.arange(n, dtype=np.int32)
    make_tree(X, order, np.empty(n, dtype=np.int32))  # neighbours stand near each other from here on
    ordered = X[order]
    m = min(n - 1, max(_DEGREE * k, 12), max(10, _EDGES // n), _MOST)
    graph, squared = find_neighbours(ordered, m, rng, n_jobs)
    raised = np.maximum(weight, _LIGHTEST * weight.max())[order]
    task = Problem(ordered, raised, k, graph, raised * _smooth(squared, graph), make_thresholds())
    now = make_partition(_number_by_appearance(labels[order]), k, d)
    walk = _Walk(task, now, budget, rng, progress)

    def current() -> tuple[NDArray[np.int64], int]:
        found = np.empty(n, dtype=np.int64)
        found[order] = _number_by_appearance(now.labels)
        return found, walk.sweeps

    try:
        if budget.seconds is not None:  # time may be up before annealing has cooled down
            walk.descend(2)
            yield current()
        for end in (0.1, 1.0) if budget.expect(n) >= _LONG else (1.0,):
            walk.anneal(end)
            yield current()
            walk.descend(2 + walk.sweeps // 50)
            yield current()
    except KeyboardInterrupt:
        walk.progress = ignore
        walk.descend(1)  # what is still warm may be better than all before, once it is cold
        yield current()
        raise


def _smooth(squared: NDArray[np.float64], graph: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the geometric mean of what neighbours have, so that one odd record is not hot among cold ones."""
    positive = squared[squared > 0]
    logarithm = np.log(squared + (1e-6 * np.median(positive) if len(positive) else 1.0))
    return np.exp(sum(logarithm[column] for column in graph.T) / graph.shape[1])


def _number_by_appearance(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the same clusters numbered 0, 1, ... in the order in which they appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[inverse]


class _Walk:
    """One walk through the clusterings."""

    def __init__(
        self,
        task: Problem,
        now: Partition,
        budget: Budget,
        rng: np.random.Generator,
        progress: Callable[[float], None],
    ) -> None:
        from shoal.clustering._refined import centre

        self.task, self.now, self.budget, self.progress = task, now, budget, progress
        self.random = rng.integers(1, 2**63, size=1, dtype=np.uint64)
        self.sweeps = 0
        centre(task, now)

    def anneal(self, end: float) -> None:
        """Walk from hot to frozen until this share of the budget is spent."""
        from shoal.clustering._refined import anneal

        n = len(self.task.X)
        share = begin = self.budget.share(self.sweeps)
        if self.budget.seconds is not None:
            end -= 0.03 * (end - begin)  # left for descent
        together, cooling = max(_TOGETHER, _CHUNK // n), 1.0
        if self.budget.sweeps is not None:  # then the temperature can fall with every sweep
            left = max(1.0, self.budget.sweeps * (end - begin))
            together = max(1, min(together, int(left / 8)))
            cooling = (_COLD / _HOT) ** (1 / (left * (1 - _FROZEN)))
        while share < end:
            if self.budget.sweeps is not None:
                together = min(together, self.budget.sweeps - self.sweeps)
            spent = (share - begin) / (end - begin) / (1 - _FROZEN)
            temperature = _HOT * (_COLD / _HOT) ** spent if spent < 1 else 0.0
            self._pass_over(anneal, _CHUNK, together, temperature, cooling, self.random)
            self.sweeps += together
            share = self.budget.share(self.sweeps)

    def descend(self, sweeps: int) -> None:
        """Give every record its best place in turn, until that gains little or time is up."""
        from shoal.clustering._refined import descend

        chunk = max(64, min(_CHUNK, _SWAPS // (self.task.k * self.task.graph.shape[1])))
        first = None
        for _ in range(sweeps):
            fell = -self._pass_over(descend, chunk)
            first = fell if first is None else first
            if self.budget.is_late() or fell <= _ENOUGH * first:
                return

    def _pass_over(self, kernel: Any, chunk: int, *how: Any) -> float:
        """Run a kernel over all records, in chunks so that it can be stopped; return by how much the error changed."""
        from shoal.clustering._refined import centre

        n, change = len(self.task.X), 0.0
        for start in range(0, n, chunk):
            change += kernel(self.task, self.now, start, min(start + chunk, n), *how)
            self.progress(self.budget.share(self.sweeps))
            if self.budget.is_late():
                break
        centre(self.task, self.now)
        return change
