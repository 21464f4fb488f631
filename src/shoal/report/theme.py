"""Colours by meaning, for light and dark: charts are drawn in the light ones, which a page replaces by variables."""

from __future__ import annotations

from typing import Any

# name: (light, dark). Text and marks keep a contrast of 4.5 and 3 against the page in both.
COLOURS: dict[str, tuple[str, str]] = {
    "ink": ("#1b2027", "#e8ecf1"),
    "muted": ("#56606c", "#a3adb9"),
    "line": ("#d5dae1", "#39424d"),
    "page": ("#fdfdfe", "#14181d"),
    "panel": ("#f3f5f8", "#1d232a"),
    "original": ("#94a0ae", "#7d8997"),
    "release": ("#0a62bd", "#62a8f5"),
    "limit": ("#b93a0a", "#ff9466"),
    "good": ("#0d6e50", "#4fd1a5"),
    "permute": ("#0e7a58", "#45c99b"),
    "resample": ("#7d44b5", "#bd93ee"),
    "centroid": ("#a35a08", "#e8a652"),
    "rank": ("#08798c", "#4cc3d6"),
    "cdf": ("#a8325f", "#f08cb2"),
    "heat0": ("#f0f3f7", "#20262d"),
    "heat1": ("#d3e2f4", "#223a54"),
    "heat2": ("#a6c7ea", "#24527f"),
    "heat3": ("#6fa3d9", "#2f70b0"),
    "heat4": ("#3a7ebf", "#4d95de"),
    "heat5": ("#1a5596", "#8dc1f7"),
}
HEAT = [f"heat{i}" for i in range(6)]


def light(name: str) -> str:
    """Return a colour as charts are drawn in it."""
    return COLOURS[name][0]


def as_variables(which: str) -> str:
    """Return the colours as CSS variables, "light" or "dark"."""
    at = ("light", "dark").index(which)
    return " ".join(f"--{name}: {pair[at]};" for name, pair in COLOURS.items())


def follow_theme(svg: str) -> str:
    """Return a drawing whose colours are the page's variables."""
    for name, (shade, _) in COLOURS.items():
        svg = svg.replace(f'"{shade}"', f'"var(--{name})"')
    return svg


def chart_config() -> dict[str, Any]:
    """Return how every chart looks."""
    ink, muted, line = light("ink"), light("muted"), light("line")
    text = {"labelColor": ink, "titleColor": muted, "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 400}
    return {
        "background": "transparent",
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {**text, "gridColor": line, "domainColor": line, "tickColor": line, "labelLimit": 170},
        "legend": {
            **text,
            "labelLimit": 200,
            "orient": "top",
            "title": None,
            "symbolStrokeWidth": 2,
            "gradientStrokeColor": line,
        },
        "header": {**text, "labelFontWeight": 600},
        "title": {"color": ink, "fontSize": 13, "fontWeight": 600, "anchor": "start"},
        "text": {"color": ink, "fontSize": 12},
    }
