"""What the paper says of prediction in rating areas, without privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from shoal.studies import published
from shoal.studies.claims.making import (
    Judge,
    Tables,
    collect,
    percent,
)

CLAIMS: list[Judge] = []
claim = collect(CLAIMS)


_WHY_AREAS = (
    "How sure this is for these respondents; the survey's own sampling error tells about markets. That non-parametric "
    "weights leave next to nothing is nearly by construction: over both directions of a halving they reproduce the "
    "mean that is predicted."
)


def _areas(tables: Tables, coding: str, shift: str) -> dict[str, Any]:
    rows = tables["area_summary"].filter(pl.col("coding") == coding, pl.col("shift") == shift)
    return rows.row(0, named=True)


def _say_areas(tables: Tables, coding: str, paper: Mapping[str, tuple[float, ...]]) -> str:
    """Return the mean absolute biases beside the paper's, in how many areas weights reduce it, and what is noise."""
    told = []
    for i, shift in enumerate(("none", "logistic", "nonparametric")):
        ours, theirs = _areas(tables, coding, shift), float(np.mean([abs(row[3 + i]) for row in paper.values()])) / 100
        fewer = "" if shift == "none" else f", smaller in {ours['areas_cut']} of {ours['areas']} areas"
        told.append(f"{shift} {percent(ours['size'], 2)}{fewer} (paper {percent(theirs, 2)})")
    said = "mean absolute bias over the areas: " + "; ".join(told)
    rows = tables["rating_areas"].filter(pl.col("coding") == coding, pl.col("shift") == "none")
    if "survey_error" in rows.columns:
        bias, error = rows["survey_bias"].to_numpy(), rows["survey_error"].to_numpy()
        clear = int((np.abs(bias) > 2 * error).sum())
        said += (
            f". The survey's own sampling error of an area's bias is {percent(float(error.mean()), 2)}, and the bias "
            f"without weights is beyond two of it in {clear} of {len(bias)} areas"
        )
    return said


def _cuts(row: Mapping[str, Any]) -> bool | None:
    """Return whether weights reduce the bias, beyond two standard errors; None if that cannot be told."""
    if not abs(row["cut"]) > 2 * row["cut_error"]:
        return None
    return bool(row["cut"] > 0)


@claim(
    "Rating areas, dummy-coded (Table 1)",
    "Without weights the bias is noticeable; weights reduce it in most areas, the non-parametric ones most.",
)
def _weights_reduce_the_dummy_coded_bias(tables: Tables) -> tuple[Any, ...]:
    measured = _say_areas(tables, "dummy", published.DUMMY_CODED)
    rows = {shift: _areas(tables, "dummy", shift) for shift in ("logistic", "nonparametric")}
    cuts = {shift: _cuts(row) for shift, row in rows.items()}
    most = {shift: row["areas_cut"] > row["areas"] / 2 for shift, row in rows.items()}
    if cuts["nonparametric"] is None:
        return measured, "cannot be told", _WHY_AREAS
    if not (cuts["nonparametric"] and most["nonparametric"]):
        return measured, False, _WHY_AREAS
    return measured, True if cuts["logistic"] and most["logistic"] else None, _WHY_AREAS


@claim(
    "Rating areas, numeric (Table 2)",
    "The non-parametric weights tend to reduce the bias in most areas; the logistic do not.",
)
def _weights_reduce_the_numeric_bias(tables: Tables) -> tuple[Any, ...]:
    measured = _say_areas(tables, "numeric", published.NUMERIC)
    row, other = _areas(tables, "numeric", "nonparametric"), _areas(tables, "numeric", "logistic")
    if _cuts(row) is None:
        return measured, "cannot be told", _WHY_AREAS
    if not (_cuts(row) and row["areas_cut"] > row["areas"] / 2):
        return measured, False, _WHY_AREAS
    return measured, None if _cuts(other) else True, _WHY_AREAS


@claim("Rating areas, numeric (Table 2)", "Without weights the numeric model is biased less than the dummy-coded one.")
def _numeric_is_biased_less(tables: Tables) -> tuple[Any, ...]:
    ours = {coding: _areas(tables, coding, "none") for coding in ("numeric", "dummy")}
    measured = ", ".join(f"{coding} {percent(row['size'], 2)}" for coding, row in ours.items())
    apart = ours["dummy"]["size"] - ours["numeric"]["size"]
    error = float(np.hypot(*(row["size_error"] for row in ours.values())))
    return measured, apart > 0 if abs(apart) > 2 * error else "cannot be told", _WHY_AREAS


@claim("Rating areas", "With weights, dummy-coded and numeric models are biased alike in most areas.")
def _weighted_models_agree(tables: Tables) -> tuple[Any, ...]:
    apart = {}
    for shift in ("none", "logistic", "nonparametric"):
        rows = tables["rating_areas"].filter(pl.col("shift") == shift)
        one, two = (rows.filter(pl.col("coding") == coding)["bias"].to_numpy() for coding in ("dummy", "numeric"))
        apart[shift] = float(np.median(np.abs(one - two)))
    measured = "median distance " + ", ".join(f"{shift} {percent(value, 2)}" for shift, value in apart.items())
    closer = [apart[shift] < 0.5 * apart["none"] for shift in ("logistic", "nonparametric")]
    return measured, True if all(closer) else None if any(closer) else False


@claim("Rating areas", "Weights cost a little R2: they make the members count unequally.")
def _weights_cost_a_little_r2(tables: Tables) -> tuple[Any, ...]:
    told, lost, gained = [], [], False
    for coding, paper in (("dummy", published.DUMMY_CODED), ("numeric", published.NUMERIC)):
        for i, shift in enumerate(("none", "logistic", "nonparametric")):
            row = _areas(tables, coding, shift)
            told.append(f"{coding}, {shift} {row['r2']:.4f} (paper {np.mean([r[i] for r in paper.values()]):.4f})")
            if shift != "none":
                lost.append(row["r2_lost"] > 2 * row["r2_lost_error"])
                gained |= row["r2_lost"] < -2 * row["r2_lost_error"]
    if not any(lost) and not gained:
        return "; ".join(told), "cannot be told", "Nowhere is the difference beyond two standard errors."
    return "; ".join(told), True if all(lost) else None if any(lost) else False
