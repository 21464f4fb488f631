"""What a claim is, and the words and rules that claims share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.studies.summarising import series

Tables = Mapping[str, pl.DataFrame]

SMALL_BIAS = 0.03  # "low" or "nearly constant": within three points of what untouched members give
SLIGHT_LOSS = 0.2  # "slightly" lower: at most a fifth of R2
MODERATE = 100  # up to which k a claim holds at least if it holds in part


@dataclass(frozen=True)
class Claim:
    """What the paper says, and what became of it.

    Attributes
    ----------
    name : str
    where : str
        In the paper.
    said, measured, why : str
    verdict : {"holds", "in part", "does not hold", "cannot be told"}
    """

    name: str
    where: str
    said: str
    measured: str
    verdict: str
    why: str = ""


VERDICTS = ("holds", "in part", "does not hold", "cannot be told")
_VERDICT = {True: VERDICTS[0], False: VERDICTS[2]}
Check = Callable[[Tables], tuple[Any, ...]]  # what was measured; True, False, None (in part) or words; why
Judge = Callable[[Tables], Claim]


def collect(claims: list[Judge]) -> Callable[[str, str], Callable[[Check], Check]]:
    """Return a decorator that adds claims to a list: where in the paper, what it says, and how to check it."""

    def claim(where: str, said: str) -> Callable[[Check], Check]:
        def add(check: Check) -> Check:
            def judge(tables: Tables) -> Claim:
                measured, holds, *why = check(tables)
                verdict = holds if isinstance(holds, str) else "in part" if holds is None else _VERDICT[bool(holds)]
                return Claim(check.__name__.removeprefix("_"), where, said, measured, verdict, *why)

            claims.append(judge)
            return check

        return add

    return claim


def percent(value: float, digits: int = 1) -> str:
    """Return a share in per cent."""
    return "not known" if np.isnan(value) else f"{100 * value:.{digits}f} %"


def few(values: Mapping[int, float], write: Callable[[float], str] = percent) -> str:
    """Return numbers at a few k, in words."""
    shown = [k for k in (2, 5, 10, 50, 100, 1000) if k in values]
    return ", ".join(f"{write(values[k])} (k = {k})" for k in shown)


def without_shift(tables: Tables, column: str, way: str, coding: str) -> dict[int, float]:
    """Return a column of prediction without shift by k."""
    return series(tables["without_shift"], column, way=way, coding=coding)


def is_kept(bias: Mapping[int, float], r2: Mapping[int, float], base: float) -> dict[int, bool]:
    """Return at which k the bias stays where it was and R2 loses little."""
    return {k: abs(bias[k]) < SMALL_BIAS and -r2[k] <= SLIGHT_LOSS * base for k in bias}


def up_to(kept: Mapping[int, bool]) -> tuple[bool | None, str]:
    """Return whether something holds at every k, at moderate k (None), or not; and up to which k, in words."""
    failed = [k for k, holds in kept.items() if not holds]
    if not failed:
        return True, "at every k"
    held = [k for k in kept if k < min(failed)]
    return None if held and max(held) >= MODERATE else False, f"up to k = {max(held)}" if held else "at no k"
