"""Pages and charts for people: everything on them comes from the data of an assessment or a frontier."""

from shoal.report.charts import frontier_chart, make_charts
from shoal.report.drawing import FORMATS, chart_files, draw
from shoal.report.page import json_text, render_page, write_json, write_page

__all__ = [
    "FORMATS",
    "chart_files",
    "draw",
    "frontier_chart",
    "json_text",
    "make_charts",
    "render_page",
    "write_json",
    "write_page",
]
