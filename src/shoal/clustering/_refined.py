"""Kernels that improve a clustering: moves, swaps, clusters dissolved, created and gathered; descent and annealing.

Every change is judged by its exact effect on the squared error, from distances to running centres.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import inlined, kernel, subroutine

_TABLE = 4096  # quantiles of the exponential distribution
_WINDOW = 4096  # records


class Partition(NamedTuple):
    """Clusters of k to 2k - 1 records with running centres; slots of size 0 are clusters that are not there."""

    labels: NDArray[np.int64]  # (n,)
    place: NDArray[np.int32]  # (n,), position among the members of the cluster
    members: NDArray[np.int32]  # (slots, 2k)
    size: NDArray[np.int64]  # (slots,)
    mass: NDArray[np.float64]  # (slots,), sum of weights
    centre: NDArray[np.float64]  # (slots, d)
    empty: NDArray[np.int64]  # (slots + 1,), how many slots are empty, and which; the last one is used first


class Problem(NamedTuple):
    """What does not change."""

    X: NDArray[np.float64]  # (n, d)
    weight: NDArray[np.float64]  # (n,)
    k: int
    graph: NDArray[np.int32]  # (n, m), near neighbours, nearest first
    scale: NDArray[np.float64]  # (n,), squared distances that are usual around a record, times its weight
    threshold: NDArray[np.float64]  # (_TABLE,), quantiles of the exponential distribution


class Journal(NamedTuple):
    """The moves of a change that may have to be undone."""

    record: NDArray[np.int64]  # (room,)
    origin: NDArray[np.int64]  # (room,)
    done: NDArray[np.int64]  # (1,)


def make_partition(labels: NDArray[np.int64], k: int, d: int) -> Partition:
    """Return these clusters, 0, 1, ..., with room for as many as there can be and one more; centres are not set."""
    n = len(labels)
    slots = n // k + 1
    size = np.bincount(labels, minlength=slots)
    order = np.argsort(labels, kind="stable")
    place = np.empty(n, dtype=np.int32)
    place[order] = np.arange(n) - np.repeat(np.cumsum(size) - size, size)
    members = np.zeros((slots, 2 * k), dtype=np.int32)
    members[labels, place] = np.arange(n)
    empty = np.zeros(slots + 1, dtype=np.int64)
    unused = np.flatnonzero(size == 0)
    empty[0], empty[1 : 1 + len(unused)] = len(unused), unused
    return Partition(labels.copy(), place, members, size, np.zeros(slots), np.zeros((slots, d)), empty)


def make_thresholds() -> NDArray[np.float64]:
    """Return -log u at equally spaced u: what a change may cost, in units of temperature, to be accepted."""
    return -np.log((np.arange(_TABLE) + 0.5) / _TABLE)


# ---------------------------------------------------------------- the effect of a change on the squared error


@inlined
def _squared(a: NDArray[Any], b: NDArray[Any]) -> float:
    total = 0.0
    for j in range(a.shape[0]):
        difference = a[j] - b[j]
        total += difference * difference
    return total


@inlined
def join_cost(x: NDArray[Any], w: float, centre: NDArray[Any], mass: float) -> float:
    """Return the change when a record at x of weight w joins a cluster."""
    return mass * w / (mass + w) * _squared(x, centre)


@inlined
def leave_cost(x: NDArray[Any], w: float, centre: NDArray[Any], mass: float) -> float:
    """Return the change when a record leaves its cluster, which keeps others."""
    return -mass * w / (mass - w) * _squared(x, centre)


@inlined
def swap_cost(
    x: NDArray[Any],
    wx: float,
    y: NDArray[Any],
    wy: float,
    a: NDArray[Any],
    mass_a: float,
    b: NDArray[Any],
    mass_b: float,
) -> float:
    """Return the change when the record x of the cluster with centre a and the record y of b change places."""
    xa = ya = xb = yb = shift_a = shift_b = 0.0
    for j in range(x.shape[0]):
        u, v = x[j] - a[j], y[j] - a[j]
        xa += u * u
        ya += v * v
        shift = wy * v - wx * u
        shift_a += shift * shift
        u, v = x[j] - b[j], y[j] - b[j]
        xb += u * u
        yb += v * v
        shift = wx * u - wy * v
        shift_b += shift * shift
    cost_a = wy * ya - wx * xa - shift_a / (mass_a + wy - wx)
    cost_b = wx * xb - wy * yb - shift_b / (mass_b + wx - wy)
    return cost_a + cost_b


# ---------------------------------------------------------------- changes


@subroutine(reordered=True)
def _leave(task: Problem, now: Partition, i: int) -> None:
    own, w = now.labels[i], task.weight[i]
    last = now.size[own] - 1
    moved = now.members[own, last]
    now.members[own, now.place[i]], now.place[moved] = moved, now.place[i]
    now.size[own] = last
    if last == 0:
        now.empty[0] += 1
        now.empty[now.empty[0]] = own
        now.mass[own] = 0.0
        return
    mass = now.mass[own] - w
    share = w / mass
    for j in range(task.X.shape[1]):
        now.centre[own, j] -= share * (task.X[i, j] - now.centre[own, j])
    now.mass[own] = mass


@subroutine(reordered=True)
def _join(task: Problem, now: Partition, i: int, to: int) -> None:
    size = now.size[to]
    if size == 0:
        now.empty[0] -= 1  # `to` is the last of the empty slots: the caller takes that one
        for j in range(task.X.shape[1]):
            now.centre[to, j] = task.X[i, j]
    now.members[to, size], now.place[i], now.labels[i] = i, size, to
    now.size[to] = size + 1
    now.mass[to] += task.weight[i]
    share = task.weight[i] / now.mass[to]
    for j in range(task.X.shape[1]):
        now.centre[to, j] += share * (task.X[i, j] - now.centre[to, j])


@subroutine(reordered=True)
def _swap(task: Problem, now: Partition, i: int, q: int) -> None:
    a, b = now.labels[i], now.labels[q]
    _leave(task, now, q)
    _join(task, now, q, a)
    _leave(task, now, i)
    _join(task, now, i, b)


@subroutine(reordered=True)
def _move_noting(task: Problem, now: Partition, i: int, to: int, journal: Journal) -> float:
    """Move a record, note it, and return the change."""
    own, at, delta = now.labels[i], journal.done[0], 0.0
    if now.size[own] > 1:
        delta += leave_cost(task.X[i], task.weight[i], now.centre[own], now.mass[own])
    if now.size[to] > 0:
        delta += join_cost(task.X[i], task.weight[i], now.centre[to], now.mass[to])
    journal.record[at], journal.origin[at] = i, own
    journal.done[0] = at + 1
    _leave(task, now, i)
    _join(task, now, i, to)
    return delta


@subroutine(reordered=True)
def _undo(task: Problem, now: Partition, journal: Journal) -> None:
    for t in range(journal.done[0] - 1, -1, -1):  # backwards, so that empty slots are taken in the right order
        i = journal.record[t]
        _leave(task, now, i)
        _join(task, now, i, journal.origin[t])


@subroutine(reordered=True)
def _scatter(task: Problem, now: Partition, own: int, journal: Journal) -> float:
    """Give the records of a cluster to the best of their neighbours' clusters; return the change, or infinity."""
    k, delta = task.k, 0.0
    while now.size[own] > 0:
        i = int(now.members[own, now.size[own] - 1])
        best, to = np.inf, -1
        for g in range(task.graph.shape[1]):
            other = now.labels[task.graph[i, g]]
            if other not in (own, to) and k <= now.size[other] < 2 * k - 1:
                joins = join_cost(task.X[i], task.weight[i], now.centre[other], now.mass[other])
                if joins < best:
                    best, to = joins, other
        if to < 0 or journal.done[0] == journal.record.shape[0]:
            return np.inf
        delta += _move_noting(task, now, i, to, journal)
    return delta


