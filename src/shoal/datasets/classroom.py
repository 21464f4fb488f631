"""A built-in synthetic class of school leavers: nobody in it exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.datasets.cohort import check_size

if TYPE_CHECKING:
    import polars as pl

SCHOOLS = ("public", "private", "vocational")
PARENTS = ("basic", "secondary", "vocational", "university")
REGIONS = ("coast", "delta", "highlands", "islands", "lakes", "north", "plains", "south")


def load_students(n: int = 8_000, random_state: Any = 0) -> pl.DataFrame:
    """Return school leavers and their marks, drawn from a simple model: nobody in it exists.

    Parameters
    ----------
    n : int, default 8000
    random_state : int or numpy.random.Generator, default 0

    Returns
    -------
    polars.DataFrame
        gender, age (years), region (8), school (3), parents (education, 4 ordered levels), siblings, mathematics and
        reading (marks from 0 to 100), passed (true or false).

    Examples
    --------
    >>> load_students(3).columns
    ['gender', 'age', 'region', 'school', 'parents', 'siblings', 'mathematics', 'reading', 'passed']
    """
    import polars as pl

    check_size(n)
    rng = np.random.default_rng(random_state)
    girl = rng.random(n) < 0.5
    region = rng.choice(len(REGIONS), n, p=[0.2, 0.12, 0.08, 0.03, 0.12, 0.15, 0.18, 0.12])
    parents = np.minimum((rng.random(n)[:, None] > [0.15, 0.5, 0.72]).sum(axis=1), 3)
    private = rng.random(n) < 0.04 + 0.07 * parents
    school = np.where(private, 1, np.where(rng.random(n) < 0.35 - 0.08 * parents, 2, 0))
    age = 17 + (rng.random(n) < 0.6).astype(int) + (school == 2) + rng.poisson(0.15, n)
    siblings = rng.poisson(1.9 - 0.25 * parents)
    talent = rng.standard_normal(n)
    common = 55 + 5.0 * parents + 4.0 * private - 3.0 * (school == 2) - 1.2 * siblings - 2.5 * (age - 17)
    common = common + 0.8 * (region - 3.5) + 9.0 * talent
    mathematics = np.clip(common - 1.5 * girl + 7 * rng.standard_normal(n), 0, 100).round().astype(int)
    reading = np.clip(common + 4.0 * girl + 7 * rng.standard_normal(n), 0, 100).round().astype(int)
    return pl.DataFrame(
        {
            "gender": np.array(["boy", "girl"])[girl.astype(int)],
            "age": age,
            "region": np.array(REGIONS)[region],
            "school": np.array(SCHOOLS)[school],
            "parents": pl.Series(np.array(PARENTS)[parents], dtype=pl.Enum(PARENTS)),
            "siblings": siblings,
            "mathematics": mathematics,
            "reading": reading,
            "passed": (mathematics >= 45) & (reading >= 45),
        }
    )
