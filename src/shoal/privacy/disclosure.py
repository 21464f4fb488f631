"""What a table shows by itself: class sizes, uniqueness, presence; and risks in the words of the auditors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import InputError, suggest
from shoal.privacy.findings import Finding, wilson
from shoal.schema import read_any
from shoal.utility.fidelity import shared_cells

Floats = NDArray[np.float64]
THRESHOLDS = (0.05, 0.09, 0.2)


def class_sizes(table: Any, quasi_identifiers: Sequence[str] | None = None) -> Finding:
    """Return how many records share each combination of quasi-identifiers: what a class-size auditor reads.

    `rate` is the share of records that are alone in their combination, `details["sizes"]` the sizes of all classes,
    `details["k"]` the smallest: k-anonymity in the sense of equal rows. On a release of shoal that is usually 1
    although nobody can be picked out above 1/k, because the guarantee is about which record is whose.

    Examples
    --------
    >>> print(class_sizes([[1, 1], [1, 1], [2, 1]]))
    1 of 3 records (33.33%) are alone in their combination; the smallest of 2 classes has 1.
    """
    frame, names = _read(table, quasi_identifiers)
    cells, _ = shared_cells(frame, frame, names)
    sizes = np.bincount(cells)
    alone, n = int((sizes == 1).sum()), len(frame)
    reading = (
        f"{alone:,} of {n:,} records ({alone / n:.2%}) are alone in their combination; the smallest of {len(sizes):,} "
        f"classes has {sizes.min()}."
    )
    details = {"sizes": sizes, "k": int(sizes.min()), "median": float(np.median(sizes)), "classes": len(sizes)}
    return Finding("uniqueness", alone / n, wilson(alone / n, n), reading, details)


def presence(
    original: Any, released: Any, quasi_identifiers: Sequence[str] | None = None, population: Any = None
) -> Finding:
    """Return how many people who are alone in their combination show in the release that they are in the data.

    `rate` is the share of such people whose combination occurs in the release. With `population`, a table of everybody
    who could be in the data, only those count who are alone in it: for them the release proves that they are in.

    Parameters
    ----------
    original, released, population : tables or arrays with the same columns
        Need not be aligned.
    quasi_identifiers : list of str, default all columns that both tables have

    Examples
    --------
    >>> print(presence([[1], [1], [7]], [[7], [1], [1]]))
    1 person is alone in a combination; the release shows that combination for 1 (100.00%), and so that somebody with \
