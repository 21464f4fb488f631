"""What several tests need: real data where it is at hand, and small tables of every kind."""

from __future__ import annotations

import os
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


@pytest.fixture(scope="session")
def meps():
    import polars as pl

    return pl.read_csv(_need(DATA / "meps" / "meps2004_adults.csv.gz"))


@pytest.fixture(scope="session")
def california():
    import polars as pl

    return lambda name: pl.read_csv(_need(DATA / "california" / name))


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
