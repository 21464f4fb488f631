"""Pages run as they stand and print what they say they print; the site is whole."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.cli import main

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


def compare(page: str, most: float = 0.0, slack: float = 0.0) -> int:
    """Run a page; what it prints must be what it says, numbers up to a share or an amount; return how many."""
    compared = 0
    for printed, expected in run(page):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
        for a, b in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
            x, y = (float(text.replace(",", "")) for text in (a, b))
            assert x == pytest.approx(y, rel=most, abs=slack), (printed, expected)
            compared += 1
    return compared


@pytest.mark.slow
def test_the_worked_page_of_learning():
    assert compare("learning.md", 0.1, 3) > 40  # elsewhere the last digits of a sum may break a tie


@pytest.mark.slow
@pytest.mark.parametrize("page", ["health", "education", "finance"])
def test_tutorials(page):
    assert compare(f"tutorials/{page}.md", 0.1, 1) > 20


SLOW_PAGES = [pytest.param(page, marks=pytest.mark.slow) for page in ("report", "method", "risk")]


@pytest.mark.parametrize("page", [*SLOW_PAGES, "files"])
def test_pages(page):
    assert compare(f"{page}.md", 0.1, 0.3) > 0


@pytest.mark.slow
def test_the_five_minutes_as_they_are_written(tmp_path, monkeypatch):
    """Every command of the page, one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    parts = (DOCS / "start.md").read_text(encoding="utf-8").split("```")
    blocks = [part for part in parts[1::2] if ".venv/bin/" in part]
    assert len(blocks) == 4
    interpreter = shlex.quote(sys.executable)
    for block in blocks:
        script = re.sub(r"\.venv/bin/(shoal|python)", lambda m: interpreter + " -m shoal" * (m[1] == "shoal"), block)
        done = subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, (block, done.stderr)
    assert {"release.xlsx", "release.xlsx.certificate.json", "report.html", "for-the-university"} <= {
        path.name for path in tmp_path.iterdir()
    }


def test_options_that_pages_name_exist(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")  # or names are cut
    known = set()
    for command in (
        ["anonymize"],
        ["assess"],
        ["frontier"],
        ["inspect"],
        ["verify"],
        ["demo"],
        ["study", "market-risk"],
    ):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            main([*command, "--help"])
        known |= set(re.findall(r"--[a-z][a-z-]*", shown.getvalue()))
    known |= {"--install-completion", "--version", "--help"}
    root = DOCS.parent
    for page in (*DOCS.rglob("*.md"), root / "README.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if "pip " in line or "make" in line:
                continue
            for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line):
                assert option in known, (page.name, option)


def test_links_of_pages_lead_somewhere():
    for page in (*DOCS.rglob("*.md"), DOCS.parent / "README.md"):
        for target in re.findall(r"\]\(([^)#:\s]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


@pytest.mark.slow
def test_the_site_is_whole(tmp_path):
    site = tmp_path / "site"
    build = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs",
        "-b",
        "html",
        "-d",
        str(tmp_path / "trees"),
        ".",
    ]
    done = subprocess.run([*build, str(site)], cwd=DOCS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check = [sys.executable, "tools/check_site.py", str(site)]
    done = subprocess.run(check, cwd=DOCS.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    page = site / "docs" / "start.html"
    page.write_text(
        page.read_text()
        .replace('href="limits.html"', 'href="limit.html"')
        .replace("<body>", '<body><img src="https://x/y">')
    )
    done = subprocess.run(check, cwd=DOCS.parent, capture_output=True, text=True)
    assert done.returncode == 1
    assert "limit.html, which is not there" in done.stdout
    assert "loads https://x/y" in done.stdout
