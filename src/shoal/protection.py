"""Protect sensitive columns themselves, where asked: rounding, top- and bottom-coding, noise that keeps the mean."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from shoal.encoding import encode, restore
from shoal.errors import InputError, suggest
from shoal.people import People
from shoal.schema import Schema

Floats = NDArray[np.float64]
STEPS = ("top", "bottom", "noise", "round")  # in this order
_DOMINANT = 0.1  # share of the total: noise that keeps the mean leaves a value that carries more nearly as it is
_LARGEST_NOISE = 1 / 3  # so that no sign changes: the noise ends at three standard deviations


def check_protection(protect: Mapping[str, Mapping[str, float]] | None, schema: Schema) -> dict[str, dict[str, float]]:
    """Return what is asked for each column, refusing what is not known."""
    if protect is None:
        return {}
    if not isinstance(protect, Mapping):
        raise InputError("protect must map sensitive columns to steps, such as {'cost': {'round': 100}}.")
    sensitive = {column.name: column for column in schema.columns if column.role == "sensitive"}
    for name, steps in protect.items():
        if name not in sensitive:
            raise InputError(f"protect names {name!r}, which is not a sensitive column{suggest(name, sensitive)}")
        if sensitive[name].kind != "numeric":
            raise InputError(f"protect needs numbers, but {name!r} is {sensitive[name].kind or 'of another dtype'}.")
        if not isinstance(steps, Mapping) or not steps:
            raise InputError(f"protect[{name!r}] must map steps to numbers, such as {{'round': 100}}.")
        for step, amount in steps.items():
            if step not in STEPS:
                raise InputError(f"protect[{name!r}] names {step!r}, which is not a step{suggest(step, STEPS)}")
            _check_amount(name, step, amount)
    return {name: {step: float(steps[step]) for step in STEPS if step in steps} for name, steps in protect.items()}


def _check_amount(name: str, step: str, amount: Any) -> None:
    ranges = {
        "noise": (_LARGEST_NOISE, "a share of the value, above 0 and at most 1/3"),
        "round": (1e300, "the unit to round to, above 0"),
        "top": (0.5, "the share of the largest values, above 0 and at most 1/2"),
        "bottom": (0.5, "the share of the smallest values, above 0 and at most 1/2"),
    }
    largest, meaning = ranges[step]
    if not isinstance(amount, Real) or isinstance(amount, bool) or not 0 < float(amount) <= largest:
        raise InputError(f"{step} in protect[{name!r}] must be {meaning}, but it is {amount!r}.")


def protect_columns(
    frame: nw.DataFrame[Any],
    schema: Schema,
    steps: Mapping[str, Mapping[str, float]],
    people: People,
    k: int,
    rng: np.random.Generator,
) -> nw.DataFrame[Any]:
    """Return the table with its sensitive columns protected, dtypes kept."""
    columns = {column.name: column for column in schema.columns}
    fresh = []
    for name, amounts in steps.items():
        encoded = encode(frame[name], columns[name])
        if encoded.numbers is None or not encoded.holds_numbers:
            raise InputError(f"protect cannot write numbers into the dtype of {name!r}; convert it first.")
        known = ~encoded.missing
        values = encoded.numbers[known]
        for step, amount in amounts.items():
            if step == "noise":
                _refuse_dominant(values, people.of_row[known], name)
                values = add_noise(values, amount, rng)
            elif step == "round":
                if frame[name].dtype.is_integer() and not amount.is_integer():
                    raise InputError(f"round in protect[{name!r}] must be a whole number, as the column's are.")
                values = np.round(values / amount) * amount
            else:
                values = code_extremes(values, amount, top=step == "top", person=people.of_row[known], k=k, name=name)
        numbers = np.full(len(frame), np.nan)
        numbers[known] = values
        if frame[name].dtype.is_integer():
            numbers[known] = _round_to_total(values, rng)
        fresh.append(restore(frame[name], np.arange(len(frame)), numbers))
        written = encode(fresh[-1], columns[name]).numbers
        if written is None or not np.allclose(written[known], numbers[known], rtol=1e-6, atol=0.0):
            raise InputError(
                f"protect makes numbers that the dtype of {name!r} cannot hold; convert it to a wider one."
            )
    return frame.with_columns(*fresh) if fresh else frame


def _refuse_dominant(values: Floats, person: NDArray[np.int64], name: str) -> None:
    """Refuse noise where it would spare the person who needs it most."""
    shares = np.bincount(person, weights=np.abs(values) / max(float(np.abs(values).max()), 1e-300))
    if shares.max() > _DOMINANT * shares.sum() > 0:
        raise InputError(
            f"noise in protect[{name!r}] keeps the mean, and would leave a person who carries over a tenth of the "
            "column's total nearly as it is; take 'top' or 'bottom' as well, which come first."
        )


def add_noise(values: Floats, amount: float, rng: np.random.Generator) -> Floats:
    """Return values times 1 plus noise of standard deviation about `amount`, at most three of them, the mean kept.

    Zeros stay zeros and no sign changes.

    Examples
    --------
    >>> noisy = add_noise(np.array([0.0, 10.0, 20.0]), 0.1, np.random.default_rng(0))
    >>> float(noisy[0]), round(float(noisy.mean()), 9)
    (0.0, 10.0)
    """
    weight = np.abs(values)
    if not weight.sum():
        return values
    noise = np.clip(rng.standard_normal(len(values)), -3, 3) * amount * np.sign(values)
    shift = float(weight @ noise / weight.sum())
    limit = 3 * amount
    noise = noise - shift
    noise = noise if np.abs(noise).max() <= limit else noise * (limit / np.abs(noise).max())  # still of mean 0
    return values + weight * noise


def code_extremes(values: Floats, share: float, *, top: bool, person: NDArray[np.int64], k: int, name: str) -> Floats:
    """Return values with the largest (or smallest) share replaced by its mean: the total is kept."""
    order = np.sort(values)
    count = max(1, int(np.ceil(share * len(values))))
    beyond = values >= order[-count] if top else values <= order[count - 1]
    owners = len(np.unique(person[beyond]))
    if owners < k:
        raise InputError(
            f"{'top' if top else 'bottom'} in protect[{name!r}] reaches {owners} people, fewer than k={k}: their mean "
            "would not hide them. Take a larger share."
        )
    return np.where(beyond, values[beyond].mean(), values)


def _round_to_total(values: Floats, rng: np.random.Generator) -> Floats:
    """Return whole numbers near the values, with the same total up to rounding it."""
    low = np.floor(values)
    short = round(float((values - low).sum()))
    order = np.lexsort((rng.random(len(values)), -(values - low)))
    low[order[:short]] += 1.0
    return low


def describe_protection(steps: Mapping[str, Mapping[str, float]]) -> list[dict[str, str]]:
    """Return for the certificate what was done to each column, without any value of the data."""
    words = {
        "noise": "multiplied by noise of relative standard deviation {0:g}, the mean kept",
        "top": "the largest {0:.2%} replaced by their mean",
        "bottom": "the smallest {0:.2%} replaced by their mean",
        "round": "rounded to multiples of {0:g}",
    }
    return [
        {"column": name, "done": "; ".join(words[step].format(amount) for step, amount in amounts.items())}
        for name, amounts in steps.items()
    ]
