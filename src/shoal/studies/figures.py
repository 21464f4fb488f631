"""The pictures of the study, made from its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from shoal.report.charts import as_data, colour_by, finish_chart, frontier_chart
from shoal.report.theme import light
from shoal.studies.releasing import PAPER_WAYS, ROUNDED, UNTOUCHED
from shoal.tradeoff import LIMIT

Tables = Mapping[str, pl.DataFrame]

COLOURS = {
    "centroid": "centroid",
    ROUNDED: "limit",
    "resample": "resample",
    "gaussian cdf": "cdf",
    "permute": "permute",
    "gaussian rank": "rank",
    "gaussian transport": "release",
    UNTOUCHED: "ink",
}
_SHIFTS = {"none": "original", "logistic": "resample", "nonparametric": "release"}
_LOWEST = {"bias": -0.25, "r2": -0.05}  # below, curves leave the picture; tables have all numbers


def draw_figures(tables: Tables) -> dict[str, Any]:
    """Return all figures by name."""
    figures = {}
    for k in (5, 10):
        by_class = tables["risk_by_class"].filter(pl.col("k") == k)
        if len(by_class):
            figures[f"classes {k}"] = _classes(by_class, k)
    figures["risk"] = _risk(tables["risk"])
    for coding in ("dummy", "numeric"):
        rows = tables["without_shift"].filter(pl.col("coding") == coding)
        figures[f"bias {coding}"] = _against_k(rows, "bias", "relative bias", "~%")
        figures[f"r2 {coding}"] = _against_k(rows, "r2", "R2", ".3~f")
        figures[f"areas {coding}"] = _areas(tables["rating_areas"].filter(pl.col("coding") == coding))
        for column, title, form in (("bias", "relative bias", "~%"), ("r2", "R2", ".3~f")):
            rows = tables["area_18"].filter(pl.col("coding") == coding)
            figures[f"area 18 {column} {coding}"] = _area_18(rows, column, title, form)
    dummy = tables["without_shift"].filter(pl.col("coding") == "dummy")
    figures["similarity"] = _against_k(dummy, "kept", "histogram intersection with the test data", ".2~f")
    figures["area 18 similarity"] = _area_18(
        tables["area_18"].filter(pl.col("coding") == "dummy"), "kept", "histogram intersection", ".2~f"
    )
    if "frontier" in tables:
        outcomes = [{**row, "recommended": False} for row in tables["frontier"].to_dicts()]
        figures["frontier"] = frontier_chart({"outcomes": outcomes, "limit": LIMIT})
    return figures


def _classes(rows: pl.DataFrame, k: int) -> Any:
    """Return histograms of the classes' risks by method: exact as bars, simulated as marks; and differences."""
    width = 0.02 * 5 / k
    data = []
    for way in PAPER_WAYS:
        own = rows.filter(pl.col("way") == way)
        for what in ("nearest", "simulated"):
            values = own[what].to_numpy().astype(float)
            data += _bins(values[~np.isnan(values)], width, way, "exact" if what == "nearest" else "simulated")
    by = {way: rows.filter(pl.col("way") == way)["nearest"].to_numpy() for way in ("resample", "centroid")}
    data += _bins(by["resample"] - by["centroid"], width, "resample - centroid", "exact")
    panels = []
    for panel in (*PAPER_WAYS, "resample - centroid"):
        base = alt.Chart(as_data([row for row in data if row["panel"] == panel])).encode(
            description=alt.Description("said:N"), tooltip=alt.Tooltip("said:N")
        )
        bars = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="exact")).mark_rect(
            color=light(COLOURS.get(panel, "original")), stroke=light("page")
        )
        x = alt.X("low:Q", title="chance of being picked out" if panel in PAPER_WAYS else "difference of chances",
                  axis=alt.Axis(format="~g", grid=False, tickCount=5))  # fmt: skip
        y = alt.Y("classes:Q", title="classes", axis=alt.Axis(tickCount=4))
        marks = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="simulated")).mark_point(
            color=light("ink"), filled=True, size=22, opacity=1
        )
        layers = bars.encode(x=x, x2="high:Q", y=y, y2="zero:Q") + marks.encode(x=alt.X("middle:Q"), y="classes:Q")
        if panel in PAPER_WAYS:
            line = alt.Chart(as_data([{"bound": 1 / k, "said": f"the bound 1/{k}"}]))
            layers += line.mark_rule(color=light("limit"), strokeDash=[5, 3], strokeWidth=2).encode(
                x="bound:Q", description=alt.Description("said:N")
            )
        panels.append(layers.properties(width=190, height=120, title=alt.Title(panel, fontSize=12)))
    return finish_chart(
        alt.concat(*panels, columns=2),
        f"Equivalence classes by risk, k = {k}",
        f"Histograms of the risk of equivalence classes at k = {k}, by method, and of the difference of two methods.",
    )


