"""The charts of a report, made from its data: what a chart shows is what the JSON says.

Names and values of the data are only ever values in a chart's table, never field names or expressions. Every mark
carries its own words (`description`): a page shows them as a tooltip, a screen reader reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from shoal.assessment.scores import write_number
from shoal.report.theme import HEAT, chart_config, light

Data = Mapping[str, Any]
_WIDTH = 300
_MOST_IN_GRID = 16
_MOST_EFFECTS = 24
_DEPTH = 0.2  # of utility below the best, that the frontier shows
_HEAT_CUTS = [0.05, 0.1, 0.2, 0.4, 0.6]
_WORDS = {"optimal": "knows the clusters", "nearest": "takes the nearest match"}
MOST_COLUMNS = 24


def make_charts(data: Data) -> dict[str, Any]:
    """Return all charts of an assessment by name, those of columns as "column 1", "column 2", ..."""
    charts = {f"column {i}": column_chart(column) for i, column in enumerate(shown_columns(data), start=1)}
    if data["risk"]:
        charts["risk"] = risk_chart(data)
    if len(data["dependence"]["columns"]) > 1:
        charts["dependence"] = dependence_chart(data["dependence"])
    if data["prediction"] is not None:
        if data["prediction"]["effects"]:
            charts["effects"] = effects_chart(data["prediction"])
        if data["prediction"]["groups"]:
            charts["prediction"] = prediction_chart(data["prediction"])
    chosen = (data["certificate"] or {}).get("chosen")
    if chosen:
        charts["frontier"] = frontier_chart({**chosen, "limit": chosen["max_risk"]})
    return charts


def shown_columns(data: Data) -> list[Data]:
    """Return the columns that are drawn: of many those that differ most."""
    drawn = [column for column in data["columns"] if column["bars"]]
    if len(drawn) <= MOST_COLUMNS:
        return drawn
    worst = sorted(drawn, key=lambda column: column["marginal_histogram"])[:MOST_COLUMNS]
    return [column for column in drawn if any(column is one for one in worst)]


def finish_chart(chart: Any, title: str, said: str) -> Any:
    """Return a chart with its title, which a page leaves to its own headings, and the words for who cannot see it."""
    return chart.properties(title=title, description=said).configure(**chart_config())


def as_data(rows: Sequence[Data]) -> Any:
    """Return rows as the table of a chart."""
    return alt.Data(values=[dict(row) for row in rows])


def colour_by(names: Mapping[str, str], **legend: Any) -> Any:
    """Return a colour for every name, by what the theme calls it, with a legend if it is described."""
    scale = alt.Scale(domain=list(names), range=[light(colour) for colour in names.values()])
    return alt.Color("what:N", scale=scale, legend=alt.Legend(**legend) if legend else None)


def column_chart(column: Data) -> Any:
    """Return the shares of a column's values, before as bars and after as a mark on them."""
    rows = [
        {
            "label": bar["label"],
            "what": what,
            "share": bar[what],
            "said": f"{bar['label']}: original {write_number(bar['original'], 'share')}, release "
            f"{write_number(bar['release'], 'share')}",
        }
        for bar in column["bars"]
        for what in ("original", "release")
    ]
    order = [bar["label"] for bar in column["bars"]]
    y = alt.Y("label:N", sort=order, title=None, axis=alt.Axis(ticks=False, domain=False, labelPadding=6))
    base = alt.Chart(as_data(rows)).encode(
        y=y,
        x=alt.X("share:Q", title=None, axis=alt.Axis(format="~%", tickCount=4, domain=False)),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )
    bars = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="original")).mark_bar(
        color=light("original"), height={"band": 0.75}
    )
    marks = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="release")).mark_tick(
        color=light("release"), thickness=4, bandSize=15
    )
    said = f"Shares of {len(order)} groups of values of {column['name']}, in original and release."
    return finish_chart(
        (bars + marks).properties(width=230, height=alt.Step(17)),
        f"{column['name']}: original (bars), release (marks)",
        said,
    )


