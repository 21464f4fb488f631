"""Built-in synthetic borrowers of a bank: nobody among them exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.datasets.cohort import check_size

if TYPE_CHECKING:
    import polars as pl

JOBS = ("employee", "official", "retired", "self-employed", "student", "worker")
HOMES = ("rents", "mortgage", "owns")
_SHARE = np.array([0.34, 0.1, 0.14, 0.12, 0.08, 0.22])
_LOG_INCOME = np.array([10.55, 10.6, 10.1, 10.5, 9.5, 10.3])


def load_borrowers(n: int = 10_000, random_state: Any = 0) -> pl.DataFrame:
    """Return borrowers, their loans, and who did not pay back, drawn from a simple model: nobody among them exists.

    Parameters
    ----------
    n : int, default 10000
    random_state : int or numpy.random.Generator, default 0

    Returns
    -------
    polars.DataFrame
        sex, age (years), postcode (40 areas, with leading zeros), job (6), home (3 ordered levels), income (per year,
        to the unit), amount (of the loan), rate (percent), defaulted (true or false).

    Examples
    --------
    >>> load_borrowers(3).columns
    ['sex', 'age', 'postcode', 'job', 'home', 'income', 'amount', 'rate', 'defaulted']
    """
    import polars as pl

    check_size(n)
    rng = np.random.default_rng(random_state)
    job = rng.choice(len(JOBS), n, p=_SHARE)
    young, old = job == 4, job == 2
    age = np.where(young, rng.integers(18, 30, n), np.where(old, rng.integers(60, 86, n), rng.integers(22, 66, n)))
    area = np.minimum(rng.geometric(0.06, n) - 1, 39)
    wealth = 0.5 * np.sin(area) + rng.standard_normal(n)
    income = np.exp(_LOG_INCOME[job] + 0.008 * (age - 45) * ~young * ~old + 0.3 * wealth)
    home = np.minimum((rng.random(n) < 0.15 + 0.008 * (age - 18)).astype(int) + (wealth + age / 40 > 2.3), 2)
    amount = np.clip(np.exp(8.6 + 0.35 * np.log(income / 3e4) + 0.7 * rng.standard_normal(n)), 500, 150_000)
    burden = np.log(amount / income)
    score = -1.4 + 0.55 * burden - 0.02 * (age - 45) - 0.5 * home + 0.5 * (job == 3) + 0.3 * young
    defaulted = rng.random(n) < 1 / (1 + np.exp(-score))
    rate = np.clip(3.5 + 1.2 * (score + 3) + 0.6 * rng.standard_normal(n), 1, 20)
    return pl.DataFrame(
        {
            "sex": np.array(["f", "m"])[(rng.random(n) < 0.55).astype(int)],
            "age": age,
            "postcode": [f"0{100 + 7 * one}" for one in area],
            "job": np.array(JOBS)[job],
            "home": pl.Series(np.array(HOMES)[home], dtype=pl.Enum(HOMES)),
            "income": income.round().astype(int),
            "amount": (amount / 100).round().astype(int) * 100,
            "rate": rate.round(2),
            "defaulted": defaulted,
        }
    )