@subroutine(reordered=True)
def _dissolve(task: Problem, now: Partition, own: int, limit: float, journal: Journal) -> float:
    """Dissolve a cluster if that changes the squared error by less than the limit; return the change, or infinity."""
    journal.done[0] = 0
    delta = _scatter(task, now, own, journal)
    if delta < limit:
        return delta
    _undo(task, now, journal)
    return np.inf


@subroutine(reordered=True)
def _create(task: Problem, now: Partition, i: int, limit: float, journal: Journal) -> float:
    """Make a cluster of record i and the nearest that other clusters can spare, likewise."""
    k, to, delta = task.k, now.empty[now.empty[0]], 0.0
    if task.graph.shape[1] < k - 1:
        return np.inf
    journal.done[0] = 0
    for g in range(-1, task.graph.shape[1]):
        q = i if g < 0 else int(task.graph[i, g])
        if now.labels[q] != to and now.size[now.labels[q]] > k:
            delta += _move_noting(task, now, q, to, journal)
        if g < 0 and journal.done[0] == 0:
            return np.inf
        if journal.done[0] == k:
            break
    if journal.done[0] == k and delta < limit:
        return delta
    _undo(task, now, journal)
    return np.inf


@subroutine(reordered=True)
def _gather(task: Problem, now: Partition, i: int, limit: float, journal: Journal) -> float:
    """Make a cluster of record i and its nearest, and scatter the clusters left with fewer than k, likewise."""
    k, to, delta = task.k, now.empty[now.empty[0]], 0.0
    if task.graph.shape[1] < k - 1:
        return np.inf
    journal.done[0] = 0
    for g in range(-1, k - 1):
        delta += _move_noting(task, now, i if g < 0 else int(task.graph[i, g]), to, journal)
    for t in range(k):
        if 0 < now.size[journal.origin[t]] < k and delta < np.inf:
            delta += _scatter(task, now, journal.origin[t], journal)
    if delta < limit:
        return delta
    _undo(task, now, journal)
    return np.inf


