"""Fit the built-in cohort's shares and coefficients on an extract of MEPS 2004, and print the module that holds them.

    python tools/fit_cohort.py meps2004_adults.csv.gz > src/shoal/datasets/_meps2004.py

The extract (19,386 adults, AHRQ public-use file HC-089) has the columns wtdper, age, female, educ5, povcat, exp_tot.
Only shares of groups, regression coefficients and quantiles of pooled residuals are written, none of them exact to a
person.
"""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
from sklearn.linear_model import LinearRegression, LogisticRegression

EDGES = np.array([25, 35, 45, 55, 65, 75, 85])
LEVELS = np.array([0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995])


def main(path: str) -> None:
    """Fit everything and print it."""
    table = pl.read_csv(path)
    age, female = table["age"].to_numpy(), table["female"].to_numpy()
    education, income = table["educ5"].to_numpy(), table["povcat"].to_numpy() - 1
    cost, weight = table["exp_tot"].to_numpy(), table["wtdper"].to_numpy()
    group = np.digitize(age, EDGES)
    band = np.digitize(group, [2, 5])  # under 35, 35 to 64, 65 and over
    facts = {
        "AGE_GROUP": shares(group, 8),
        "FEMALE": np.array([female[group == g].mean() for g in range(8)]),
        "EDUCATION": np.array([shares(education[group == g], 5) for g in range(8)]),
        "INCOME": np.array([[shares(income[(band == b) & (education == e)], 5) for e in range(5)] for b in range(3)]),
    }
    design = dummies(group, female, education, income)
    use = LogisticRegression(C=1e6, max_iter=2000).fit(design, cost > 0)
    facts["USE"] = np.append(use.intercept_, use.coef_[0])
    spent = cost > 0
    log_cost = LinearRegression().fit(design[spent], np.log(cost[spent]))
    residual = np.log(cost[spent]) - log_cost.predict(design[spent])
    spread = np.array([residual[group[spent] == g].std() for g in range(8)])
    standard = residual / spread[group[spent]]
    quantiles = np.quantile(standard, LEVELS)
    facts["SPREAD"], facts["QUANTILES"] = spread, quantiles
    upper = standard[standard > quantiles[-1]] - quantiles[-1]
    facts["UPPER_TAIL"] = np.array(upper.mean())
    # One shift per age group makes the mean cost of its members right, tail and all.
    draws = draw_residuals(np.random.default_rng(0).random(2_000_000), quantiles, float(upper.mean()))
    smear = np.array([np.exp(s * draws).mean() for s in spread])
    fitted = np.exp(log_cost.predict(design[spent])) * smear[group[spent]]
    shift = np.array(
        [np.log(cost[spent][group[spent] == g].mean() / fitted[group[spent] == g].mean()) for g in range(8)]
    )
    facts["LOG_COST"] = np.append(log_cost.intercept_, log_cost.coef_)
    facts["LOG_COST_SHIFT"] = shift
    log_weight = LinearRegression().fit(design, np.log(weight))
    facts["LOG_WEIGHT"] = np.append(log_weight.intercept_, log_weight.coef_)
    facts["LOG_WEIGHT_SPREAD"] = np.array((np.log(weight) - log_weight.predict(design)).std())
    print('"""Shares and coefficients of the built-in cohort: written by tools/fit_cohort.py, not by hand.\n')
    print("Source: Medical Expenditure Panel Survey 2004, full-year consolidated public-use file HC-089 (AHRQ), 19,386")
    print('adults, unweighted.\n"""\n\nimport numpy as np\n')
    print(f"QUANTILE_LEVELS = np.array({LEVELS.tolist()})")
    for name, value in facts.items():
        print(f"{name} = {np.array2string(value.round(4), separator=', ', prefix=name).join(('np.array(', ')'))}")


def shares(codes: np.ndarray, n: int) -> np.ndarray:
    """Return the share of every code, rounded to three places and summing to 1."""
    result = (np.bincount(codes, minlength=n) / len(codes)).round(3)
    result[result.argmax()] += 1 - result.sum()
    return result


def dummies(group: np.ndarray, female: np.ndarray, education: np.ndarray, income: np.ndarray) -> np.ndarray:
    """Return the regressors: age groups, sex, sex before 45, education, income."""
    parts = [np.eye(8)[group][:, 1:], female[:, None], (female * (group < 3))[:, None]]
    return np.hstack([*parts, np.eye(5)[education][:, 1:], np.eye(5)[income][:, 1:]])


def draw_residuals(u: np.ndarray, quantiles: np.ndarray, tail: float) -> np.ndarray:
    """Return standard residuals at the uniforms u: interpolated quantiles, exponential beyond the last."""
    levels = np.concatenate([[0.0], LEVELS])
    low = 2 * quantiles[0] - quantiles[1]
    inside = np.interp(u, levels, np.concatenate([[low], quantiles]))
    beyond = quantiles[-1] - tail * np.log(np.maximum((1 - u) / (1 - LEVELS[-1]), 1e-12))
    return np.where(u > LEVELS[-1], beyond, inside)


if __name__ == "__main__":
    main(sys.argv[1])
