"""Charts say what the data says, in every format, without a browser."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import FileError, InputError
from shoal.report import FORMATS, chart_files, draw, make_charts
from shoal.report.charts import MOST_COLUMNS, shown_columns
from shoal.report.drawing import draw_for_page
from shoal.report.theme import COLOURS, HEAT

NAMES = ["column 1", "column 2", "column 3", "column 4", "column 5", "risk", "dependence", "effects", "prediction"]


def test_every_chart_is_there_and_has_words(assessment):
    charts = assessment.charts()
    assert list(charts) == [*NAMES, "frontier"]
    for chart in charts.values():
        assert chart.to_dict()["description"].endswith(".")


@pytest.mark.parametrize("fmt", FORMATS)
def test_charts_are_files_of_every_format(assessment, fmt, tmp_path):
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}[fmt]
    files = chart_files({"risk": assessment.charts()["risk"]}, str(tmp_path), fmt)
    (path, content) = files[0]
    assert path.name == f"risk.{fmt}"
    assert content.startswith(begins)
    assert len(content) > 2000


def test_every_mark_can_be_read_aloud(assessment):
    data = assessment.to_dict()
    svg = draw_for_page(assessment.charts()["column 3"])
    root = ElementTree.fromstring(svg)
    said = {e.get("aria-label") for e in root.iter() if e.get("aria-roledescription") in ("bar", "tick")}
    for bar in data["columns"][2]["bars"]:
        assert any(text.startswith(f"{bar['label']}: original") for text in said)


def test_bars_have_the_length_of_their_share(assessment):
    data = assessment.to_dict()
    root = ElementTree.fromstring(draw(assessment.charts()["column 1"], "svg"))
    widths = {}
    for element in root.iter():
        if element.get("aria-roledescription") == "bar":
            number = re.match(r"M[^h]*h([0-9.]+)v", element.get("d"))
            widths[element.get("aria-label").split(":")[0]] = float(number.group(1))
    one, two = data["columns"][0]["bars"]
    assert widths[one["label"]] / widths[two["label"]] == pytest.approx(one["original"] / two["original"], rel=0.01)


def test_a_drawing_on_a_page_follows_its_colours(assessment):
    for chart in assessment.charts().values():
        svg = draw_for_page(chart)
        assert 'style="max-width: ' in svg
        assert "var(--" in svg
        assert not re.search(r'(fill|stroke)="#', svg)
        ElementTree.fromstring(svg)


def contrast(one, two):
    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    a, b = sorted((luminance(one), luminance(two)))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_and_marks_have_contrast(theme):
    page, panel = COLOURS["page"][theme], COLOURS["panel"][theme]
    for name in ("ink", "muted", "release", "limit", "good"):
        assert contrast(COLOURS[name][theme], page) >= 4.5, name
        assert contrast(COLOURS[name][theme], panel) >= 4.5, name
    for name in ("permute", "resample", "centroid", "rank", "cdf"):
        assert contrast(COLOURS[name][theme], page) >= 3, name
    heat = [contrast(COLOURS[name][theme], page) for name in HEAT]
    assert heat == sorted(heat)  # stronger is farther from the page


def test_colours_differ_so_that_a_drawing_can_be_translated():
    shades = [light for light, _ in COLOURS.values()]
    assert len(set(shades)) == len(shades)


def test_of_many_columns_those_that_differ_most_are_drawn(rng):
    table = pl.DataFrame({f"c{i}": rng.integers(0, 3, 200) for i in range(40)})
    other = table.with_columns(c33=pl.Series(rng.integers(1, 3, 200)))
    data = shoal.assess(table, other, quasi_identifiers=table.columns, progress=False).to_dict()
    shown = shown_columns(data)
    assert len(shown) == MOST_COLUMNS
    assert "c33" in [column["name"] for column in shown]
    assert sum(name.startswith("column") for name in make_charts(data)) == MOST_COLUMNS


def test_names_that_look_like_code_are_only_text(nasty):
    for chart in nasty.charts().values():
        svg = draw_for_page(chart)
        assert "<script" not in svg
        assert "onload=" not in re.sub(r'"[^"]*"|>[^<]*<', "", svg)
        ElementTree.fromstring(svg)


def test_errors_say_what_to_do(assessment, tmp_path):
    with pytest.raises(InputError, match="Chart format 'gif' is not known; choose from 'svg', 'png', 'pdf'"):
        draw(assessment.charts()["risk"], "gif")
    with pytest.raises(FileError, match="does not exist; make it first"):
        chart_files({}, str(tmp_path / "none"), "svg")