# ---------------------------------------------------------------- search


@subroutine()
def _random(state: NDArray[Any]) -> Any:
    """Return 32 random bits (xorshift64*)."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return (x * np.uint64(2685821657736338717)) >> np.uint64(32)


@subroutine()
def _below(state: NDArray[Any], n: int) -> int:
    """Return a random whole number below n."""
    return int((_random(state) * np.uint64(n)) >> np.uint64(32))


@subroutine()
def _make_journal(k: int) -> Journal:
    room = 6 * k
    return Journal(np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.zeros(1, dtype=np.int64))


@subroutine(reordered=True)
def _change_number(task: Problem, now: Partition, i: int, limit: float, choice: Any, journal: Journal) -> float:
    """Try to dissolve, create or gather a cluster; return by how much the squared error grew."""
    if choice & np.uint64(1):
        delta = _dissolve(task, now, now.labels[i], limit, journal)
    elif choice & np.uint64(2):
        delta = _create(task, now, i, limit, journal)
    else:
        delta = _gather(task, now, i, limit, journal)
    return delta if delta < np.inf else 0.0


@kernel(reordered=True)
def anneal(
    task: Problem,
    now: Partition,
    start: int,
    stop: int,
    sweeps: int,
    temperature: float,
    cooling: float,
    random: NDArray[Any],
) -> float:
    """Try random changes around the records start .. stop - 1, and return by how much the squared error grew.

    A sweep tries as many changes as there are records, and the temperature is multiplied by `cooling` after it. A
    change is accepted if it costs less than an exponential random number times the temperature times the scale of its
    records: every place of the data has its own temperature, so that dense and sparse places freeze together. Records
    are taken at random from windows, one after the other: neighbours stand near each other and stay in the cache.
    """
    k, X, weight, graph, scale, threshold = task.k, task.X, task.weight, task.graph, task.scale, task.threshold
    labels, size, mass, centre, members = now.labels, now.size, now.mass, now.centre, now.members
    grown, journal = 0.0, _make_journal(k)
    for first in range(start, stop, _WINDOW):
        width, t = min(_WINDOW, stop - first), temperature
        for step in range(sweeps * width):
            if step > 0 and step % width == 0:
                t *= cooling
            i = first + _below(random, width)
            draw = _random(random)
            limit = t * threshold[draw % np.uint64(_TABLE)]
            choice = draw >> np.uint64(16)
            if np.int64(choice & np.uint64(0xFFF)) * 20 * k < 0x1000:  # these take about as long as 20 k others
                grown += _change_number(task, now, i, limit * scale[i], choice >> np.uint64(12), journal)
                continue
            j = int(graph[i, _below(random, graph.shape[1])])
            a, b = labels[i], labels[j]
            if a == b:
                continue
            if choice & np.uint64(0x4000):  # both ways: an outlier is nobody's neighbour, but has neighbours
                i, a, b = j, b, a
            if size[a] > k and size[b] < 2 * k - 1:
                cost = leave_cost(X[i], weight[i], centre[a], mass[a])
                cost += join_cost(X[i], weight[i], centre[b], mass[b])
                if cost < limit * scale[i]:
                    _leave(task, now, i)
                    _join(task, now, i, b)
                    grown += cost
            else:
                q = int(members[b, _below(random, size[b])])
                cost = swap_cost(X[i], weight[i], X[q], weight[q], centre[a], mass[a], centre[b], mass[b])
                if cost < limit * 0.5 * (scale[i] + scale[q]):
                    _swap(task, now, i, q)
                    grown += cost
    return grown


@kernel(reordered=True)
def descend(task: Problem, now: Partition, start: int, stop: int) -> float:
    """Give each of the records start .. stop - 1 its best move or swap, and return by how much the error grew."""
    k, X, weight, graph = task.k, task.X, task.weight, task.graph
    labels, size, mass, centre, members = now.labels, now.size, now.mass, now.centre, now.members
    grown = 0.0
    for i in range(start, stop):
        a = labels[i]
        leaves = leave_cost(X[i], weight[i], centre[a], mass[a])
        best, to, partner, before = -1e-9 * task.scale[i], -1, -1, -1  # a gain above rounding
        for g in range(graph.shape[1]):
            b = labels[graph[i, g]]
            if b in (a, before, to):
                continue
            before = b
            if size[a] > k and size[b] < 2 * k - 1:
                cost = leaves + join_cost(X[i], weight[i], centre[b], mass[b])
                if cost < best:
                    best, to, partner = cost, b, -1
            for t in range(size[b]):
                q = int(members[b, t])
                cost = swap_cost(X[i], weight[i], X[q], weight[q], centre[a], mass[a], centre[b], mass[b])
                if cost < best:
                    best, to, partner = cost, b, q
        if to < 0:
            continue
        if partner >= 0:
            _swap(task, now, i, partner)
        else:
            _leave(task, now, i)
            _join(task, now, i, to)
        grown += best
    return grown


@kernel(reordered=True)
def centre(task: Problem, now: Partition) -> float:
    """Make the centres those of the members, free of rounding, and return the squared error."""
    total = 0.0
    for c in range(now.size.shape[0]):
        if now.size[c] == 0:
            continue
        mass = 0.0
        now.centre[c] = 0.0
        for t in range(now.size[c]):
            i = now.members[c, t]
            mass += task.weight[i]
            for j in range(task.X.shape[1]):
                now.centre[c, j] += task.weight[i] * task.X[i, j]
        for j in range(task.X.shape[1]):
            now.centre[c, j] /= mass
        now.mass[c] = mass
        for t in range(now.size[c]):
            i = now.members[c, t]
            total += task.weight[i] * _squared(task.X[i], now.centre[c])
    return total
