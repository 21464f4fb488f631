"""The page of the study: what was done, every claim, figure and table, the paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from shoal.report.page import fill_template
from shoal.studies import published
from shoal.studies.claims import VERDICTS
from shoal.studies.figures import draw_figures
from shoal.studies.population import COLUMNS

if TYPE_CHECKING:
    from shoal.studies.study import MarketRiskStudy

_SHIFTS = ("none", "logistic", "nonparametric")
_PERCENT = {
    "bias", "bias_error", "area_bias", "area_bias_error", "mean_of_biases", "r2_kept", "joint", "prediction", "shift",
    "utility", "mean", "max", "bound", "optimal_risk", "nearest_risk", "optimal", "nearest", "simulated",
}  # fmt: skip
_WORDS = {
    "way": "method",
    "bias": "bias",
    "bias_error": "± s.e.",
    "area_bias": "bias, area 18",
    "area_bias_error": "± s.e.",
    "r2": "R2",
    "r2_error": "± s.e.",
    "r2_kept": "share of R2 kept",
    "kept": "similarity",
    "information_loss": "information lost, %",
    "optimal_risk": "knows clusters",
    "nearest_risk": "nearest match",
    "first_effect": "first two effects",
    "last_effect": "last two effects",
    "clustering": "algorithm",
    "shift": "weights",
}


def render_study(study: MarketRiskStudy) -> str:
    """Return the page."""
    tables = study.tables
    verdicts = [claim.verdict for claim in study.claims]
    return fill_template(
        Path(__file__).with_name("study.html.j2"),
        draw_figures(tables),
        title="Distribution-preserving k-anonymity: the paper's study, reproduced and surpassed",
        study=study,
        counts={verdict: verdicts.count(verdict) for verdict in VERDICTS},
        columns=", ".join(name.replace("_", " ") for name in COLUMNS),
        classes=int(tables["risk"]["classes"][0]),
        paper_classes=published.CLASSES,
        clones=tables["risk"].filter(pl.col("k") == 10).row(0, named=True),
        lowest=published.CENTROID_AT_1000,
        areas={coding: _area_rows(tables["rating_areas"], coding) for coding in ("dummy", "numeric")},
        tables=_show(tables),
        names=[f"{name}.csv" for name in (*tables, "claims")],
    )  # fmt: skip


_SHOWN = {
    "settings": (
        "varied", "way", "k", "w", "alpha", "clustering", "clusters", "information_loss", "bias", "bias_error",
        "area_bias", "area_bias_error", "r2", "r2_error", "nearest_risk", "optimal_risk",
    ),
    "distinct": ("way", "k", "bias", "bias_error", "r2", "r2_error", "kept", "nearest_risk", "optimal_risk"),
    "models": ("model", "way", "k", "shift", "bias", "bias_error", "r2", "r2_error"),
    "stronger": ("asked", "way", "k", "clusters", "information_loss", "bias", "bias_error", "r2", "optimal_risk"),
    "many_columns": ("columns", "way", "k", "r2", "r2_kept", "first_effect", "last_effect"),
    "frontier": ("k", "setting", "bound", "optimal", "nearest", "joint", "prediction", "shift", "utility"),
}  # fmt: skip


def _show(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Return the tables that are shown whole, in words."""
    found = dict(tables)
    for name in {"settings", "distinct"} & set(found):
        found[name] = found[name].filter(pl.col("coding") == "dummy")
    return {name: _as_rows(found[name], columns) for name, columns in _SHOWN.items() if name in found}


def _area_rows(table: pl.DataFrame, coding: str) -> list[dict[str, Any]]:
    """Return the paper's table with our figures beside it, a row an area and one of averages."""
    own = table.filter(pl.col("coding") == coding)
    rows = []
    for area in dict.fromkeys(own["area"]):
        found = {row["shift"]: row for row in own.filter(pl.col("area") == area).to_dicts()}
        rows.append(_area_row(f"RA {area}", [found[shift] for shift in _SHIFTS]))
    average = [
        own.filter(pl.col("shift") == shift)
        .select(pl.col("bias", "paper_bias").abs().mean(), pl.col("r2", "paper_r2", "bias_error").mean())
        .to_dicts()[0]
        for shift in _SHIFTS
    ]
    rows.append(_area_row("mean (of biases without sign)", average))
    return rows


def _area_row(name: str, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    r2 = [(f"{row['r2']:.4f}", f"{row['paper_r2']:.4f}") for row in found]
    errors = ["" if row["bias_error"] is None else f"± {100 * row['bias_error']:.2f}" for row in found]
    bias = [
        (f"{100 * row['bias']:.2f}", error, f"{100 * row['paper_bias']:.2f}")
        for row, error in zip(found, errors, strict=True)
    ]
    return {"name": name, "r2": r2, "bias": bias}


def _as_rows(table: pl.DataFrame, names: Sequence[str]) -> dict[str, Any]:
    """Return a table as heads and cells in words, columns that are empty left out."""
    shown = [name for name in names if name in table.columns and table[name].null_count() < len(table)]
    return {
        "heads": [(_WORDS.get(name, name.replace("_", " ")), table[name].dtype.is_numeric()) for name in shown],
        "rows": [
            [(_write(name, row[name]), table[name].dtype.is_numeric()) for name in shown]
            for row in table.select(shown).to_dicts()
        ],
    }


def _write(name: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if name in _PERCENT:
        return f"{100 * value:.2f} %"
    if name in ("r2", "r2_error", "kept"):
        return f"{value:.4f}"
    if name == "alpha":
        return f"{value:.2g}"
    return f"{value:,.0f}" if float(value).is_integer() or name == "clusters" else f"{value:.3g}"