it is in the data.
    """
    frame, names = _read(original, quasi_identifiers)
    if quasi_identifiers is None:
        names = [name for name in names if name in read_any(released, "released").columns]
    other, _ = _read(released, names)
    before, after = shared_cells(frame, other, names)
    crowd = np.bincount(before, minlength=int(max(before.max(), after.max())) + 1)
    alone = crowd[before] == 1
    if population is not None:
        everyone, _ = _read(population, names)
        here, there = shared_cells(frame, everyone, names)
        alone &= np.bincount(there, minlength=int(max(here.max(), there.max())) + 1)[here] == 1
    shown = np.isin(before[alone], after)
    total, seen = int(alone.sum()), int(shown.sum())
    rate = seen / total if total else 0.0
    people = f"{total:,} {'person is' if total == 1 else 'people are'}"
    reading = (
        f"{people} alone in a combination; the release shows that combination for {seen:,} ({rate:.2%}), and so that "
        "somebody with it is in the data."
        if total
        else "Nobody is alone in a combination, so no combination proves anybody's presence."
    )
    return Finding("presence", rate, wilson(rate, max(total, 1)), reading, {"alone": total, "shown": seen})


@dataclass(frozen=True)
class Summary:
    """Prosecutor, journalist and marketer risk.

    Attributes
    ----------
    prosecutor : Finding
        He knows that the person is in the data. `rate`: the highest risk.
    journalist : Finding
        He does not know it. `rate`: the highest risk, times the chance that the person is in the data.
    marketer : Finding
        He wants many people, whoever they are. `rate`: the share he is expected to find.
    """

    prosecutor: Finding
    journalist: Finding
    marketer: Finding

    @property
    def reading(self) -> str:
        """The result in one sentence."""
        return " ".join(f.reading for f in (self.prosecutor, self.journalist, self.marketer))

    def __str__(self) -> str:
        return self.reading


def summarise_risk(
    per_record: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    sampling_fraction: float = 1.0,
    thresholds: Sequence[float] = THRESHOLDS,
) -> Summary:
    """Return risks of records in the words of the auditors.

    Parameters
    ----------
    per_record : Risk, or array of shape (n,)
        The chance of every record, as `reidentification_risk` returns it; of a raw table: 1 / class size.
    sizes : array of shape (n,), default 1
        How many records of the data share each record's quasi-identifiers (f); 1 is the cautious choice.
    sampling_fraction : float, default 1
        The share of the population that is in the data. The population's F people with the same quasi-identifiers are
        not known: as in mu-Argus, F given f is negative binomial, and f E[1/F] is the chance that one of the f is
        the person sought.
    thresholds : list of float
        `details` has the share of records above each.

    Examples
    --------
    >>> print(summarise_risk([0.5, 0.5, 0.1, 0.1], sampling_fraction=0.1).journalist)
    Not knowing who is in the data (a share of 0.1 of the population), the highest chance to be expected is 0.1279.
    """
    risk = _as_numbers(getattr(per_record, "per_record", per_record), "per_record")
    if risk.ndim != 1 or not len(risk) or not ((risk >= 0) & (risk <= 1)).all():
        raise InputError("per_record must be chances between 0 and 1, one for every record.")
    if not isinstance(sampling_fraction, Real) or not 0 < float(sampling_fraction) <= 1:
        raise InputError(f"sampling_fraction={sampling_fraction!r} must be above 0 and at most 1.")
    f = np.ones(len(risk)) if sizes is None else _as_numbers(sizes, "sizes")
    thresholds = _as_numbers(thresholds, "thresholds").tolist()
    if f.shape != risk.shape or not (f >= 1).all():
        raise InputError("sizes must be the size of every record's class, 1 or more.")
    n, p = len(risk), float(sampling_fraction)
    outside = risk * f * _expected_inverse(f, p)
    mean = float(risk.mean())
    found = n * mean
    spread = 1.96 * float(np.sqrt((risk * (1 - risk)).sum()))
    low, high = max(0.0, found - spread) / n, min(float(n), found + spread) / n
    return Summary(
        _highest("prosecutor", risk, thresholds, "Knowing that somebody is in the data, the highest chance to find the"
                 " record is"),
        _highest("journalist", outside, thresholds, "Not knowing who is in the data"
                 f" (a share of {p:g} of the population), the highest chance to be expected is"),
        Finding("marketer", mean, (low, high), f"Of {n:,} records {found:,.1f} are expected to be found"
                f" ({low * n:,.0f} to {high * n:,.0f}).", _shares(risk, thresholds), risk),
    )  # fmt: skip


def _highest(name: str, risk: Floats, thresholds: Sequence[float], said: str) -> Finding:
    top = float(risk.max())
    return Finding(name, top, (top, top), f"{said} {top:.4f}.", _shares(risk, thresholds), risk)


def _shares(risk: Floats, thresholds: Sequence[float]) -> dict[str, float]:
    return {f"above {threshold:g}": float((risk > threshold).mean()) for threshold in thresholds}


def _expected_inverse(f: Floats, p: float) -> Floats:
    """Return E[1/F] for F negative binomial, the trials until f successes of probability p (Benedetti, Franconi)."""
    if p == 1:
        return 1 / f
    sizes, at = np.unique(f, return_inverse=True)
    # f E[1/F] is the integral of p / (p + (1 - p) u^(1/f)) over 0 < u < 1; here u = exp(-x)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    x = (np.arange(0, 40, 1.0)[:, None] + (nodes + 1) / 2).ravel()
    mass = np.exp(-x) * np.tile(weights / 2, 40)
    expected = np.array([mass @ (p / (p + (1 - p) * np.exp(-x / size))) for size in sizes])
    return (expected / sizes)[at]


def _as_numbers(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # which would quote a value
        raise InputError(f"{what} must be numbers.") from None


def _read(table: Any, quasi_identifiers: Sequence[str] | None) -> tuple[nw.DataFrame[Any], list[str]]:
    frame = read_any(table, "table")
    names = list(frame.columns if quasi_identifiers is None else quasi_identifiers)
    if not names or isinstance(quasi_identifiers, str):
        raise InputError("quasi_identifiers must be a list of at least one column.")
    for name in names:
        if name not in frame.columns:
            raise InputError(f"quasi_identifiers names {name!r}, which is not a column{suggest(name, frame.columns)}")
    return frame, names