def risk_chart(data: Data) -> Any:
    """Return how many people are at which risk, with the bound as a line."""
    bound, k = data["certificate"]["bound"], data["certificate"]["k"]
    rows = [
        {
            **bar,
            "who": f"an attacker who {_WORDS[bar['attacker']]}",
            "what": bar["attacker"],
            "zero": 0,
            "said": f"{bar['people']:,} people picked out with a chance of {bar['low']:.3g} to {bar['high']:.3g}",
        }
        for bar in data["risk"]
        if bar["people"]
    ]
    colours = colour_by({"optimal": "release", "nearest": "original"})
    bars = (
        alt.Chart(as_data(rows))
        .mark_rect(stroke=light("page"), strokeWidth=1)
        .encode(
            x=alt.X(
                "low:Q",
                title="chance of being picked out",
                scale=alt.Scale(domain=[0, bound * 1.08], nice=False),
                axis=alt.Axis(format="~g", tickCount=5, grid=False),
            ),
            x2="high:Q",
            y=alt.Y(
                "people:Q",
                title="people",
                scale=alt.Scale(type="symlog"),
                axis=alt.Axis(values=[10**i for i in range(9)], format=",d"),
            ),
            y2="zero:Q",
            color=colours,
            description=alt.Description("said:N"),
            tooltip=alt.Tooltip("said:N"),
        )
    )
    line = [{"bound": bound, "said": f"the bound 1/{k} = {bound:.3g}, which nobody exceeds", "text": f"1/{k}"}]
    at = alt.Chart(as_data(line)).encode(x="bound:Q", description=alt.Description("said:N"))
    rule = at.mark_rule(color=light("limit"), strokeWidth=2, strokeDash=[5, 3])
    text = at.mark_text(color=light("limit"), dy=-6, baseline="bottom").encode(text="text:N", y=alt.value(0))
    panels = []
    for who in dict.fromkeys(row["who"] for row in rows):
        part = bars.transform_filter(alt.FieldEqualPredicate(field="who", equal=who))
        panels.append((part + rule + text).properties(width=_WIDTH, height=110, title=alt.Title(who, fontSize=12)))
    return finish_chart(
        alt.vconcat(*panels),
        "People by their chance of being picked out",
        f"Histogram of the chance of being picked out, below the bound 1/{k}.",
    )


def dependence_chart(found: Data) -> Any:
    """Return the strength of dependence of every pair: original below the diagonal, release above it."""
    shown = _most_dependent(found)
    rows = []
    for i in shown:
        for j in shown:
            if i == j:
                continue
            before, after = found["information"][i][j], found["information_released"][i][j]
            a, b = found["columns"][i], found["columns"][j]
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "strength": _strength(before if shown.index(i) > shown.index(j) else after),
                    "said": f"{a} and {b}: mutual information {write_number(before)} bits in the original, "
                    f"{write_number(after)} in the release" + _say_correlation(found, i, j),
                }
            )
    names = [found["columns"][i] for i in shown]
    colour = alt.Color(
        "strength:Q",
        scale=alt.Scale(type="threshold", domain=_HEAT_CUTS, range=[light(name) for name in HEAT]),
        legend=alt.Legend(title="strength, 0 to 1", orient="top", gradientLength=200),
    )
    axis = alt.Axis(title=None, ticks=False, domain=False, labelLimit=110)
    chart = (
        alt.Chart(as_data(rows))
        .mark_rect()
        .encode(
            x=alt.X("b:N", sort=names, axis=axis, scale=alt.Scale(paddingInner=0.06)),
            y=alt.Y("a:N", sort=names, axis=axis, scale=alt.Scale(paddingInner=0.06)),
            color=colour,
            description=alt.Description("said:N"),
            tooltip=alt.Tooltip("said:N"),
        )
        .properties(width=min(260, 44 * len(names)), height=min(260, 44 * len(names)))
    )
    title = "Dependence: original below the diagonal, release above"
    return finish_chart(chart, title, "How strongly pairs of columns depend on one another, in original and release.")


def _most_dependent(found: Data) -> list[int]:
    """Return the columns drawn: of many those whose pairs changed most."""
    names = found["columns"]
    gaps = [
        max((abs(a - b) for a, b in zip(one, two, strict=True)), default=0.0)
        for one, two in zip(found["information"], found["information_released"], strict=True)
    ]
    return sorted(sorted(range(len(names)), key=lambda i: -gaps[i])[:_MOST_IN_GRID])


def _strength(bits: float) -> float:
    """Return mutual information on the scale of a correlation, 0 to 1 (Linfoot 1957)."""
    return float((1 - 2 ** (-2 * max(bits, 0.0))) ** 0.5)


def _say_correlation(found: Data, i: int, j: int) -> str:
    one, two = found["correlation"][i][j], found["correlation_released"][i][j]
    return "" if one is None or two is None else f"; rank correlation {one:.3f} and {two:.3f}"


def effects_chart(prediction: Data) -> Any:
    """Return the effects of a linear model: on the original with its uncertainty, and on the release."""
    effects = sorted(prediction["effects"], key=lambda effect: -abs(effect["original"]))[:_MOST_EFFECTS]
    rows = [
        {
            "label": effect["effect"],
            "what": what,
            "value": effect[what],
            "low": effect["original"] - 2 * effect["standard_error"],
            "high": effect["original"] + 2 * effect["standard_error"],
            "said": f"{effect['effect']}: original {effect['original']:.3f} (standard error "
            f"{effect['standard_error']:.3f}), release {effect['release']:.3f}",
        }
        for effect in effects
        for what in ("original", "release")
    ]
    base = alt.Chart(as_data(rows)).encode(
        y=alt.Y("label:N", sort=[e["effect"] for e in effects], title=None, axis=alt.Axis(ticks=False, domain=False)),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )
    first = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="original"))
    span = first.mark_rule(color=light("original"), strokeWidth=5).encode(
        x=alt.X("low:Q", title=f"effect on {prediction['target']}, in its standard deviations"), x2="high:Q"
    )
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="value:Q", color=colour_by({"original": "muted", "release": "release"}, orient="top")
    )
    return finish_chart(
        (span + dots).properties(width=210, height=alt.Step(20)),
        "Effects in a linear model",
        "Effects on original and release.",
    )


