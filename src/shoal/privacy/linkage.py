"""The paper's linkage attack on two aligned tables, and the variants an auditor asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.encoding import EncodedColumn, encode_table, joint_codes, positions
from shoal.errors import InputError, suggest
from shoal.privacy.classes import find_matches, tolerance_of
from shoal.privacy.findings import Finding, wilson
from shoal.randomness import make_generator
from shoal.schema import read_any

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_AT_ONCE = 1 << 22  # distances compared at once


def simulate_linkage(
    X: Any,
    X_released: Any,
    *,
    columns: Sequence[str | int] | None = None,
    noise: float = 0.0,
    sensitive: Any = None,
    sensitive_released: Any = None,
    tolerance: float = 0.0,
    n_trials: int = 100,
    n_people: int | None = None,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    random_state: Any = None,
) -> Finding:
    """Match every original record to the nearest released one and count how often it is the same person's.

    Both tables must have the same people in the same rows (`Anonymizer.fit_transform` gives such a pair; a release
    does not). Distances are Euclidean on standardised columns, and ties are broken at random.

    Parameters
    ----------
    X, X_released : tables or arrays of shape (n, d)
        Quasi-identifiers before and after, aligned.
    columns : list, default all
        The columns the attacker knows, by name (of an array: by number).
    noise : float, default 0
        How wrong the attacker's knowledge is: numbers are off by a Gaussian error of so many standard deviations, and
        with this probability a level is another person's.
    sensitive, sensitive_released : tables or arrays of shape (n,) or (n, s), default none
        Sensitive values that the attacker knows, and as released (default: the same): only records that agree with
        them are candidates. An attacker of this kind is *not* bounded by 1/k.
    tolerance : float, default 0
        A number agrees if it differs by at most this share of the value known.
    n_trials : int, default 100
        How often the attack is simulated, each time with fresh ties and fresh noise.
    n_people : int, default all
        Attack only so many people, drawn at random.
    kinds, random_state
        As in `shoal.anonymize`.

    Returns
    -------
    Finding
        `rate` is the mean over the trials; `details["trials"]` has the rate of every trial, `details["people"]` the
        rows attacked. Without noise `per_record` is exact: the average over ties.

    Examples
    --------
    Two of three people swap their rows: only the third is found.

    >>> simulate_linkage([[1.0], [2.0], [9.0]], [[2.0], [1.0], [9.0]]).per_record.tolist()
    [0.0, 0.0, 1.0]
    """
    encoded = _choose(encode_table(X, kinds, X_released), columns)
    n = length_of(X, X_released)
    if not isinstance(noise, Real) or not 0 <= float(noise) < np.inf:
        raise InputError(f"noise={noise!r} must be a number of standard deviations, 0 or more.")
    for name, count in (("n_trials", n_trials), ("n_people", n_people)):
        if count is not None and (not isinstance(count, int | np.integer) or isinstance(count, bool) or count < 1):
            raise InputError(f"{name}={count!r} must be a whole number of at least 1.")
    rng = make_generator(random_state)
    people = np.arange(n) if n_people is None or n_people >= n else np.sort(rng.choice(n, n_people, replace=False))
    agree = None
    if sensitive is not None:
        agree = Agreement.read(sensitive, sensitive if sensitive_released is None else sensitive_released, n, tolerance)
    trials = np.empty(n_trials)
    chances = np.zeros(len(people))
    rounds = n_trials if noise else 1
    for trial in range(rounds):
        known = [column.take(people) for column in encoded]
        if noise:
            known = [_blur(part, column, n, float(noise), rng) for part, column in zip(known, encoded, strict=True)]
        released = [column.take(np.arange(n, 2 * n)) for column in encoded]
        whole = [_stack(column, n, part, after) for column, part, after in zip(encoded, known, released, strict=True)]
        placed = positions(whole, reference=n)
        chance = match_nearest(placed[n : n + len(people)], placed[n + len(people) :], people, agree)
        chances += chance / rounds
        trials[trial] = (rng.random(len(chance)) < chance).mean()
    for trial in range(rounds, n_trials):
        trials[trial] = (rng.random(len(chances)) < chances).mean()
    rate = float(chances.mean())
    details = {"trials": trials, "people": people, "found_for_certain": int((chances == 1).sum())}
    return Finding(
        "linkage", rate, wilson(rate, len(people)), _read(rate, len(people), columns, noise, agree), details, chances
    )


def _read(rate: float, n: int, columns: Any, noise: float, agree: Agreement | None) -> str:
    knows = "all quasi-identifiers" if columns is None else f"{len(columns)} of the quasi-identifiers"
    knows += f", wrong by {noise:g} standard deviations" if noise else ""
    knows += " and the sensitive values" if agree is not None else ""
    bounded = " Whoever knows sensitive values is not bound by 1/k." if agree is not None else ""
    return f"An attacker who knows {knows} finds {rate:.2%} of {n:,} people by the nearest match.{bounded}"


def length_of(X: Any, X_released: Any) -> int:
    """Return how many people two aligned tables have."""
    sizes = [len(read_any(table, "X")) for table in (X, X_released)]
    if sizes[0] != sizes[1]:
        raise InputError(
            f"X and X_released must have the same people in the same rows, but they have {sizes[0]} and {sizes[1]}."
        )
    return sizes[0]


def _choose(encoded: list[EncodedColumn], columns: Sequence[str | int] | None) -> list[EncodedColumn]:
    if columns is None:
        return encoded
    if isinstance(columns, str) or not len(columns):
        raise InputError("columns must be a list of the columns that the attacker knows, at least one.")
    known = {column.name: column for column in encoded}
    names = [f"x{name}" if isinstance(name, int | np.integer) else name for name in columns]
    for name in names:
        if name not in known:
            raise InputError(f"columns names {name!r}, which is not a column{suggest(name, known)}")
    return [known[name] for name in names]


def _stack(column: EncodedColumn, n: int, known: EncodedColumn, released: EncodedColumn) -> EncodedColumn:
    """Return the original rows (which say how to standardise), then what is known, then what is released."""
    return column.take(np.arange(n)).followed_by(known).followed_by(released)


def _blur(part: EncodedColumn, column: EncodedColumn, n: int, noise: float, rng: np.random.Generator) -> EncodedColumn:
    """Return what the attacker believes: numbers with an error, levels now and then another person's."""
    if part.numbers is None:
        wrong = rng.random(len(part.codes)) < noise
        other = column.codes[rng.integers(0, n, len(part.codes))]
        codes = np.where(wrong, other, part.codes)
        return EncodedColumn(column.name, column.kind, codes, column.n_levels, part.missing, None)
    known = column.numbers[:n] if column.numbers is not None else np.empty(0)
    scale = noise * float(np.nanstd(known))
    numbers = part.numbers + scale * rng.standard_normal(len(part.numbers))
    return EncodedColumn(column.name, column.kind, part.codes, column.n_levels, part.missing, numbers)


