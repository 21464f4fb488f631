"""What the paper says of the risk of being picked out."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from shoal.studies.claims.making import (
    Judge,
    Tables,
    collect,
    few,
    percent,
)
from shoal.studies.releasing import PAPER_WAYS
from shoal.studies.summarising import series

CLAIMS: list[Judge] = []
claim = collect(CLAIMS)


_THEOREM = "A theorem (docs/theory.md), and computed risks are cut at it, so only simulated ones could tell otherwise."


def _nearest(tables: Tables, way: str, column: str = "mean") -> dict[int, float]:
    return series(tables["risk"], column, way=way, attacker="nearest")


@claim("Reidentification risk", "Re-identification of k-anonymised records ranges from 0 to about 1/k.")
def _centroid_risk_reaches_the_bound(tables: Tables) -> tuple[Any, ...]:
    top = _nearest(tables, "centroid", "max")
    low = float(tables["risk_by_class"].filter(pl.col("way") == "centroid")["nearest"].to_numpy().min())
    excess = max(value * k for k, value in top.items())
    measured = f"highest {few(top, lambda v: f'{v:.3g}')}; lowest of a class {low:.2g}"
    return (
        measured,
        excess <= 1 + 1e-9,
        f"{_THEOREM} The paper's few frequencies above 1/5 were sampling error, as it says.",
    )


@claim("Reidentification risk, k = 5 and 10", "Resampling has about the risk of k-anonymisation.")
def _resampling_is_like_centroids(tables: Tables) -> tuple[Any, ...]:
    ratios = {k: _nearest(tables, "resample")[k] / _nearest(tables, "centroid")[k] for k in (5, 10)}
    measured = ", ".join(f"{ratio:.2f} times (k = {k})" for k, ratio in ratios.items())
    return measured, all(0.75 < ratio < 1.25 for ratio in ratios.values())


@claim("Reidentification risk, k = 5 and 10", "The Gaussian dither has a much lower risk.")
def _gaussian_risk_is_much_lower(tables: Tables) -> tuple[Any, ...]:
    ratios = {k: _nearest(tables, "gaussian cdf")[k] / _nearest(tables, "centroid")[k] for k in (5, 10)}
    measured = ", ".join(f"{ratio:.2f} times that of k-anonymisation (k = {k})" for k, ratio in ratios.items())
    return measured, all(ratio < 0.5 for ratio in ratios.values())


@claim(
    "Reidentification risk, k = 5 and 10",
    "For a large majority of equivalence classes resampling is slightly safer than k-anonymisation; for a few it is "
    "less so.",
)
def _resampling_is_safer_for_most_classes(tables: Tables) -> tuple[Any, ...]:
    shares = {}
    for k in (5, 10):
        rows = tables["risk_by_class"].filter(pl.col("k") == k)
        by_way = {way: rows.filter(pl.col("way") == way)["nearest"].to_numpy() for way in ("centroid", "resample")}
        shares[k] = float((by_way["resample"] < by_way["centroid"] - 1e-9).mean())
    measured = ", ".join(f"safer for {percent(share, 0)} of the classes (k = {k})" for k, share in shares.items())
    holds = True if min(shares.values()) > 0.75 else None if max(shares.values()) > 0.5 else False
    return measured, holds, "Counted over classes, as the paper does, by exact risk; ties do not count."


@claim("Reidentification risk, mean against k", "Average risks of all methods lie below 1/k.")
def _mean_risks_are_below_the_bound(tables: Tables) -> tuple[Any, ...]:
    exact = max(value * k for way in PAPER_WAYS for k, value in _nearest(tables, way).items())
    trials = [value * k for way in PAPER_WAYS for k, value in _nearest(tables, way, "simulated").items()]
    simulated = float(np.nanmax(trials)) if np.isfinite(trials).any() else float("nan")
    told = "; ".join(f"{way}: {few(_nearest(tables, way), lambda v: f'{v:.4f}')}" for way in PAPER_WAYS)
    tried = "" if np.isnan(simulated) else f", simulated {simulated:.2f}"
    return f"at most {exact:.2f} of 1/k{tried}. {told}", max(exact, np.nan_to_num(simulated)) < 1, _THEOREM


@claim(
    "Reidentification risk, mean against k",
    "At small k resampling is slightly safer than k-anonymisation; as k grows they exchange places.",
)
def _resampling_and_centroids_exchange_places(tables: Tables) -> tuple[Any, ...]:
    one, two = _nearest(tables, "resample"), _nearest(tables, "centroid")
    safer = {k: one[k] < two[k] for k in one}
    small = all(is_safer for k, is_safer in safer.items() if k <= 10)
    large = any(not is_safer for k, is_safer in safer.items() if k >= 50)
    measured = "resampling is safer at k = " + ", ".join(str(k) for k, is_safer in safer.items() if is_safer)
    return measured, True if small and large else None if small or large else False


@claim("Reidentification risk, mean against k", "The advantage of the Gaussian dither diminishes as k grows.")
def _gaussian_advantage_diminishes(tables: Tables) -> tuple[Any, ...]:
    ratios = {k: value / _nearest(tables, "centroid")[k] for k, value in _nearest(tables, "gaussian cdf").items()}
    first, last = ratios[min(ratios)], ratios[max(ratios)]
    return f"{few(ratios, lambda v: f'{v:.2f}')} times the risk of k-anonymisation", first < last
