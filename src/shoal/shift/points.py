"""Samples as masses at distinct points: equal records become one, in an order that does not depend on the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shoal.coding import Codes, Floats
from shoal.encoding import joint_codes


@dataclass(frozen=True)
class Points:
    """The distinct rows of several samples together, shape (m, p), and the point of every row of every sample."""

    at: Floats
    of_row: tuple[Codes, ...]

    @classmethod
    def of(cls, samples: list[Floats]) -> Self:
        """Merge the equal rows of samples."""
        together = np.vstack(samples)
        codes: list[NDArray[np.int64]] = [np.unique(column, return_inverse=True)[1] for column in together.T]
        point = joint_codes(codes) if codes else np.zeros(len(together), dtype=np.int64)
        first = np.unique(point, return_index=True)[1]
        ends = np.cumsum([len(sample) for sample in samples])[:-1]
        return cls(together[first], tuple(np.split(point, ends)))

    def masses(self, weights: tuple[Floats, ...]) -> Floats:
        """Return the weight of every sample at every point, shape (m, number of samples)."""
        n = len(self.at)
        return np.column_stack([np.bincount(of, w, minlength=n) for of, w in zip(self.of_row, weights, strict=True)])
