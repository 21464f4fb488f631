"""How far from the best possible are the clusters? A lower bound for small k, and the refined clusters beside it.

The relaxation is the linear program over all clusters S of k to 2k - 1 records (larger ones can be split without loss):
minimise the total squared error of the chosen clusters when every record is covered once in sum, fractions allowed. By
duality, any prices p with p(S) <= error(S) for every S prove that no clustering is below sum(p). Columns are generated:
the program is solved over the clusters seen so far, and a branch and bound finds, for every record, the cluster whose
error is farthest below its price. If no cluster of m records is more than v_m below, lowering every price by the
largest v_m / m makes them valid: that proves sum(p) - n max(v_m / m) after every round, however far the program is from
its optimum, and is what is reported.

python benchmarks/lower_bound.py CASCrefmicrodata.csv Tarragona.csv    (files of $SHOAL_DATA/microaggregation)
"""

from __future__ import annotations

import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
from numba import njit
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.spatial.distance import cdist

from shoal.clustering import KMemberClustering

DATA = Path(os.environ.get("SHOAL_DATA", Path(__file__).parents[2] / "shared" / "data")) / "microaggregation"


@njit
def price(squared, prices, m, best, columns):
    """Find, for every record as the first of m, the cluster of it and later records farthest below its price.

    squared: (n, n). best: (n,), the smallest error minus price, at most what it holds already; columns: (n, m).
    Records join one after the other. A record that joins adds at least its distances to those inside, over m, minus its
    price; so the sum of the smallest such numbers bounds everything below a node of the search.
    """
    n = len(prices)
    value, who = np.empty((m, n)), np.empty((m, n), dtype=np.int64)
    count, at = np.zeros(m, dtype=np.int64), np.zeros(m, dtype=np.int64)
    base, chosen = np.zeros(m), np.zeros(m, dtype=np.int64)
    for i in range(n):
        chosen[0], base[0] = i, -prices[i]
        number = 0
        for u in range(i + 1, n):
            value[0, number], who[0, number] = squared[i, u] / m - prices[u], u
            number += 1
        if number < m - 1:
            continue
        order = np.argsort(value[0, :number])
        value[0, :number], who[0, :number] = value[0, :number][order], who[0, :number][order]
        count[0], at[0], level = number, 0, 0
        while level >= 0:
            left = m - 1 - level  # records still to join
            t = at[level]
            bound = np.inf
            if t + left <= count[level]:
                bound = base[level]
                for s in range(t, t + left):
                    bound += value[level, s]
            if bound >= best[i]:
                level -= 1
                continue
            at[level] = t + 1
            u = who[level, t]
            chosen[level + 1], base[level + 1] = u, base[level] + value[level, t]
            if left == 1:
                best[i] = base[level + 1]
                columns[i] = chosen
                continue
            number = 0
            for s in range(t + 1, count[level]):
                joined = value[level, s] + squared[u, who[level, s]] / m
                value[level + 1, number], who[level + 1, number] = joined, who[level, s]
                number += 1
            if number < left - 1:
                continue
            order = np.argsort(value[level + 1, :number])
            value[level + 1, :number] = value[level + 1, :number][order]
            who[level + 1, :number] = who[level + 1, :number][order]
            count[level + 1], at[level + 1] = number, 0
            level += 1


def bound_from_below(X: np.ndarray, k: int, start: list[np.ndarray], seconds: float) -> tuple[float, int]:
    """Return a proved lower bound of the squared error, and the rounds made; start: labels to begin with."""
    n, began = len(X), time.monotonic()
    squared = cdist(X, X, "sqeuclidean")
    near = np.argsort(squared, axis=1)[:, : 2 * k - 1]
    columns = {tuple(sorted(near[i, :m])) for i in range(n) for m in range(k, 2 * k)}
    columns |= {tuple(np.flatnonzero(labels == c)) for labels in start for c in range(labels.max() + 1)}
    columns = [c for c in columns if k <= len(c) < 2 * k]
    cost = [squared[np.ix_(c, c)].sum() / (2 * len(c)) for c in columns]
    proved, centre, rounds = 0.0, None, 0
    while time.monotonic() - began < seconds:
        rounds += 1
        rows = np.concatenate([np.array(c) for c in columns])
        which = np.repeat(np.arange(len(columns)), [len(c) for c in columns])
        cover = coo_array((np.ones(len(rows)), (rows, which)), shape=(n, len(columns))).tocsr()
        solved = linprog(cost, A_eq=cover, b_eq=np.ones(n), method="highs")
        prices = solved.eqlin.marginals
        # Prices swing from round to round: ask between the best ones so far and the new ones.
        asked = prices if centre is None else 0.5 * centre + 0.5 * prices
        worst, excess, found = 0.0, 0.0, []
        for m in range(k, 2 * k):
            best, new = np.full(n, -1e-9), np.full((n, m), -1)
            price(squared, asked, m, best, new)
            worst, excess = min(worst, best.min()), max(excess, -best.min() / m)
            found += [tuple(sorted(c)) for c in new[new[:, 0] >= 0]]
        if asked.sum() - n * excess > proved:
            proved, centre = asked.sum() - n * excess, asked
        known = set(columns)
        fresh = [c for c in dict.fromkeys(found) if c not in known]
        print(f"round {rounds}: program {solved.fun:.4f}, proved {proved:.4f}, {len(fresh)} new", file=sys.stderr)
        if not fresh and (worst > -1e-7 or asked is prices):
            break
        if not fresh:
            centre = None
        columns += fresh
        cost += [squared[np.ix_(c, c)].sum() / (2 * len(c)) for c in fresh]
        if proved > solved.fun * (1 - 1e-5):
            break
    return proved, rounds


def load(name: str) -> np.ndarray:
    """Return all columns, standardised with divisor n."""
    path = DATA / name
    separator = ";" if ";" in path.read_text()[:500] else ","
    table = pl.read_csv(path, separator=separator, infer_schema_length=None).select(pl.selectors.numeric())
    values = table.to_numpy().astype(float)
    return (values - values.mean(axis=0)) / values.std(axis=0)


def compare_with_bound(names: list[str], ks=(3,), seconds: float = 60.0, patience: float = 600.0) -> list[dict]:
    """Return, for every file and k, the refined clusters and the bound."""
    rows = []
    for name in names:
        Z = load(name)
        total = (Z**2).sum()
        for k in ks:
            models = [
                KMemberClustering(k, algorithm="refined", time_limit=seconds, random_state=seed).fit(Z)
                for seed in range(2)
            ]
            best = min(models, key=lambda model: model.inertia_)
            proved, rounds = bound_from_below(Z, k, [model.labels_ for model in models], patience)
            rows.append(
                {
                    "set": name.removesuffix(".csv"),
                    "k": k,
                    f"IL, refined for {seconds:g} s, better of two": round(100 * best.inertia_ / total, 4),
                    "clusters": best.n_clusters_,
                    "IL, no clustering is below": round(100 * proved / total - 5e-5, 4),
                    "at most above the best, %": math.ceil(1e4 * (best.inertia_ / proved - 1)) / 100,
                    "rounds": rounds,
                }
            )
    return rows


if __name__ == "__main__":
    for row in compare_with_bound(sys.argv[1:] or ["CASCrefmicrodata.csv", "Tarragona.csv"], seconds=5.0, patience=300):
        print(row)
