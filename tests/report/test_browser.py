"""The page in a real Chromium: no request, no console message, tooltips, phones, dark, print, and size."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal

pytestmark = pytest.mark.slow


@pytest.fixture
def open_page(open_file, tmp_path):
    """Open an assessment's page and fail on any request or console message."""

    def visit(assessment, edition="internal", **context):
        path = tmp_path / f"{edition}.html"
        assessment.to_html(path, edition=edition)
        return open_file(path, **context)

    return visit


def fits(page):
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.parametrize("edition", ["internal", "public"])
def test_a_page_asks_for_nothing_and_says_nothing(open_page, assessment, edition):
    page = open_page(assessment, edition)
    assert page.title() == "A release, assessed"
    assert page.locator("figure svg").count() == 10
    assert all(box["width"] > 100 for box in (f.bounding_box() for f in page.locator("figure svg").all()))


@pytest.mark.parametrize("kind", ["bar", "tick", "rect", "point"])
def test_tooltips(open_page, assessment, kind):
    page = open_page(assessment)
    mark = page.locator(f'figure svg [aria-roledescription="{kind}"], figure svg [aria-roledescription="{kind} mark"]')
    if kind == "rect":
        mark = page.locator('figure svg [aria-label*="people picked out"]')
    first = mark.first
    first.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    box = first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert tip.inner_text()
    assert tip.inner_text() in [one.get_attribute("aria-label") for one in page.locator("svg [aria-label]").all()]
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_phone(open_page, assessment):
    page = open_page(assessment, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    assert fits(page)
    smallest = page.evaluate(
        """Math.min(...[...document.querySelectorAll("figure svg text")].filter(t => t.textContent.trim())
        .map(t => t.getBoundingClientRect()).map(b => Math.max(b.width, b.height)).filter(v => v > 0))"""
    )
    assert smallest >= 7  # pixels: of the smallest letters
    mark = page.locator('figure svg [aria-roledescription="bar"]').nth(1)
    mark.scroll_into_view_if_needed()
    page.wait_for_timeout(200)
    mark.tap()
    assert page.locator("#tip").is_visible()


def test_dark_and_light(open_page, assessment):
    colours = {}
    for scheme in ("light", "dark"):
        page = open_page(assessment, color_scheme=scheme)
        colours[scheme] = page.evaluate(
            """[getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('figure svg [aria-roledescription="bar"]')).fill]"""
        )
    assert all(one != two for one, two in zip(colours["light"], colours["dark"], strict=True))


def test_print_is_light_and_whole(open_page, assessment, tmp_path):
    page = open_page(assessment, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 254)"
    assert not page.locator("nav").is_visible()
    pdf = page.pdf(format="A4")
    assert 3 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type/Page/") <= 15


def test_names_that_look_like_code_do_nothing(open_page, nasty):
    page = open_page(nasty)
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.wait_for_timeout(200)
    assert fits(page)


def test_two_hundred_columns(open_page, rng):
    table = pl.DataFrame({f"column with a long name {i}": rng.integers(0, 40, 3000) for i in range(200)})
    other = table.with_columns(pl.all().shuffle(seed=0))
    found = shoal.assess(
        table, other, quasi_identifiers=table.columns[:190], sensitive=table.columns[190:], progress=False
    )
    page = open_page(found)
    assert fits(page)
    assert page.locator("details table tbody tr").count() >= 200
    assert len(found.to_dict()["columns"]) == 200


def test_a_million_rows(open_page):
    cohort = shoal.datasets.load_cohort(1_000_000)
    hidden = cohort.with_columns(pl.col("cost").shift(1, fill_value=0.0))
    found = shoal.assess(
        cohort, hidden, quasi_identifiers=["sex", "age", "education", "income"], sensitive=["cost"], progress=False
    )
    assert found.utility["joint_histogram"].value == 1.0
    assert np.isfinite(found.utility["pmse_ratio"].value)
    assert fits(open_page(found, "public"))
