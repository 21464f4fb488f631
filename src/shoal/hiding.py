"""From clusters to what everybody receives: dither, then recovery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal import dither, recovery
from shoal.dither.cells import draw_fractions
from shoal.dither.gaussian import level_shares
from shoal.encoding import Coordinate, EncodedColumn, make_coordinates, restore
from shoal.errors import CheckError, InputError
from shoal.progress import Reporter
from shoal.recovery.smoothing import smooth_values
from shoal.settings import Settings

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_LARGEST_TABLE = 3e7  # entries of the level shares of all clusters, for recovery="cdf"


@dataclass(frozen=True)
class Hidden:
    """What every person receives: the rows of `source`, or for some columns another row's value or a fresh number."""

    source: Index
    members: dict[int, Index]  # column -> rows to take the value from, where they differ from `source`
    numbers: dict[int, Floats]  # column -> fresh numbers
    averaged: bool = False  # whether numbers are means, which integers cannot hold

    def restore(self, series: nw.Series[Any], column: int, order: Index) -> nw.Series[Any]:
        """Return the column as released, at the persons of `order`."""
        numbers = self.numbers.get(column)
        return restore(
            series,
            self.members.get(column, self.source)[order],
            None if numbers is None else numbers[order],
            promote=self.averaged,
        )

    def weights(self, weights: Floats | None, labels: Index) -> Floats | None:
        """Return the survey weights as released: with their row, or the cluster's mean where rows are averaged."""
        if weights is None:
            return None
        return dither.cluster_means(weights, labels)[labels] if self.averaged else weights[self.source]


def hide(
    persons: list[EncodedColumn], labels: Index, settings: Settings, rng: np.random.Generator, reporter: Reporter
) -> Hidden:
    """Decide what every person receives."""
    if settings.method == "centroid":
        return _centroid(persons, labels)
    if settings.method == "permute":
        source = dither.permute_members(labels, rng)
    elif settings.method == "resample":
        source = dither.draw_members(labels, rng)
    else:
        source = _dither_and_recover(make_coordinates(persons), labels, settings, rng, reporter)
    if settings.is_exact and (np.bincount(source, minlength=len(source)) != 1).any():
        raise CheckError("The rows handed out are not a permutation of the original rows; nothing is released.")
    numbers = {}
    if settings.release_values == "smoothed":
        for i, column in enumerate(persons):
            if column.is_continuous and column.numbers is not None:
                numbers[i] = smooth_values(column.numbers, source, settings.k, rng)
    return Hidden(source, {}, numbers)


def _centroid(persons: list[EncodedColumn], labels: Index) -> Hidden:
    """Give everybody the cluster's centre: means of numbers, the value nearest to it in order, the commonest level."""
    members, numbers = {}, {}
    for i, column in enumerate(persons):
        if column.numbers is None:
            members[i] = dither.modal_members(column.codes, labels)[labels]
            continue
        members[i] = dither.nearest_members(column.numbers, labels)[labels]
        if column.kind == "numeric" and column.holds_numbers:
            numbers[i] = dither.cluster_means(column.numbers, labels)[labels]
    return Hidden(np.arange(len(labels)), members, numbers, averaged=True)


def _dither_and_recover(
    coordinates: list[Coordinate], labels: Index, settings: Settings, rng: np.random.Generator, reporter: Reporter
) -> Index:
    """Return for every person the row it receives by Gaussian dither and recovery.

    People and rows are put into two independent secret orders first: whatever the recovery does in index order (ties,
    leaves) then cannot favour anybody's own row.
    """
    people, rows = rng.permutation(len(labels)), rng.permutation(len(labels))
    cluster = labels[people]
    numbers = [c.values for c in coordinates if c.values is not None]
    gaussian = dither.GaussianDither.fit(
        np.column_stack(numbers or [np.empty((len(labels), 0))]), labels, settings.loading
    )
    drawn = iter(gaussian.draw(cluster, rng).T)
    levels = {
        j: c.codes[dither.draw_members(labels, rng, cluster)] for j, c in enumerate(coordinates) if c.codes is not None
    }
    report = reporter.stage("recovery")
    if settings.way == "transport":
        points = [levels[j] if j in levels else next(drawn) for j in range(len(coordinates))]
        given = np.hstack([_place(c, p) for c, p in zip(coordinates, points, strict=True)])
        positions = np.hstack([c.position() for c in coordinates])[rows]
        index = recovery.transport_recover(given, positions, return_index=True, progress=report)
    else:
        fractions = {j: level + draw_fractions(level.shape, rng) for j, level in levels.items()}
        points = [fractions[j] if j in fractions else next(drawn) for j in range(len(coordinates))]
        given = np.column_stack(points)
        target = np.column_stack([c.targets for c in coordinates])[rows]
        if settings.way == "rank":
            index = recovery.rank_recover(given, target, return_index=True)
        else:
            index = _recover_by_cdf(given, target, gaussian, coordinates, labels, rng)
        report(1.0)
    source = np.empty(len(labels), dtype=np.int64)
    source[people] = rows[index]
    return source


def _place(coordinate: Coordinate, drawn: NDArray[Any]) -> Floats:
    """Return drawn values or levels as points, in the columns of the coordinate's position."""
    return drawn[:, None] if coordinate.embedding is None else coordinate.embedding[drawn]


def _recover_by_cdf(
    given: Floats,
    target: Index,
    gaussian: dither.GaussianDither,
    coordinates: list[Coordinate],
    labels: Index,
    rng: np.random.Generator,
) -> Index:
    """Return by the paper's transformation, for every point, a random one of the rows with the value it maps to."""
    cells = {j: c.codes for j, c in enumerate(coordinates) if c.codes is not None}
    if sum(int(codes.max()) + 1 for codes in cells.values()) * len(gaussian.sizes) > _LARGEST_TABLE:
        raise InputError("recovery='cdf' needs too much memory for so many levels; use recovery='transport'.")
    shares = {j: level_shares(codes, labels) for j, codes in cells.items()}
    mixture = recovery.MixtureRosenblatt(gaussian.means, gaussian.covariances, gaussian.sizes, cells=shares)
    empirical = recovery.EmpiricalRosenblatt().fit(target)
    wanted = empirical.inverse_index(mixture.transform(given))
    return dither.draw_members(empirical.row_index_, rng, wanted)