def check_tolerance(tolerance: Any) -> None:
    """Refuse a tolerance that is no share of a value."""
    if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < np.inf:
        raise InputError(f"tolerance={tolerance!r} must be a share of the value, 0 or more.")


class Agreement:
    """Which released records agree with the sensitive values that an attacker knows."""

    def __init__(self, known: list[EncodedColumn], n: int, tolerance: float) -> None:
        self.columns, self.n, self.tolerance = known, n, tolerance

    @classmethod
    def read(cls, sensitive: Any, released: Any, n: int, tolerance: float) -> Agreement:
        """Check what was given; a single column may come without its second dimension."""
        check_tolerance(tolerance)
        both = [as_table(values) for values in (sensitive, released)]
        if any(len(read_any(table, "sensitive")) != n for table in both):
            raise InputError(f"sensitive must have {n} rows, as X has.")
        return cls(encode_table(both[0], None, both[1]), n, float(tolerance))

    def of(self, person: int, rows: Index) -> NDArray[np.bool_]:
        """Return which of the released rows agree with what is known of a person."""
        agree = np.ones(len(rows), dtype=bool)
        for column in self.columns:
            if column.numbers is None or column.missing[person]:
                agree &= column.codes[self.n + rows] == column.codes[person]
                continue
            value = column.numbers[person]
            gap = np.abs(column.numbers[self.n + rows] - value)  # NaN where missing: does not agree
            agree &= gap <= self.tolerance * abs(value) + 1e-12 * abs(value)
        return agree


def as_table(values: Any) -> Any:
    """Return one or several columns as what `encode_table` takes."""
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        return values
    if hasattr(values, "to_frame"):  # a pandas or polars series
        return values.to_frame(name="sensitive") if hasattr(values, "index") else values.to_frame()
    array = np.asarray(values)
    if array.ndim == 0:
        raise InputError("sensitive must be a table, or values of everybody.")
    if array.dtype.kind in "OUS":
        import polars as pl

        array = array.reshape(len(array), -1)
        return pl.DataFrame({f"y{j}": [str(v) for v in column] for j, column in enumerate(array.T)})
    return array.reshape(len(array), -1)


def match_nearest(known: Floats, released: Floats, people: Index, agree: Agreement | None) -> Floats:
    """Return for every person attacked the chance that the nearest match, ties at random, is the person's record."""
    if agree is not None:
        return _match_agreeing(known, released, people, agree)
    points, at = np.unique(released.round(12), axis=0, return_inverse=True)
    at = at.ravel()
    crowd = np.bincount(at)
    queries, of_person = np.unique(known.round(12), axis=0, return_inverse=True)
    of_person = of_person.ravel()
    starts, matched = find_matches(points, queries)
    total = np.add.reduceat(crowd[matched], starts[:-1])
    query = np.repeat(np.arange(len(queries)), np.diff(starts))
    keys = np.sort(query * len(points) + matched)
    wanted = of_person * len(points) + at[people]
    found = keys[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)] == wanted
    return found / total[of_person]


def _match_agreeing(known: Floats, released: Floats, people: Index, agree: Agreement) -> Floats:
    """Return the same, only records that agree with the sensitive values being candidates."""
    chances = np.zeros(len(people))
    tolerance = tolerance_of(released)
    # equal knowledge, equal candidates
    groups = np.unique(joint_codes([column.codes for column in agree.columns])[people], return_inverse=True)[1]
    everyone = np.arange(agree.n)
    for group in np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]):
        candidates = everyone[agree.of(people[group[0]], everyone)]
        if not len(candidates):
            continue
        rows = max(1, _AT_ONCE // len(candidates))
        for start in range(0, len(group), rows):
            part = group[start : start + rows]
            distance = np.zeros((len(part), len(candidates)))
            for a, b in zip(known[part].T, released[candidates].T, strict=True):
                distance += (a[:, None] - b) ** 2
            distance = np.sqrt(distance)
            tied = distance <= distance.min(axis=1, keepdims=True) + tolerance
            hit = (tied & (candidates == people[part][:, None])).any(axis=1)
            chances[part] = hit / tied.sum(axis=1)
    return chances
