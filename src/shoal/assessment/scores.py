"""What a measurement says: a number, which way is better, what to compare it with, and one line that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal

from shoal.notebook import html_table

Form = Literal["share", "number", "count"]


@dataclass(frozen=True)
class Score:
    """One number about a release.

    Attributes
    ----------
    name, title : str
        For programs and for people.
    value : float or None
        None where it cannot be told.
    better : {"higher", "lower"}
    reference : float or None
        What an independent sample of the same population, as large as the original, would score.
    reading : str
        The number in one line.
    form : {"share", "number", "count"}
        How it is written.
    people : int or None
        Of how many people `value` counts a share or number: a public edition does not tell small groups.
    personal : bool
        Whether it is about a single person: a public edition leaves it out.
    """

    name: str
    title: str
    value: float | None
    better: Literal["higher", "lower"]
    reference: float | None
    reading: str
    form: Form = "share"
    people: int | None = None
    personal: bool = False

    def written(self) -> tuple[str, str]:
        """Return value and reference as text."""
        return write_number(self.value, self.form), write_number(self.reference, self.form)


def write_number(value: float | None, form: str = "number") -> str:
    """Return a number as people write it: a share in per cent, three to four digits that count."""
    if value is None or isnan(value):
        return "-"
    if form == "count":
        return f"{value:,.0f}"
    if form == "share":
        percent = 100 * value
        edge = min(abs(percent), abs(percent - 100))  # near nothing and near all, more digits count
        digits = 0 if edge == 0 else 1 if edge >= 1 else 2 if edge >= 0.1 else 3
        return f"{percent:.{digits}f} %"
    return f"{value:.4g}"


class Scores(Mapping[str, Score]):
    """Scores by name, in the order in which they are read."""

    def __init__(self, scores: Iterable[Score]) -> None:
        self._scores = {score.name: score for score in scores}

    def __getitem__(self, name: str) -> Score:
        return self._scores[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def __str__(self) -> str:
        rows = [(score.title, *score.written(), score.better) for score in self.values()]
        widths = [max([len(row[i]) for row in rows] + [len(head)]) for i, head in enumerate(_HEADS)]
        lines = [
            "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(pairs))
            for pairs in (list(zip(row, widths, strict=True)) for row in [_HEADS, *rows])
        ]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(score.title, *score.written(), score.better, score.reading) for score in self.values()]
        return html_table(rows, (*_HEADS, "reading"), numbers=(1, 2))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the scores as plain data."""
        return [vars(score).copy() for score in self.values()]


_HEADS = ("", "value", "independent sample", "better")
