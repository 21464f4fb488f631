"""What several tests need: real data where it is at hand, and small tables of every kind."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data"))

settings.register_profile(
    "shoal",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
settings.load_profile("shoal")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240)


def _need(path: Path) -> Path:
    if not path.exists():
        pytest.skip(f"needs {path.name}, which is not part of the project; set SHOAL_DATA to its folder")
    return path


@pytest.fixture
def ctrl_c():
    """Let SIGINT interrupt, also where the shell has told the tests to ignore it, as it does in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def meps_path():
    return _need(DATA / "meps" / "meps2004_adults.csv.gz")


@pytest.fixture(scope="session")
def meps(meps_path):
    import polars as pl

    return pl.read_csv(meps_path)


@pytest.fixture(scope="session")
def california_folder():
    return _need(DATA / "california")


@pytest.fixture(scope="session")
def california(california_folder):
    import polars as pl

    return lambda name: pl.read_csv(california_folder / name)


@pytest.fixture(scope="session")
def microaggregation():
    import polars as pl

    def load(name: str) -> np.ndarray:
        path = _need(DATA / "microaggregation" / name)
        separator = ";" if ";" in path.read_text()[:500] else ","
        table = pl.read_csv(path, separator=separator, infer_schema_length=None).select(pl.selectors.numeric())
        values = table.to_numpy().astype(float)
        return (values - values.mean(axis=0)) / values.std(axis=0)

    return load


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, which `make test-full` installs on Debian as root."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("needs Chromium; `make test-full` installs it on Debian as root")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_file(browser):
    """Open a page of ours, under 2 MB, and fail on any request or console message."""
    contexts, seen = [], []

    def visit(path, **context):
        assert path.stat().st_size < 2_000_000
        contexts.append(browser.new_context(**context))
        page = contexts[-1].new_page()
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("request", lambda request: seen.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        return page

    yield visit
    for context in contexts:
        context.close()
    assert seen == []
