"""The page: one file, everything escaped, nothing loaded, readable without a picture."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import shoal
from shoal.errors import FileError, InputError
from shoal.report import render_page

from .conftest import NASTY

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """What a page consists of, checking that every element is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.headings, self.ids, self.links, self.urls = [], [], [], [], []
        self.tables, self.captions, self.scripts, self.figures = 0, 0, 0, []
        self.text = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.ids += [given["id"]] if "id" in given and "svg" not in self.open else []
        self.links += [given["href"]] if tag == "a" and "href" in given else []
        self.urls += [given[name] for name in ("src", "href", "srcset", "data", "action", "poster") if name in given]
        self.tables += tag == "table"
        self.captions += tag == "caption"
        self.scripts += tag == "script"
        if tag == "figure":
            self.figures.append(given.get("aria-label"))
        assert not any(name.startswith("on") for name in given), given

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "svg" not in self.open and "style" not in self.open and "script" not in self.open:
            self.text.append(data)


def read(page):
    outline = Outline()
    outline.feed(page)
    outline.close()
    assert outline.open == []
    return outline


@pytest.mark.parametrize("edition", ["internal", "public"])
def test_a_page_is_whole_and_accessible(assessment, edition):
    page = render_page(assessment.to_dict(edition))
    outline = read(page)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings[:-1], outline.headings[1:], strict=True))
    assert len(set(outline.ids)) == len(outline.ids)
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)
    assert outline.tables == outline.captions
    assert len(outline.figures) == 10
    assert all(outline.figures)
    assert outline.scripts == 1
    assert 'lang="en"' in page
    assert "default-src 'none'" in page
    assert len(page.encode()) < 2_000_000


def test_a_page_loads_nothing(assessment, nasty):
    for data in (assessment.to_dict(), nasty.to_dict("public")):
        page = render_page(data)
        assert [url for url in read(page).urls if not url.startswith("#")] == ["data:,"]
        assert "url(" not in page
        assert "@import" not in page
        assert "fetch(" not in page


def test_a_page_says_what_is_guaranteed_and_what_is_not(release, assessment):
    text = " ".join(" ".join(read(render_page(assessment.to_dict())).text).split())
    assert release.certificate["guarantee"] in text
    for item in release.certificate["not_covered"]:
        assert item["what"] in text
    assert "internal edition: do not publish" in text
    assert "not for release" in text  # it was made with a seed
    public = " ".join(read(render_page(assessment.to_dict("public"))).text)
    assert "public edition" in public
    assert "do not publish" not in public


def test_every_name_and_value_is_escaped(nasty):
    page = render_page(nasty.to_dict())
    outline = read(page)
    assert outline.scripts == 1
    assert "alert(" not in re.sub(r"&lt;script&gt;alert\(|onload=alert\(", "", page)
    assert NASTY in "".join(outline.text)
    assert "${49}" not in page
    assert "{{ 49 }}" not in page
    html = nasty._repr_html_()
    assert "<script" not in html


def test_a_page_of_two_files_without_certificate_or_target():
    a, b = (shoal.datasets.load_cohort(300, random_state=seed)[["sex", "age"]] for seed in (0, 1))
    found = shoal.assess(a, b, quasi_identifiers=["sex", "age"], progress=False)
    text = " ".join(read(render_page(found.to_dict())).text)
    assert "Not measured" in text
    assert "Guarantee and limits" not in text
    assert "Learning" not in text


def test_writing_refuses_what_is_not_a_file(assessment, tmp_path):
    with pytest.raises(FileError, match="is a folder"):
        assessment.to_html(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        assessment.to_html(tmp_path / "none" / "r.html")
    with pytest.raises(InputError, match="edition='both' is not known"):
        assessment.to_html(tmp_path / "r.html", edition="both")
    assert list(tmp_path.iterdir()) == []


def test_a_report_can_show_a_frontier(assessment, tmp_path):
    cohort = shoal.datasets.load_cohort(300)
    frontier = shoal.frontier(
        cohort, quasi_identifiers=["sex", "age"], ks=[5], limit=0.2, methods=["permute"], progress=False
    )
    assessment.to_html(tmp_path / "r.html", frontier=frontier)
    assert frontier.why in (tmp_path / "r.html").read_text()


def test_a_page_is_the_same_however_often_it_is_drawn(assessment):
    page = render_page(assessment.to_dict())
    assert render_page(assessment.to_dict()) == page
    ids = re.findall(r'<clipPath id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)
