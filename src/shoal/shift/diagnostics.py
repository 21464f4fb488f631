"""Can these weights be trusted? How much data is left, and what has no counterpart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LITTLE = 0.1  # weights are weak where fewer of the records are left,
FEW = 30  # or fewer than so many, and less than half of them,
HEAVY = 0.05  # or where one record has a larger share, or more of the target is clipped or without a counterpart


class ShiftWarning(UserWarning):
    """The weights are weak: what is learnt with them may not hold for the target."""


@dataclass(frozen=True)
class Diagnostics:
    """What the weights of one sample are worth.

    Attributes
    ----------
    n_source : int
        Records that are weighted.
    effective_sample_size : float
        How many equally weighted records would tell as much (Kish): (sum w)^2 / sum w^2, record weights included.
    effective_share : float
        The same over that of the record weights alone: 1 without a shift.
    largest_share : float
        The largest share of the whole that any one record has.
    clipped_mass : float
        The share of the target that max_weight took off.
    source_outside : float
        The share of the source where the target has nothing: it is not used.
    target_outside : float
        The share of the target where the source has nothing: there, every answer is an extrapolation.
    warnings : tuple of str
        What is weak, in plain language; empty if nothing is.
    """

    n_source: int
    effective_sample_size: float
    effective_share: float
    largest_share: float
    clipped_mass: float
    source_outside: float
    target_outside: float

    @classmethod
    def of(cls, share: Floats, weights: Floats, *, clipped: float, outside: tuple[float, float]) -> Self:
        """Return what weights are worth on records of these shares; outside: of the source, of the target."""
        total = share * weights
        left = effective_size(total)
        return cls(
            n_source=len(share),
            effective_sample_size=left,
            effective_share=min(left / effective_size(share), 1.0),
            largest_share=float(total.max() / total.sum()),
            clipped_mass=max(clipped, 0.0),
            source_outside=outside[0],
            target_outside=outside[1],
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is weak, in plain language."""
        said = []
        few = self.effective_sample_size < FEW and self.effective_share < 0.5
        if few or self.effective_share < LITTLE:
            said.append(
                f"the weights leave {self.effective_sample_size:.0f} of {self.n_source:,} records' worth of "
                "information: source and target differ so much that few records stand for the whole target"
            )
        if self.largest_share > max(HEAVY, 5 / self.n_source):
            said.append(f"a single record has {self.largest_share:.0%} of the weight: set max_weight, or pool levels")
        if self.target_outside > HEAVY:
            said.append(
                f"{self.target_outside:.0%} of the target is unlike anything in the source: what is learnt there is "
                "an extrapolation"
            )
        if self.clipped_mass > HEAVY:
            said.append(f"max_weight took off {self.clipped_mass:.0%} of the target: the weights lean to the source")
        return tuple(said)

    def __str__(self) -> str:
        lines = [
            f"records left    {self.effective_sample_size:,.0f} of {self.n_source:,} ({self.effective_share:.0%})",
            f"largest share   {self.largest_share:.2%} of the weight in one record",
            f"clipped         {self.clipped_mass:.2%} of the target",
            f"no counterpart  {self.target_outside:.2%} of the target, {self.source_outside:.2%} of the source",
        ]
        return "\n".join([*lines, *(f"weak: {text}" for text in self.warnings)])

    def warn(self, who: str) -> None:
        """Warn of what is weak, on behalf of the function that the caller called."""
        for text in self.warnings:
            warnings.warn(f"{who}: {text}.", ShiftWarning, stacklevel=4)


def effective_size(weights: Floats) -> float:
    """Return the number of equally weighted records that tell as much as these (Kish)."""
    scaled = weights / weights.max()
    return float(scaled.sum() ** 2 / (scaled**2).sum())
