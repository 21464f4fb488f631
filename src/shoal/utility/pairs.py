"""Two samples of the same columns, and what an independent sample of the same people would have scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, encode_table, joint_codes

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
Metric = Callable[["Pair"], Floats]
N_SPLITS = 6


@dataclass(frozen=True)
class Pair:
    """An original and a release, column by column, in codes and numbers that mean the same in both.

    Attributes
    ----------
    columns : list of EncodedColumn
        The rows of the original, then those of the release.
    n : int
        How many rows the original has.
    aligned : bool
        Whether row i of the release stems from row i of the original.
    person : array of shape (n,) or None
        Whose row each row of the original is; None: every row is another person.
    """

    columns: list[EncodedColumn]
    n: int
    aligned: bool = False
    person: Index | None = None

    @classmethod
    def read(
        cls, original: Any, released: Any, kinds: Mapping[str, str | Sequence[Any]] | None = None, **about: Any
    ) -> Self:
        """Return two tables as a pair; all columns of the original must be in the release."""
        columns = encode_table(original, kinds, released)
        return cls(columns, len(original), **about)

    @property
    def n_released(self) -> int:
        """How many rows the release has."""
        return len(self.columns[0].codes) - self.n

    @property
    def names(self) -> list[str]:
        """The columns' names."""
        return [column.name for column in self.columns]

    def only(self, names: Sequence[str]) -> Self:
        """Return the pair with these columns only, in this order."""
        columns = {column.name: column for column in self.columns}
        return replace(self, columns=[columns[name] for name in names])

    def as_one(self, *, binned: bool = False) -> Self:
        """Return all columns as one column of their combinations, so that these are found once; binned: in bins."""
        codes = [column.binned() if binned else column.codes for column in self.columns]
        cells = joint_codes(codes)
        missing = np.zeros(len(cells), dtype=bool)
        one = EncodedColumn("all columns", "nominal", cells, int(cells.max()) + 1, missing, None)
        return replace(self, columns=[one])

    def of(self, sample: int) -> list[EncodedColumn]:
        """Return the columns of the original (0) or of the release (1)."""
        rows = np.arange(self.n) if sample == 0 else np.arange(self.n, self.n + self.n_released)
        return [column.take(rows) for column in self.columns]

    def sampled(self, most: int, rng: np.random.Generator) -> Self:
        """Return the pair with at most so many rows in each sample; aligned ones stay aligned."""
        if max(self.n, self.n_released) <= most:
            return self
        rows = np.sort(rng.choice(self.n, min(most, self.n), replace=False))
        other = (
            rows if self.aligned else np.sort(rng.choice(self.n_released, min(most, self.n_released), replace=False))
        )
        return self._take(rows, self.n + other, aligned=self.aligned)

    def _take(self, first: Index, second: Index, *, aligned: bool = False) -> Self:
        rows = np.concatenate([first, second])
        person = None if self.person is None else self.person[first]
        columns = [column.take(rows) for column in self.columns]
        return replace(self, columns=columns, n=len(first), aligned=aligned, person=person)

    def one_row_each(self, rng: np.random.Generator) -> Self:
        """Return a random row of every person, so that rows are independent of one another.

        Of a release that is not aligned, whose it is not known: as many rows of it.
        """
        if self.person is None:
            return self
        shuffled = rng.permutation(self.n)
        rows = shuffled[np.unique(self.person[shuffled], return_index=True)[1]]
        other = rows if self.aligned else rng.permutation(self.n_released)[: len(rows)]
        return replace(self._take(rows, self.n + other, aligned=self.aligned), person=None)

    def independent(self, size: int, rng: np.random.Generator) -> Self:
        """Return two disjoint random samples of the original, of so many rows each; nobody is in both."""
        if self.person is None:
            rows = rng.permutation(self.n)
            return self._take(rows[:size], rows[size : 2 * size])
        persons = rng.permutation(int(self.person.max()) + 1)
        place = np.empty(len(persons), dtype=np.int64)
        place[persons] = np.arange(len(persons))
        rows = np.argsort(place[self.person], kind="stable")
        half = int(np.searchsorted(place[self.person][rows], int(len(persons) * size / self.n)))
        return self._take(rows[:half], rows[half : 2 * half])


def reference(pair: Pair, distance: Metric, rng: np.random.Generator, most: int | None = None) -> Floats:
    """Return the distance that an independent sample of the same people, as large as the original, would have.

    There is none, so two halves of the original are compared, and two quarters: a distance that falls by the factor
    f from quarters to halves falls by f once more from halves to the whole, but never faster than by the root of the
    sample's size. most: compare samples of so many rows only, and go on by that root; for distances of one or two
    columns, which are far from sparse in so many rows. NaN for fewer than 8 people.
    """
    if (pair.n if pair.person is None else int(pair.person.max()) + 1) < 8:
        return np.full(np.shape(distance(pair)), np.nan)
    size = min(pair.n // 2, most or pair.n)
    halves = np.mean([distance(pair.independent(size, rng)) for _ in range(N_SPLITS)], axis=0)
    if size < pair.n // 2:
        return np.asarray(halves * np.sqrt(size / pair.n))
    quarters = np.mean([distance(pair.independent(size // 2, rng)) for _ in range(N_SPLITS)], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.log2(quarters / halves)
    power = np.clip(np.nan_to_num(power, nan=0.5, posinf=0.5), 0.0, 0.5)
    return np.asarray(halves * (size / pair.n) ** power)
