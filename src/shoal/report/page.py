"""The report: one page that loads nothing, made from the data of an assessment and of a frontier."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal import __version__
from shoal.assessment.scores import write_number
from shoal.io import refuse_output
from shoal.io.writing import write_files
from shoal.report.charts import frontier_chart, make_charts, shown_columns
from shoal.report.drawing import draw_for_page
from shoal.report.theme import as_variables

Data = Mapping[str, Any]
_CHANGES = 10
_CARDS = {
    "bound": ("highest chance of anybody", "guaranteed, from the quasi-identifiers alone"),
    "optimal_mean": ("picked out by the best attacker", "who knows everybody and the clusters; measured"),
    "linkage": ("picked out by the nearest match", "of everybody, in these very tables"),
    "presence": ("of those alone show to be in the data", "people whose quasi-identifiers nobody else has"),
    "joint_histogram": ("of the joint distribution kept", "of the quasi-identifiers"),
    "prediction_kept": ("of the prediction kept", "learnt from the release, tested on the original"),
}


def render_page(data: Data | None, frontier: Data | None = None) -> str:
    """Return the report as HTML. data: of an assessment; frontier: of a frontier; one of them at least."""
    certificate = (data or {}).get("certificate") or {}
    if frontier is None and certificate.get("chosen"):
        chosen = certificate["chosen"]
        frontier = {**chosen, "limit": chosen["max_risk"], "people": certificate["people"], "tried": chosen["tried_on"]}
    charts = {} if data is None else make_charts(data)
    if frontier is not None:
        charts["frontier"] = frontier_chart(frontier)
    return fill_template(
        Path(__file__).with_name("page.html.j2"),
        charts,
        title="A release, assessed" if data is not None else "Risk against utility",
        edition=(data or frontier or {})["edition"],
        data=None if data is None else {**data, "utility": [_judge(score) for score in data["utility"]]},
        frontier=frontier,
        cards=[] if data is None else _cards(data),
        columns=[] if data is None else shown_columns(data),
        changes=[] if data is None else _changes(data["dependence"]),
        certificate=json.dumps(certificate, indent=2, ensure_ascii=False),
        count=_write_count,
    )


def fill_template(template: Path, charts: Mapping[str, Any], **values: Any) -> str:
    """Return a page that loads nothing: a template on the layout of all our pages, with charts drawn into it."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template(template.name).render(
        version=__version__,
        drawings={
            name: Markup(draw_for_page(chart, place))  # noqa: S704, escaped by vega
            for place, (name, chart) in enumerate(charts.items())
        },
        alt={name: chart.description for name, chart in charts.items()},
        light=Markup(as_variables("light")),  # noqa: S704, constants
        dark=Markup(as_variables("dark")),  # noqa: S704, constants
        number=write_number,
        share=lambda value: write_number(value, "share"),
        **values,
    )


def write_page(data: Data | None, path: str | os.PathLike[str], *, frontier: Data | None = None) -> None:
    """Write the report, complete or not at all, mode 0600."""
    write_text(render_page(data, frontier), path)


def write_json(data: Data, path: str | os.PathLike[str]) -> None:
    """Write data as JSON, complete or not at all, mode 0600."""
    write_text(json_text(data), path)


def json_text(data: Data) -> str:
    """Return data as the text of a JSON file."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text, complete or not at all, mode 0600."""
    target = os.fspath(path)
    refuse_output([], [target])
    write_files([(Path(os.path.realpath(target)), text.encode())])


def _cards(data: Data) -> list[dict[str, str]]:
    scores = {score["name"]: score for part in ("privacy", "utility") for score in data[part]}
    cards = []
    for name, (title, note) in _CARDS.items():
        if name in scores and scores[name]["value"] is not None:
            number = scores[name]["written"]
            if name == "bound":
                number = f"1 in {data['certificate']['k']}"
            cards.append({"number": number, "title": title, "note": note})
    return cards


def _judge(score: Data) -> dict[str, Any]:
    """Return a score with how it compares with an independent sample."""
    value, reference = score["value"], score["reference"]
    if value is None or reference is None:
        return {**score, "verdict": ""}
    worse = value < reference if score["better"] == "higher" else value > reference
    return {**score, "verdict": "worse" if worse else "no worse"}


def _changes(found: Data) -> list[dict[str, Any]]:
    names = found["columns"]
    pairs = [
        {
            "pair": f"{names[j]}, {names[i]}",
            "before": found["information"][i][j],
            "after": found["information_released"][i][j],
        }
        for i in range(len(names))
        for j in range(i)
    ]
    pairs = [pair for pair in pairs if pair["before"] != pair["after"]]
    return sorted(pairs, key=lambda pair: -abs(pair["after"] - pair["before"]))[:_CHANGES]


def _write_count(people: int | None) -> str:
    return "few" if people is None else f"{people:,}"
