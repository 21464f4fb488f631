"""Charts as files, without a browser: SVG for pages, SVG, PNG or PDF to keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import vl_convert

from shoal.errors import FileError, InputError, suggest
from shoal.report.theme import follow_theme, light

_SIZE = re.compile(r'<svg([^>]*?) width="([0-9.]+)" height="([0-9.]+)"')
_NAMED = re.compile(r'(\bid="|url\(#)(clip\d+)\b')
FORMATS = ("svg", "png", "pdf")


def draw_for_page(chart: Any, place: int = 0) -> str:
    """Return a chart as SVG that fits its place on a page and follows its colours.

    place: a number of its own on the page, so that its parts have names of their own, the same however often and in
    what order charts are drawn.
    """
    spec = chart.to_dict()
    spec.pop("title", None)  # the page has headings
    svg = vl_convert.vegalite_to_svg(spec)
    svg = _SIZE.sub(r'<svg\1 style="max-width: \2px" role="img"', svg, count=1)
    names: dict[str, str] = {}
    svg = _NAMED.sub(lambda match: match[1] + names.setdefault(match[2], f"clip-{place}-{len(names)}"), svg)
    return follow_theme(svg[svg.index("<svg") :])


def draw(chart: Any, fmt: str) -> bytes:
    """Return a chart as the bytes of a file, on white."""
    spec = chart.to_dict()
    spec["background"] = light("page")
    if fmt == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if fmt == "png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    if fmt == "pdf":
        return bytes(vl_convert.vegalite_to_pdf(spec))
    raise InputError(f"Chart format {fmt!r} is not known{suggest(fmt, FORMATS)}")


def chart_files(charts: dict[str, Any], folder: str, fmt: str) -> list[tuple[Path, bytes]]:
    """Return the files of all charts in a folder, which must exist."""
    where = Path(folder)
    if not where.is_dir():
        raise FileError(f"The folder {folder!r} does not exist; make it first.")
    return [(where / f"{name.replace(' ', '-')}.{fmt}", draw(chart, fmt)) for name, chart in charts.items()]
