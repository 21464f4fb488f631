"""Assessments to be drawn: an ordinary one, and one whose names and values try to break a page."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal

QI = ["sex", "age", "education", "income"]
NASTY = '<script>alert("x")</script>&amp;${7*7}{{ 7*7 }}'


@pytest.fixture(scope="package")
def release():
    cohort = shoal.datasets.load_cohort(1200)
    return shoal.anonymize(
        cohort, quasi_identifiers=QI, sensitive=["cost"], others="drop", max_risk=0.1, random_state=0, progress=False
    )


@pytest.fixture(scope="package")
def assessment(release):
    return release.assess(progress=False)


@pytest.fixture(scope="package")
def nasty():
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            NASTY: rng.choice([NASTY, "b'\"--><svg onload=alert(1)>"], 400),
            "a.b[c]:Q": rng.integers(0, 60, 400),
            "\\u202e\n%s": rng.choice(["x", "y" * 300], 400),
            "=cmd|' /C calc'!A0": rng.normal(size=400).round(3),
        }
    )
    release = shoal.anonymize(
        table, quasi_identifiers=table.columns[:3], sensitive=table.columns[3:], k=5, n_releases=2, random_state=0
    )
    return release.assess(progress=False)
