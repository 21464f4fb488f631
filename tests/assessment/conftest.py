"""A table with canaries: values that one person only has, and that must not be on any page."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal

CANARIES = ("Zaphod-7731", "87654321", "1897", "Betelgeuse", "9.87654321")
SETTINGS = {
    "quasi_identifiers": ["sex", "age", "town", "born", "height"],
    "sensitive": ["cost", "diagnosis"],
    "identifiers": ["name"],
    "others": "drop",
    "k": 10,
}


@pytest.fixture(scope="package")
def people():
    rng = np.random.default_rng(3)
    n = 600
    age = rng.integers(18, 80, n)
    age[0] = 1897
    cost = np.round(np.exp(rng.normal(6 + 0.02 * np.minimum(age, 90), 1)), 2)
    cost[1] = 87654321.0
    town = rng.choice(["Ashby", "Brook", "Corby", "Derby"], n, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    town[2:4] = "Betelgeuse"
    diagnosis = rng.choice(["flu", "cold", "asthma"], n).astype(object)
    diagnosis[4] = "Zaphod-7731"
    height = rng.normal(170, 9, n)
    height[5] = 9.87654321
    born = np.datetime64("1990-01-01") + rng.integers(0, 9000, n)
    return pl.DataFrame(
        {
            "name": [f"Zaphod-7731-{i}" for i in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "age": age,
            "town": pl.Series(town.tolist()),
            "born": pl.Series(born.astype("datetime64[D]")),
            "height": height,
            "cost": cost,
            "diagnosis": pl.Series(diagnosis.tolist()),
            "note": ["left out"] * n,
        }
    )


@pytest.fixture(scope="package")
def release(people):
    return shoal.anonymize(people, **SETTINGS, random_state=0)


@pytest.fixture(scope="package")
def assessment(release):
    return release.assess(progress=False)
