"""The frontier: risk against utility of every setting, as a table, a chart and a page."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Real
from typing import Any

import numpy as np

from shoal.assessment.editions import check_edition, round_numbers
from shoal.choosing import (
    LOADINGS,
    TOLERANCE,
    Outcome,
    count_tried,
    find_response,
    k_for,
    recommend,
    spell_out,
    try_settings,
)
from shoal.clustering.kmember import check_enough, check_k
from shoal.encoding import encode
from shoal.errors import InputError
from shoal.grouping import find_clusters, make_points
from shoal.notebook import html_table
from shoal.people import find_people
from shoal.progress import Progress, Reporter
from shoal.randomness import make_generator
from shoal.schema import read_frame, read_schema
from shoal.settings import Settings

KS = (5, 10, 20, 50)
LIMIT = 0.05
WAYS = ("gaussian", "permute", "resample", "centroid")
_HEADS = ("k", "setting", "bound", "optimal", "nearest", "joint", "prediction", "shift error", "utility", "")


@dataclass(frozen=True, repr=False)
class Frontier:
    """What every setting gives, and which one is recommended.

    Attributes
    ----------
    outcomes : list of Outcome
    limit : float
        The bound that a data owner allows.
    recommended : Outcome or None
        None if no k that was tried meets the limit.
    why : str
    people, tried : int
        How many people there are, and on how many the settings were tried.
    """

    outcomes: list[Outcome]
    limit: float
    recommended: Outcome | None
    why: str
    people: int
    tried: int
    target: str | None

    @property
    def table(self) -> Any:
        """The outcomes as a polars table, a row for every setting."""
        import polars as pl

        rows = [{**outcome.to_dict(), "recommended": outcome is self.recommended} for outcome in self.outcomes]
        return pl.DataFrame(rows)

    @property
    def chart(self) -> Any:
        """Risk against utility, as an Altair chart."""
        from shoal.report import frontier_chart

        return frontier_chart(self.to_dict())

    def to_dict(self, edition: str = "internal") -> dict[str, Any]:
        """Return everything as plain data; in public to three digits, without the highest chance of anybody."""
        check_edition(edition)
        public = edition == "public"
        rows = [
            {name: value for name, value in outcome.to_dict().items() if not (public and name == "optimal_max")}
            | {"recommended": outcome is self.recommended}
            for outcome in self.outcomes
        ]
        data = {
            "format": "shoal frontier 1",
            "edition": edition,
            "limit": self.limit,
            "people": self.people,
            "tried": self.tried,
            "target": self.target,
            "why": self.why,
            "outcomes": rows,
        }
        return dict(round_numbers(data, 3 if public else 6))

    def to_json(self, path: str | os.PathLike[str], *, edition: str = "internal") -> None:
        """Write everything as JSON, mode 0600."""
        from shoal.report import write_json

        write_json(self.to_dict(edition), path)

    def to_html(self, path: str | os.PathLike[str], *, edition: str = "internal") -> None:
        """Write a page: the chart, the table, the recommendation."""
        from shoal.report import write_page

        write_page(None, path, frontier=self.to_dict(edition))

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [_HEADS]
        for o in self.outcomes:
            figures = (o.bound, o.optimal, o.nearest, o.joint, o.prediction, o.shift, o.utility)
            mark = "recommended" if o is self.recommended else ""
            rows.append((str(o.k), o.name, *(f"{v:.4f}" if not math.isnan(v) else "-" for v in figures), mark))
        return rows

    def __str__(self) -> str:
        rows = self._rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
        lines = []
        for row in rows:
            k, name, *figures, mark = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join([k, name.strip().ljust(widths[1]), *figures, mark.strip()]).rstrip())
        return "\n".join([*lines, self.why, self.predicted])

    @property
    def predicted(self) -> str:
        """What was predicted, in a sentence."""
        if self.target is None:
            return "Nothing was predicted: no sensitive column varies enough."
        if all(math.isnan(outcome.prediction) for outcome in self.outcomes):
            return f"Hardly anything of {self.target!r} can be predicted, so that nothing of that can be lost."
        return f"Predicted: {self.target!r}."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from shoal.report import draw

        heads, *rows = self._rows()
        drawn = draw(self.chart, "svg").decode()
        return f"<div>{drawn}<p>{escape(self.why)}</p>{html_table(rows, heads, numbers=(0, *range(2, 9)))}</div>"


def frontier(
    table: Any,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    weight: str | None = None,
    unit: str | None = None,
    others: str | None = "drop",
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    ks: Sequence[int] = KS,
    methods: Sequence[str] = WAYS,
    loadings: Sequence[float] = LOADINGS,
    clustering: Any = "auto",
    limit: float = LIMIT,
    tolerance: float = TOLERANCE,
    target: str | None = None,
    n_releases: int | None = None,
    random_state: Any = None,
    progress: bool | Progress | None = None,
) -> Frontier:
    """Return risk against utility over k and methods, and which setting to take under a limit on the risk.

    Every setting is tried on the table itself, on at most 20,000 people in whole clusters.

    Parameters
    ----------
    table, quasi_identifiers, sensitive, identifiers, weight, unit, others, kinds, clustering, n_releases, progress
        As in `shoal.anonymize`; others="drop" by default.
    ks : list of int, default (5, 10, 20, 50)
        The smallest k that the limit allows is tried too.
    methods : list of {"gaussian", "permute", "resample", "centroid", "transport", "rank", "cdf"}
        "gaussian" is "transport"; default: all methods.
    loadings : list of float, default (1/3, 0.1, 0.03)
        For the Gaussian dither.
    limit : float, default 0.05
        The highest chance 1/k that is allowed; many data owners take 0.05, others 0.09.
    tolerance : float, default 0.02
        Settings whose utility is at most so much below the best count as equally good.
    target : str, default: the first sensitive column that can be predicted, numbers and orders before classes
        Of classes, whether it is the most frequent one.
    random_state : int or numpy.random.Generator, default None

    Returns
    -------
    Frontier
        `table` (polars), `chart` (Altair), `recommended` and `why`.

    Examples
    --------
    >>> import shoal
    >>> found = shoal.frontier(
    ...     shoal.datasets.load_cohort(400), quasi_identifiers=["sex", "age"], sensitive=["cost"], ks=[5], limit=0.2,
    ...     methods=["permute", "centroid"], random_state=0)
    >>> found.recommended.name
    'permute'
    """
    _check_share("limit", limit)
    _check_share("tolerance", tolerance, lowest=0.0)
    wanted = _read_ks(ks, limit)
    frame = read_frame(table)
    schema = read_schema(
        frame,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        weight=weight,
        unit=unit,
        others=others,
        kinds=kinds,
    )
    columns = [encode(frame[column.name], column) for column in schema.quasi_identifiers]
    people = find_people(frame, schema, columns)
    check_enough(wanted[0], people.number, "row" if unit is None else "person")
    response = find_response(frame, schema, people, target)
    persons = [column.take(people.first) for column in columns]
    rng = make_generator(random_state)
    outcomes: list[Outcome] = []
    with Reporter(progress) as reporter:
        report = reporter.stage("frontier")
        usable = [k for k in wanted if k <= people.number]
        for done, k in enumerate(usable):
            base = Settings(k, "permute", None, clustering, 0.0, 1 / 3, "observed")
            base.check()
            points = make_points(persons, people, np.empty((people.number, 0)), base)
            labels = find_clusters(points, base, Reporter(progress=False))
            settings = spell_out(base, methods, loadings)
            for i, outcome in enumerate(try_settings(persons, labels, response, settings, n_releases, rng)):
                outcomes.append(outcome)
                report((done + (i + 1) / len(settings)) / len(usable))
    recommended, why = recommend(outcomes, limit, tolerance)
    return Frontier(
        outcomes,
        float(limit),
        recommended,
        why,
        people.number,
        count_tried(people.number),
        None if response is None else response.name,
    )


def _check_share(name: str, value: Any, lowest: float = 1e-6) -> None:
    if not isinstance(value, Real) or isinstance(value, bool) or not lowest <= float(value) <= 1:
        raise InputError(f"{name}={value!r} must be a number from 0 to 1, such as 0.05.")


def _read_ks(ks: Sequence[int], limit: float) -> list[int]:
    if isinstance(ks, str) or not isinstance(ks, Sequence) or not len(ks):
        raise InputError("ks must be a list of whole numbers, such as [5, 10, 20].")
    for k in ks:
        check_k(k)
    return sorted({*(int(k) for k in ks), k_for(limit)})
