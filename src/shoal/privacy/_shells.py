"""Kernel of the exact risk: who is nearest, integrated over shells of equal distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compilation import kernel, subroutine

# Gauss-Legendre nodes on panels of u = (expected records in the shell) * (1 - t): the integrand falls at least as fast
# as exp(-u), and beyond the last panel it is below 1e-19.
_PANELS = ((0.0, 3.0), (3.0, 9.0), (9.0, 18.0), (18.0, 45.0))
_RULE = np.polynomial.legendre.leggauss(16)
STARTS = np.array([start for start, _ in _PANELS])
STOPS = np.array([stop for _, stop in _PANELS])
PLACES, WEIGHTS = (_RULE[0] + 1) / 2, _RULE[1] / 2
NEGLIGIBLE = np.log(1e-12)


@subroutine()
def _collect(values: Any, holders: Any, count: Any, in_shell: Any) -> int:
    """Add up how many draws of each cluster lie in the shell; return how many clusters have any."""
    starts, clusters, counts = holders
    n_in = 0
    for v in values:
        for e in range(starts[v], starts[v + 1]):
            m = clusters[e]
            if count[m] == 0:
                in_shell[n_in] = m
                n_in += 1
            count[m] += counts[e]
    return n_in


@subroutine()
def _weigh_nodes(
    in_shell: Any, count: Any, left: Any, sizes: Any, log_beyond: float, rule: Any, depth: Any, mass: Any
) -> int:
    """Write the nodes 1 - t, and the chance that all records lie beyond them times the rule's weight."""
    panel_start, panel_stop, places, weights = rule
    expected = 0.0
    for m in in_shell:
        expected += sizes[m] * (count[m] / left[m])
    n_nodes = 0
    for panel in range(len(panel_start)):
        low, high = panel_start[panel], min(panel_stop[panel], expected)
        for g in range(len(places) if low < high else 0):
            depth[n_nodes] = (low + (high - low) * places[g]) / expected
            mass[n_nodes] = (high - low) * weights[g] / expected
            n_nodes += 1
    for g in range(n_nodes):
        exponent = log_beyond
        for m in in_shell:
            exponent += sizes[m] * np.log1p(-(count[m] / left[m]) * depth[g])
        mass[g] *= np.exp(exponent)
    return n_nodes


@subroutine()
def _share_out(in_shell: Any, count: Any, left: Any, depth: Any, mass: Any, place: Any, risk: Any) -> None:
    """Add to the risk of the wanted clusters the chance that the nearest record is a given one of theirs."""
    for m in in_shell:
        if place[m] < 0:
            continue
        share = count[m] / left[m]
        for g in range(len(depth)):
            risk[place[m]] += mass[g] * share / (1.0 - share * depth[g])


@subroutine()
def _pass_shell(in_shell: Any, count: Any, left: Any, totals: Any, sizes: Any, touched: Any, n_touched: int) -> Any:
    """Take the shell's draws away; return the change of the log chance that nobody is nearer, and who was touched."""
    change = 0.0
    for m in in_shell:
        if left[m] == totals[m]:
            touched[n_touched] = m
            n_touched += 1
        change += sizes[m] * np.log1p(-count[m] / left[m]) if count[m] < left[m] else -np.inf
        left[m] -= count[m]
        count[m] = 0
    return change, n_touched


@kernel(fused=True)
def integrate_shells(
    near: NDArray[Any],
    distance: NDArray[Any],
    tolerance: float,
    complete: bool,
    classes: NDArray[Any],
    holders: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    totals: NDArray[Any],
    sizes: NDArray[Any],
    wanted: tuple[NDArray[Any], NDArray[Any]],
    rule: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]],
    risk: NDArray[Any],
) -> NDArray[Any]:
    """Write into `risk` the chance that the nearest match of a class is a given record of a cluster.

    near, distance: (b, q), the values nearest to each of the `classes` and how far, nearest first; `complete` if they
    are all values. holders: for every value, from starts[v] to starts[v + 1], the clusters that release it and how
    many of their `totals` draws do. sizes: how many records each cluster releases. wanted: for every class, likewise,
    the clusters asked for; `risk` is aligned with them. Return for every class whether its neighbours sufficed.
    """
    pair_start, pair_cluster = wanted
    n_clusters, q = len(sizes), near.shape[1]
    left = totals.copy()  # draws of every cluster that lie at or beyond the present shell
    count = np.zeros(n_clusters, dtype=np.int64)  # of them in the shell
    in_shell, touched = np.empty(n_clusters, dtype=np.int64), np.empty(n_clusters, dtype=np.int64)
    place = np.full(n_clusters, -1, dtype=np.int64)  # where a wanted cluster stands in `risk`
    depth, mass = np.empty(len(rule[0]) * len(rule[2])), np.empty(len(rule[0]) * len(rule[2]))
    finished = np.full(len(classes), complete)
    for row in range(len(classes)):
        mine = range(pair_start[classes[row]], pair_start[classes[row] + 1])
        for p in mine:
            place[pair_cluster[p]] = p
            risk[p] = 0.0
        n_touched, first = 0, 0
        log_beyond = 0.0  # log chance that nobody is nearer than the present shell
        while first < q and log_beyond > NEGLIGIBLE:
            last = first + 1
            while last < q and distance[row, last] - distance[row, first] <= tolerance:
                last += 1
            if last == q and not complete:  # the shell may go on beyond the neighbours at hand
                break
            shell = in_shell[: _collect(near[row, first:last], holders, count, in_shell)]
            n_nodes = _weigh_nodes(shell, count, left, sizes, log_beyond, rule, depth, mass)
            _share_out(shell, count, left, depth[:n_nodes], mass[:n_nodes], place, risk)
            change, n_touched = _pass_shell(shell, count, left, totals, sizes, touched, n_touched)
            log_beyond += change
            first = last
        finished[row] |= log_beyond <= NEGLIGIBLE
        for m in touched[:n_touched]:
            left[m] = totals[m]
        for p in mine:
            place[pair_cluster[p]] = -1
    return finished