def _bins(values: Any, width: float, panel: str, what: str) -> list[dict[str, Any]]:
    place, count = np.unique(np.floor(np.asarray(values) / width + 1e-9), return_counts=True)
    return [
        {
            "panel": panel,
            "what": what,
            "low": at * width,
            "high": (at + 1) * width,
            "middle": (at + 0.5) * width,
            "zero": 0,
            "classes": int(number),
            "said": f"{panel}, {what}: {number} classes from {at * width:.3g} to {(at + 1) * width:.3g}",
        }
        for at, number in zip(place.tolist(), count.tolist(), strict=True)
    ]


def _risk(risk: pl.DataFrame) -> Any:
    """Return mean risk against k: nearest match and optimal attacker, the bound, and what simulations gave."""
    panels = []
    names = [way for way in COLOURS if way in set(risk["way"])]
    for attacker, title in (("nearest", "nearest match (the paper's)"), ("optimal", "knows the clusters too")):
        own = risk.filter(pl.col("attacker") == attacker)
        rows = [
            {
                "what": row["way"],
                "k": row["k"],
                "mean": row["mean"],
                "simulated": row["simulated"],
                "said": f"{row['way']}, k = {row['k']}: {row['mean']:.4f}"
                + ("" if row["simulated"] is None else f", simulated {row['simulated']:.4f}"),
            }
            for row in own.to_dicts()
        ]
        base = alt.Chart(as_data(rows)).encode(
            x=_k_axis(),
            y=alt.Y("mean:Q", title="mean chance of being picked out", scale=alt.Scale(type="log"),
                    axis=alt.Axis(format="~g", tickCount=5)),
            color=colour_by({way: COLOURS[way] for way in names}, orient="top", columns=3, columnPadding=16),
            description=alt.Description("said:N"),
            tooltip=alt.Tooltip("said:N"),
        )  # fmt: skip
        bound = [{"k": k, "mean": 1 / k, "said": f"the bound 1/{k}"} for k in sorted(set(own["k"]))]
        line = alt.Chart(as_data(bound)).mark_line(color=light("limit"), strokeDash=[5, 3], strokeWidth=2).encode(
            x="k:Q", y="mean:Q"
        )  # fmt: skip
        layers = line + base.mark_line(strokeWidth=1.7) + base.mark_point(filled=True, size=45, opacity=1)
        trial = base.transform_filter(alt.FieldValidPredicate(field="simulated", valid=True)).mark_point(
            shape="cross", size=70, color=light("ink"), opacity=1
        )
        layers += trial.encode(y="simulated:Q", color=alt.value(light("ink")))
        panels.append(layers.properties(width=300, height=260, title=alt.Title(title, fontSize=12)))
    return finish_chart(
        alt.hconcat(*panels), "Mean risk against k", "Mean risk against k, by method and attacker, below the bound 1/k."
    )


def _k_axis() -> Any:
    return alt.X(
        "k:Q",
        title="k",
        scale=alt.Scale(type="log"),
        axis=alt.Axis(values=[2, 5, 10, 20, 50, 100, 200, 500, 1000], grid=False, format="d"),
    )


def _against_k(table: pl.DataFrame, column: str, title: str, form: str) -> Any:
    """Return a measure of all ways against k; the untouched members as a line across."""
    base_value = float(table.filter(pl.col("way") == UNTOUCHED)[column][0])
    ks = sorted(set(table.filter(pl.col("way") != UNTOUCHED)["k"]))
    rows = [
        {
            "what": row["way"],
            "k": row["k"],
            "value": row[column],
            "said": f"{row['way']}, k = {row['k']}: {_write(row[column], form)}",
        }
        for row in table.to_dicts()
        if row["way"] != UNTOUCHED
    ]
    rows += [
        {"what": UNTOUCHED, "k": k, "value": base_value, "said": f"untouched: {_write(base_value, form)}"}
        for k in (ks[0], ks[-1])
    ]
    names = {way: colour for way, colour in COLOURS.items() if any(row["what"] == way for row in rows)}
    base = _curves(rows, column, title, form, names)
    return finish_chart(
        (base.mark_line(strokeWidth=1.7, clip=True) + base.mark_point(filled=True, size=38, opacity=1, clip=True))
        .properties(width=320, height=220),
        f"{title} against k",
        f"{title} against k, by method.",
    )  # fmt: skip


