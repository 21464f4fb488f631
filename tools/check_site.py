"""Check a built documentation site: every link leads somewhere, and no page loads anything from elsewhere.

python tools/check_site.py .site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, what it loads, and the places in it that a link may name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element names."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (
            tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "modulepreload")
        ):
            self.loads.append(given.get("src", given.get("href", "")))


def read(path: Path) -> Page:
    """Return a page's links."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(site: Path) -> list[str]:
    """Return what is wrong in all pages of a site."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve()).as_posix()
        found += [f"{name} loads {load}" for load in page.loads if urlsplit(load).scheme in ("http", "https", "")
                  and (urlsplit(load).netloc or not (path.parent / unquote(urlsplit(load).path)).exists())]  # fmt: skip
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name} links to {link}, a place that the page does not have")
    if not pages:
        found.append(f"{site} has no page")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) if wrong else "every link leads somewhere, and nothing is loaded from elsewhere")
    sys.exit(bool(wrong))
