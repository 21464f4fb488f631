"""What an assessment found: costs with their intervals, and what they rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.shift.diagnostics import Diagnostics
from shoal.utility.prediction import Measured

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class SegmentCost:
    """The expected cost per enrollee of one segment.

    share_existing and share_new are its shares of the members and of the new enrollees, n_members the number of members
    it is learnt from.
    """

    column: str
    level: str
    share_existing: float
    share_new: float
    cost: Measured
    n_members: int


@dataclass(frozen=True)
class MarketRisk:
    """The expected cost of a new market.

    Attributes
    ----------
    cost : Measured
        Per enrollee of the new market, with its interval.
    existing_cost : float
        Mean cost per member of the existing market.
    total : Measured or None
        Cost of all enrollees, where their number is given.
    segments : list of SegmentCost
    diagnostics : Diagnostics
        Of the members' weights.
    weights : array of shape (n_members,)
        New enrollees over members, mean 1.
    assumptions : list of str
        What the estimate takes for granted.
    raw : MarketRisk or None
        The same from the raw data, where they were at hand.
    k : int or None
        Of the release, where it was one.
    """

    cost: Measured
    existing_cost: float
    total: Measured | None
    segments: list[SegmentCost]
    diagnostics: Diagnostics
    weights: NDArray[np.float64] = field(repr=False)
    assumptions: list[str] = field(repr=False)
    raw: MarketRisk | None = field(default=None, repr=False)
    k: int | None = None

    @property
    def cost_of_privacy(self) -> float | None:
        """By how much the release's estimate is above that of the raw data, as a share of the latter."""
        if self.raw is None:
            return None
        return self.cost.value / self.raw.cost.value - 1 if self.raw.cost.value else float("nan")

    def to_polars(self) -> pl.DataFrame:
        """Return a row for the whole and one for every segment, with the raw data's estimate where there is one."""
        import polars as pl

        whole = SegmentCost("", "all", 1.0, 1.0, self.cost, self.diagnostics.n_source)
        rows = [_row(segment) for segment in (whole, *self.segments)]
        if self.raw is not None:
            raw = {(s.column, s.level): s.cost for s in self.raw.segments} | {("", "all"): self.raw.cost}
            for row in rows:
                cost = raw.get((row["column"], row["level"]))
                row["raw_cost"] = None if cost is None else cost.value
        return pl.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        low, high = self.cost.interval
        lines = [
            f"expected cost   {self.cost.value:,.0f} per new enrollee ({self.cost.confidence:.0%} interval {low:,.0f} "
            f"to {high:,.0f}); members today {self.existing_cost:,.0f}"
        ]
        if self.total is not None:
            low, high = self.total.interval
            lines.append(f"in total        {self.total.value:,.0f} ({low:,.0f} to {high:,.0f})")
        for segment in self.segments:
            low, high = segment.cost.interval
            name = f"{segment.column} {segment.level}"
            lines.append(
                f"  {name:<24} {segment.cost.value:>9,.0f} ({low:,.0f} to {high:,.0f}), {segment.share_new:.1%} of the "
                f"new enrollees, {segment.share_existing:.1%} of the members"
            )
        lines += str(self.diagnostics).splitlines()
        if self.raw is not None and self.cost_of_privacy is not None:
            half = (self.raw.cost.interval[1] - self.raw.cost.interval[0]) / 2 / (self.raw.cost.value or 1.0)
            label = "cost of privacy" if self.k is None else f"cost of k = {self.k}"
            lines.append(
                f"{label:<15} raw data say {self.raw.cost.value:,.0f}: the release is off by "
                f"{self.cost_of_privacy:+.1%}, where the raw data's own interval is +-{half:.1%}"
            )
        return "\n".join([*lines, *(f"assumed         {text}" for text in self.assumptions)])


def _row(segment: SegmentCost) -> dict[str, Any]:
    return {
        "column": segment.column,
        "level": segment.level,
        "share_existing": segment.share_existing,
        "share_new": segment.share_new,
        "cost": segment.cost.value,
        "low": segment.cost.interval[0],
        "high": segment.cost.interval[1],
        "members": segment.n_members,
    }