def _curves(rows: Sequence[Mapping[str, Any]], column: str, title: str, form: str, names: Mapping[str, str]) -> Any:
    values = [row["value"] for row in rows]
    low = max(min(values), _LOWEST.get(column, 0.0))
    span = max(values) - low
    domain = [low - 0.06 * span, max(values) + 0.06 * span]
    return alt.Chart(as_data(rows)).encode(
        x=_k_axis(),
        y=alt.Y("value:Q", title=title, scale=alt.Scale(domain=domain, nice=False),
                axis=alt.Axis(format=form, tickCount=5)),
        color=colour_by(names, orient="top", columns=3, columnPadding=16),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )  # fmt: skip


def _area_18(table: pl.DataFrame, column: str, title: str, form: str) -> Any:
    """Return a measure against k for every kind of weights, a panel a method."""
    panels: list[Any] = []
    values = table.filter(pl.col("way") != UNTOUCHED)[column].to_numpy()
    low = max(float(values.min()), _LOWEST.get(column, 0.0))
    span = float(values.max()) - low
    scale = alt.Scale(domain=[low - 0.06 * span, float(values.max()) + 0.06 * span], nice=False)
    for way in ("centroid", "resample", "gaussian cdf", "permute", "gaussian transport"):
        rows = [
            {
                "what": row["shift"],
                "k": row["k"],
                "value": row[column],
                "said": f"{way}, weights: {row['shift']}, k = {row['k']}: {_write(row[column], form)}",
            }
            for row in table.filter(pl.col("way") == way).to_dicts()
        ]
        base = alt.Chart(as_data(rows)).encode(
            x=alt.X("k:Q", title="k", scale=alt.Scale(type="log"),
                    axis=alt.Axis(values=[2, 10, 100, 1000], grid=False, format="d")),
            y=alt.Y("value:Q", title=title if not panels else None, scale=scale,
                    axis=alt.Axis(format=form, tickCount=5)),
            color=colour_by(_SHIFTS, orient="top", title="weights"),
            description=alt.Description("said:N"),
            tooltip=alt.Tooltip("said:N"),
        )  # fmt: skip
        layers = base.mark_line(strokeWidth=1.7, clip=True) + base.mark_point(
            filled=True, size=32, opacity=1, clip=True
        )
        panels.append(layers.properties(width=128, height=170, title=alt.Title(way, fontSize=12)))
    return finish_chart(
        alt.hconcat(*panels, spacing=14),
        f"Rating area 18: {title} against k",
        f"{title} in rating area 18 against k, by method and kind of weights.",
    )


def _areas(table: pl.DataFrame) -> Any:
    """Return the bias in every rating area by kind of weights: ours as filled points, the paper's as rings."""
    rows = [
        {
            "area": row["area"],
            "what": row["shift"],
            "ours": row["bias"],
            "paper": row["paper_bias"],
            "said": f"area {row['area']}, weights: {row['shift']}: {row['bias']:.2%} (paper {row['paper_bias']:.2%})",
        }
        for row in table.to_dicts()
    ]
    order = list(dict.fromkeys(row["area"] for row in rows))
    base = alt.Chart(as_data(rows)).encode(
        y=alt.Y("area:N", sort=order, title="rating area", axis=alt.Axis(grid=True, ticks=False, domain=False)),
        color=colour_by(_SHIFTS, orient="top", title="weights"),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )
    axis = alt.Axis(format="~%", tickCount=7)
    zero = alt.Chart(as_data([{"at": 0}])).mark_rule(color=light("muted")).encode(x="at:Q")
    return finish_chart(
        (
            zero
            + base.mark_point(filled=True, size=55, opacity=1).encode(
                x=alt.X("ours:Q", title="relative bias", axis=axis)
            )
            + base.mark_point(filled=False, size=55, strokeWidth=1.5).encode(
                x=alt.X("paper:Q", title="relative bias", axis=axis)
            )
        ).properties(width=320, height=alt.Step(19)),
        "Relative bias in rating areas",
        "Relative bias in California's rating areas by kind of weights, ours beside the paper's.",
    )


def _write(value: float, form: str) -> str:
    return f"{value:.2%}" if form.endswith("%") else f"{value:.4f}"
