"""The built-in cohort: a synthetic population like the adults of MEPS 2004."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.datasets import _meps2004 as fitted
from shoal.errors import InputError

if TYPE_CHECKING:
    import polars as pl

AGE_GROUPS = ("18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+")
EDUCATION = ("no high school", "high school", "some college", "college", "graduate")
INCOME = ("poor", "near poor", "low", "middle", "high")
_YOUNGEST = np.array([18, 25, 35, 45, 55, 65, 75, 85])
_YEARS = np.array([7, 10, 10, 10, 10, 10, 10, 1])  # ages are top-coded at 85, as in the survey


def check_size(n: int) -> None:
    """Refuse to make nobody."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n={n!r} must be at least 1.")


def load_cohort(n: int = 15_000, random_state: Any = 0) -> pl.DataFrame:
    """Make a synthetic population of adults with demographics, survey weight and yearly cost of health care.

    Nobody in it exists: it is drawn from shares and regression coefficients fitted on the Medical Expenditure Panel
    Survey 2004 (file HC-089, 19,386 adults, unweighted). Margins, the share without cost, mean and 99th percentile
    of cost and its rise with age agree with the survey within a few per cent.

    Parameters
    ----------
    n : int, default 15000
    random_state : int or numpy.random.Generator, default 0

    Returns
    -------
    polars.DataFrame
        sex, age (years, 85 is 85 or over), age_group (8, ordered), education (5, ordered), income (5 categories
        relative to the poverty line, ordered), weight (people represented), cost (dollars a year, 17 % zeros, a heavy
        right tail).

    Examples
    --------
    >>> load_cohort(n=3).columns
    ['sex', 'age', 'age_group', 'education', 'income', 'weight', 'cost']
    """
    import polars as pl

    check_size(n)
    rng = np.random.default_rng(random_state)
    group = _draw(np.tile(fitted.AGE_GROUP, (n, 1)), rng)
    age = _YOUNGEST[group] + rng.integers(0, _YEARS[group])
    female = (rng.random(n) < fitted.FEMALE[group]).astype(np.int64)
    education = _draw(fitted.EDUCATION[group], rng)
    income = _draw(fitted.INCOME[np.digitize(group, [2, 5]), education], rng)
    design = np.hstack(
        [
            np.ones((n, 1)),
            np.eye(8)[group][:, 1:],
            female[:, None],
            (female * (group < 3))[:, None],
            np.eye(5)[education][:, 1:],
            np.eye(5)[income][:, 1:],
        ]
    )
    spends = rng.random(n) < 1 / (1 + np.exp(-design @ fitted.USE))
    log_cost = design @ fitted.LOG_COST + fitted.LOG_COST_SHIFT[group]
    cost = np.exp(log_cost + fitted.SPREAD[group] * _draw_residuals(n, rng))
    weight = np.exp(design @ fitted.LOG_WEIGHT + fitted.LOG_WEIGHT_SPREAD * rng.standard_normal(n))
    return pl.DataFrame(
        {
            "sex": np.array(["male", "female"])[female],
            "age": age,
            "age_group": pl.Series(np.array(AGE_GROUPS)[group], dtype=pl.Enum(AGE_GROUPS)),
            "education": pl.Series(np.array(EDUCATION)[education], dtype=pl.Enum(EDUCATION)),
            "income": pl.Series(np.array(INCOME)[income], dtype=pl.Enum(INCOME)),
            "weight": weight.round(2),
            "cost": np.where(spends, np.maximum(cost, 1.0).round(), 0.0),
        }
    )


def _draw(shares: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one code from every row of shares."""
    bounds = shares.cumsum(axis=1)
    return np.minimum((rng.random((len(shares), 1)) > bounds).sum(axis=1), shares.shape[1] - 1)


def _draw_residuals(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw standardised residuals of log cost: interpolated quantiles, an exponential tail above the last."""
    u = rng.random(n)
    levels, quantiles = fitted.QUANTILE_LEVELS, fitted.QUANTILES
    low = 2 * quantiles[0] - quantiles[1]
    inside = np.interp(u, np.append(0.0, levels), np.append(low, quantiles))
    beyond = quantiles[-1] - fitted.UPPER_TAIL * np.log(np.maximum((1 - u) / (1 - levels[-1]), 1e-12))
    return np.where(u > levels[-1], beyond, inside)