def prediction_chart(prediction: Data) -> Any:
    """Return what models learnt from original and release expect of ten groups of people, beside what they had."""
    names = {
        "observed": "original",
        "model of the original": "muted",
        "model of the release": "release",
    }
    fields = dict(zip(names, ("observed", "expected_from_original", "expected_from_release"), strict=True))
    rows = [
        {"group": i, "what": what, "value": group[field], "said": f"group {i}, {what}: {write_number(group[field])}"}
        for i, group in enumerate(prediction["groups"], start=1)
        for what, field in fields.items()
    ]
    base = alt.Chart(as_data(rows)).encode(
        x=alt.X("group:O", title="groups of people, by what is expected", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title=f"mean {prediction['target']}", axis=alt.Axis(format="~s")),
        color=colour_by(names, orient="top", direction="vertical"),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )
    bars = base.transform_filter(alt.FieldEqualPredicate(field="what", equal="observed")).mark_bar(opacity=0.6)
    rest = base.transform_filter(alt.FieldOneOfPredicate(field="what", oneOf=list(names)[1:]))
    points = rest.mark_point(filled=True, size=60, opacity=1)
    return finish_chart(
        (bars + rest.mark_line(strokeWidth=1.5) + points).properties(width=_WIDTH - 20, height=200),
        "Expected and observed, by groups of people",
        "Expected and observed means of groups of people.",
    )


def frontier_chart(data: Data) -> Any:
    """Return risk against utility: every setting a point, its k beside it, the recommended one ringed.

    Settings that keep much less than the best are left to the table.
    """
    colours = {
        "gaussian": "release",
        "gaussian rank": "rank",
        "gaussian cdf": "cdf",
        "permute": "permute",
        "resample": "resample",
        "centroid": "centroid",
    }
    rows = [
        {
            "what": _family(row),
            "k": f"{row['k']}",
            "risk": max(row["nearest"] if row["optimal"] is None else row["optimal"], 1e-6),
            "utility": row["utility"],
            "meets": row["bound"] <= data["limit"] + 1e-12,
            "recommended": row["recommended"],
            "said": f"{row['setting']}, k = {row['k']}: bound {row['bound']:.3g}, the optimal attacker picks out "
            f"{write_number(row['optimal'], 'share')}, the nearest match {write_number(row['nearest'], 'share')}; "
            f"kept: joint {write_number(row['joint'], 'share')}, prediction "
            f"{write_number(row['prediction'], 'share')}, error under a shift {write_number(row['shift'], 'share')}",
        }
        for row in data["outcomes"]
    ]
    rows = [row for row in rows if row["utility"] >= max(r["utility"] for r in rows) - _DEPTH]
    risks, kept = [row["risk"] for row in rows], [row["utility"] for row in rows]
    there = {name: colour for name, colour in colours.items() if any(row["what"] == name for row in rows)}
    base = alt.Chart(as_data(rows)).encode(
        x=alt.X("risk:Q", title="picked out by one who knows the clusters",
                scale=alt.Scale(type="log", domain=[0.8 * min(risks), 1.3 * max(risks)], nice=False),
                axis=alt.Axis(format="~%", tickCount=4)),
        y=alt.Y("utility:Q", title="kept (the least of three shares)",
                scale=alt.Scale(domain=[min(kept) - 0.01, min(1.0, max(kept)) + 0.01], nice=False),
                axis=alt.Axis(format="~%", tickCount=6)),
        description=alt.Description("said:N"),
        tooltip=alt.Tooltip("said:N"),
    )  # fmt: skip
    seen = alt.condition(alt.FieldEqualPredicate(field="meets", equal=True), alt.value(1), alt.value(0.35))
    dots = base.mark_point(filled=True, size=80).encode(color=colour_by(there, orient="top", columns=3), opacity=seen)
    names = base.mark_text(dx=12, align="left", fontSize=11).encode(text="k:N", opacity=seen)
    ring = base.transform_filter(alt.FieldEqualPredicate(field="recommended", equal=True)).mark_point(
        size=260, strokeWidth=2.5, color=light("limit"), filled=False
    )
    return finish_chart(
        (dots + names + ring).properties(width=400, height=290),
        "Risk against utility; the number is k",
        "Risk against utility of every setting, the recommended one ringed.",
    )


def _family(row: Data) -> str:
    return row["method"] if row["recovery"] in (None, "transport") else f"{row['method']} {row['recovery']}"
