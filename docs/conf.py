"""The documentation site: `make docs` builds it, without a network, from the pages as they are read on GitHub."""

from __future__ import annotations

import shoal

project = "shoal"
author = "The shoal developers"
release = version = shoal.__version__
copyright = author  # noqa: A001, the name that Sphinx reads

# Sources are those of the whole project, so that a link means the same here and there.
root_doc = "docs/index"
include_patterns = ["docs/**.md", "benchmarks/results/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["docs/_build/**"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 3
suppress_warnings = ["ref.python"]  # a method of two classes

autodoc_typehints = "none"  # types are in the words of the parameters
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

highlight_language = "none"  # what is Python says so
html_theme = "furo"
html_title = "shoal"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["root"]  # index.html, which leads to docs/index.html
templates_path: list[str] = []


def skip_plumbing(app, what, name, obj, skip, options):  # noqa: ARG001, as Sphinx calls it
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app):
    """Tell Sphinx."""
    app.connect("autodoc-skip-member", skip_plumbing)
