"""An assessment: scores, columns, dependence, prediction and risk, and the ways to show them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shoal.assessment.columns import Bar
from shoal.assessment.keeping import Dependence
from shoal.assessment.risks import RiskBar
from shoal.assessment.scores import Scores
from shoal.notebook import html_table
from shoal.privacy.combinations import Combination
from shoal.utility.learning import Coefficient, Kept


@dataclass(frozen=True)
class ColumnComparison:
    """A column before and after.

    Attributes
    ----------
    name, role, kind : str
    bars : list of Bar
        Groups of values that k people or more have, with their shares in original and release.
    marginal_histogram, ks, wasserstein : float
        Shares in common (1 is best), and distances (0 is best; NaN without an order; Wasserstein in deviations).
    *_reference : float
        What an independent sample would have.
    """

    name: str
    role: str
    kind: str
    bars: list[Bar]
    marginal_histogram: float
    marginal_histogram_reference: float
    ks: float
    ks_reference: float
    wasserstein: float
    wasserstein_reference: float


@dataclass(frozen=True)
class Prediction:
    """A model's score and a linear model's effects, learnt from original and release."""

    kept: Kept
    effects: list[Coefficient]
    labels: list[str]


@dataclass(frozen=True, repr=False)
class Assessment:
    """What a release risks and what it keeps.

    Attributes
    ----------
    privacy, utility : Scores
        Numbers by name: each with its direction, what an independent sample would score, and a line that reads it.
    columns : list of ColumnComparison
    dependence : Dependence
    prediction : Prediction or None
    risk_bars : list of RiskBar
        How many people are at which risk.
    combinations : list of Combination
        How many people some columns together single out in the original.
    refused : list of (str, str)
        What was not measured, and why.
    certificate : dict or None
    about : dict
        Sizes, k, method, date.
    """

    privacy: Scores
    utility: Scores
    columns: list[ColumnComparison]
    dependence: Dependence
    prediction: Prediction | None
    risk_bars: list[RiskBar]
    combinations: list[Combination]
    refused: list[tuple[str, str]]
    certificate: Mapping[str, Any] | None
    about: Mapping[str, Any]

    def to_dict(self, edition: str = "internal") -> dict[str, Any]:
        """Return everything as plain data (docs/report.md describes it); "public" leaves small groups out."""
        from shoal.assessment.editions import as_dict

        return as_dict(self, edition)

    def to_json(self, path: str | os.PathLike[str], *, edition: str = "internal") -> None:
        """Write everything as JSON, mode 0600."""
        from shoal.report import write_json

        write_json(self.to_dict(edition), path)

    def to_html(self, path: str | os.PathLike[str], *, edition: str = "internal", frontier: Any = None) -> None:
        """Write the report: one self-contained page, mode 0600. edition: "internal" or "public"."""
        from shoal.report import write_page

        write_page(self.to_dict(edition), path, frontier=None if frontier is None else frontier.to_dict(edition))

    def charts(self, edition: str = "internal") -> dict[str, Any]:
        """Return the charts as Altair charts, by name; chart.save("name.pdf") (or png, svg) needs no browser."""
        from shoal.report import make_charts

        return make_charts(self.to_dict(edition))

    def __str__(self) -> str:
        parts = [f"privacy\n{self.privacy}", f"utility\n{self.utility}"]
        parts += [f"not measured: {what}: {why}" for what, why in self.refused]
        return "\n\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from shoal.report import draw

        charts = self.charts()
        drawn = [draw(charts[name], "svg").decode() for name in ("risk", "effects", "dependence") if name in charts]
        parts = [f"<strong>What is risked</strong>{self.privacy._repr_html_()}"]
        parts += [f"<strong>What is kept</strong>{self.utility._repr_html_()}"]
        parts += [f"<strong>Not measured</strong>{html_table(self.refused)}"] if self.refused else []
        parts += [f'<div style="display:inline-block;margin-right:1.5em">{svg}</div>' for svg in drawn]
        return f"<div>{''.join(parts)}</div>"
