"""Entering another market from released members: the world of docs/learning.md, and what k costs there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import shoal
from shoal.market import MarketRiskAssessment
from shoal.shift import RakedRatio

QI = ["sex", "age_group", "education", "income"]
AGES = ["18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+"]
NEW = {
    "age_group": dict(zip(AGES, [7, 10, 12, 16, 20, 20, 12, 3], strict=True)),  # per cent, from a census
    "income": {"poor": 18, "near poor": 6, "low": 18, "middle": 32, "high": 26},
}

WAYS = {
    "permute": {"method": "permute"},
    "gaussian": {"method": "gaussian"},
    "gaussian, loading 0.1": {"method": "gaussian", "loading": 0.1},
    "resample": {"method": "resample"},
    "centroid": {"method": "centroid"},
}


def make_world() -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Return members with costs, the existing market's people, and the true mean cost of the new market's enrollees."""
    people = shoal.datasets.load_cohort(60_000, random_state=1)
    joins = 0.5 * np.exp(-0.2 * people["age_group"].to_physical().to_numpy())
    members = people.filter(np.random.default_rng(0).random(60_000) < joins)
    enrollees = RakedRatio().fit(people, NEW).weights_ * joins
    return members, people.select(QI), float(np.average(people["cost"], weights=enrollees))


def compare() -> list[dict[str, object]]:
    """Assess releases of every method and k: the estimate against that from the raw members, three releases each."""
    members, existing, truth = make_world()
    raw = MarketRiskAssessment(n_resamples=200).assess(members, cost="cost", existing=existing, new=NEW)
    low, high = raw.cost.interval
    rows: list[dict[str, object]] = [
        {"members": "true cost of the new enrollees", "cost": round(truth)},
        {"members": "raw", "cost": round(raw.cost.value), "interval": f"{low:.0f} to {high:.0f}"},
        {"members": "raw, not weighted", "cost": round(raw.existing_cost)},
    ]
    for way, options in WAYS.items():
        for k in (5, 10, 20, 50, 100):
            found = []
            for seed in range(3):
                roles = {"quasi_identifiers": QI, "sensitive": ["cost"], "others": "drop"}
                release = shoal.anonymize(members, **roles, k=k, n_releases=0, random_state=seed, **options)
                risk = MarketRiskAssessment(n_resamples=20).assess(release, existing=existing, new=NEW)
                found.append(risk.cost.value)
            off = np.mean(found) / raw.cost.value - 1
            rows.append({"members": way, "k": k, "cost": round(float(np.mean(found))), "off from raw": f"{off:+.2%}"})
    draw(rows, raw, members, Path(__file__).parents[1] / "docs")
    return rows


def draw(rows: list[dict[str, object]], raw: object, members: pl.DataFrame, folder: Path) -> None:
    """Draw who the members are and whom they stand for, and the estimates against k."""
    import altair as alt

    codes = members["age_group"].to_physical().to_numpy()
    shares = {
        "members": np.bincount(codes, minlength=8) / len(codes),
        "new market": np.array(list(NEW["age_group"].values())) / sum(NEW["age_group"].values()),
        "members, weighted: its enrollees": np.bincount(codes, raw.weights, minlength=8) / raw.weights.sum(),
    }
    ages = pl.DataFrame(
        [
            {"age": age, "of": name, "share": float(share)}
            for name, values in shares.items()
            for age, share in zip(AGES, values, strict=True)
        ]
    )
    names = list(shares)
    colours = alt.Scale(domain=names, range=["#9ecae1", "#bdbdbd", "#08519c"])
    chart = alt.Chart(ages).mark_bar().encode(
        x=alt.X("age:N", sort=AGES, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("of:N", sort=names),
        y=alt.Y("share:Q", axis=alt.Axis(format="%"), title="share of people"),
        color=alt.Color("of:N", scale=colours, sort=names, title=None, legend=alt.Legend(orient="top", labelLimit=300)),
    )  # fmt: skip
    _save(chart.properties(width=620, height=240), folder / "learning-weights.svg")
    points = pl.DataFrame(
        [{"method": r["members"], "k": r["k"], "cost": r["cost"]} for r in rows if r.get("k") is not None]
    )
    low, high = raw.cost.interval
    truth, unweighted = rows[0]["cost"], rows[2]["cost"]
    x = alt.X("k:Q", scale=alt.Scale(type="log", domain=[4, 130]), axis=alt.Axis(values=[5, 10, 20, 50, 100]))
    y = alt.Y("cost:Q", scale=alt.Scale(zero=False), title="expected cost per enrollee")
    band = alt.Chart(pl.DataFrame({"low": [low], "high": [high]})).mark_rect(color="#deebf7").encode(
        y=alt.Y("low:Q", title="expected cost per enrollee", scale=alt.Scale(zero=False)), y2="high:Q"
    )  # fmt: skip
    rules = pl.DataFrame(
        [
            {"cost": truth, "what": "the truth"},
            {"cost": round(raw.cost.value), "what": "raw members, 95 % interval shaded"},
            {"cost": unweighted, "what": "raw members, not weighted"},
        ]
    )
    rule = alt.Chart(rules).mark_rule(strokeWidth=1.5).encode(
        y=y, strokeDash=alt.StrokeDash("what:N", title=None, sort=None, legend=alt.Legend(labelLimit=300))
    )  # fmt: skip
    lines = alt.Chart(points).mark_line(point=alt.OverlayMarkDef(size=60)).encode(
        x=x,
        y=y,
        color=alt.Color("method:N", title="released members", sort=list(WAYS), legend=alt.Legend(labelLimit=300))
    )  # fmt: skip
    _save(alt.layer(band, rule, lines).properties(width=560, height=300), folder / "learning-k.svg")


def _save(chart: object, path: Path) -> None:
    chart.configure_axis(labelFontSize=12, titleFontSize=13).configure_legend(labelFontSize=12, titleFontSize=12).save(
        path
    )
