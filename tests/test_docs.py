"""The worked page runs as it stands, and prints what it says it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n(.*?)```)?", re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*")


def run(page: str):
    """Run the blocks of a page in one namespace; yield what each printed and what the page says."""
    names: dict[str, object] = {}
    for code, expected in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        yield printed.getvalue(), expected


@pytest.mark.slow
def test_the_worked_page_of_learning():
    compared = 0
    for printed, expected in run("learning.md"):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
        for a, b in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
            x, y = (float(text.replace(",", "")) for text in (a, b))
            assert x == pytest.approx(y, rel=0.1, abs=3)  # elsewhere the last digits of a sum may break a tie
            compared += 1
    assert compared > 40


def test_the_page_of_reports():
    ran = 0
    for printed, expected in run("report.md"):
        assert printed == expected
        ran += 1
    assert ran == 3


def test_charts_and_results_that_pages_name_exist():
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (DOCS / target).exists(), (page.name, target)
