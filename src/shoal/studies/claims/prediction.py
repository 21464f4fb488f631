"""What the paper says of prediction without shift, and what it concludes."""

from __future__ import annotations

from typing import Any

from shoal.studies.claims.making import (
    Judge,
    Tables,
    collect,
    few,
    is_kept,
    percent,
    up_to,
    without_shift,
)
from shoal.studies.releasing import ROUNDED, UNTOUCHED
from shoal.studies.summarising import pick, series

CLAIMS: list[Judge] = []
claim = collect(CLAIMS)


@claim(
    "Prediction without shift, dummy-coded",
    "With centroids relative bias and R2 drop drastically as k grows, to their lowest at k = 1000 (bias -53.2, no unit "
    "given, and R2 -1.193).",
)
def _centroids_break_the_dummy_coded_model(tables: Tables) -> tuple[Any, ...]:
    bias = without_shift(tables, "bias", "centroid", "dummy")
    r2 = without_shift(tables, "r2", "centroid", "dummy")
    rounded = without_shift(tables, "r2", ROUNDED, "dummy")
    collapse = min(bias.values()) < -0.3 and min(r2.values()) < 0
    lowest = min(bias, key=lambda k: bias[k]) == max(bias) == min(r2, key=lambda k: r2[k])
    return (
        f"bias {few(bias)}; R2 {few(r2, lambda v: f'{v:.3f}')}; centroids rounded to levels: R2 "
        f"{few(rounded, lambda v: f'{v:.3f}')}",
        True if collapse and lowest else None if collapse else False,
        "Where they are lowest depends on how a mean, which is no level, is coded; the paper does not say. Here it has "
        "no effect at all, which makes it a person of the first levels. With few and large clusters, where hardly any "
        "mean is a level, the model nears the mean cost.",
    )


@claim(
    "Prediction without shift, dummy-coded",
    "With both distribution-preserving methods the bias stays nearly constant and R2 drops slightly, up to k = 1000.",
)
def _dithers_keep_the_dummy_coded_model(tables: Tables) -> tuple[Any, ...]:
    base = pick(tables["without_shift"], "r2", way=UNTOUCHED, coding="dummy")
    told, kept = [], []
    for way in ("resample", "gaussian cdf"):
        moved = [without_shift(tables, column, way, "dummy") for column in ("bias_moved", "r2_moved")]
        kept.append(up_to(is_kept(moved[0], moved[1], base)))
        told.append(
            f"{way}: bias moved by at most {percent(max(map(abs, moved[0].values())))}, R2 "
            f"{few({k: base + v for k, v in moved[1].items()}, lambda v: f'{v:.4f}')}, kept {kept[-1][1]}"
        )
    holds = [verdict for verdict, _ in kept]
    return (
        f"R2 of the original {base:.4f}; {'; '.join(told)}",
        True if all(holds) else False if False in holds else None,
        "Slightly: at most a fifth of R2. At the largest k some thousand members make a dozen clusters.",
    )


@claim(
    "Prediction without shift, numeric",
    "With centroids the bias oscillates but stays small, and R2 falls to slightly below 0 (-0.0139 at k = 1000).",
)
def _centroids_and_the_numeric_model(tables: Tables) -> tuple[Any, ...]:
    bias = without_shift(tables, "bias_moved", "centroid", "numeric")
    r2 = series(tables["without_shift"], "r2", way="centroid", coding="numeric")
    small = max(abs(value) for value in bias.values()) < 0.1
    low = min(r2.values())
    measured = f"bias {few(bias)} from the original's; R2 {few(r2, lambda v: f'{v:.4f}')}"
    why = "At k = 1000 seven points carry four slopes." if low < -0.2 else ""
    return measured, True if small and -0.2 < low < 0 else None if small else False, why


@claim(
    "Prediction without shift, similarity",
    "Histogram intersection with the test data falls drastically with centroids (to 0.1709 at k = 1000), and only "
    "slightly with the others.",
)
def _similarity_falls_for_centroids_only(tables: Tables) -> tuple[Any, ...]:
    kept = {
        way: series(tables["without_shift"], "kept", way=way, coding="dummy")
        for way in ("centroid", ROUNDED, "resample", "gaussian cdf")
    }
    base = pick(tables["without_shift"], "kept", way=UNTOUCHED, coding="dummy")
    flat = min(v for way in ("resample", "gaussian cdf") for v in kept[way].values()) > base - 0.06
    falls = min(kept["centroid"].values()) < 0.2 and min(kept[ROUNDED].values()) < base - 0.2
    told = "; ".join(f"{way} {few(values, lambda v: f'{v:.3f}')}" for way, values in kept.items())
    why = "At large k no mean is anybody's combination; whether the paper rounds, it does not say."
    return f"original {base:.3f}; {told}", flat and falls, why


@claim("Prediction", "Dummy-coding every level improves nothing over slopes.")
def _dummy_coding_does_not_help(tables: Tables) -> tuple[Any, ...]:
    r2 = {coding: pick(tables["without_shift"], "r2", way=UNTOUCHED, coding=coding) for coding in ("dummy", "numeric")}
    return f"R2 dummy-coded {r2['dummy']:.4f}, numeric {r2['numeric']:.4f}", r2["dummy"] <= r2["numeric"]


@claim(
    "Conclusion",
    "Without the new methods prediction can fail for k above ten or twenty; with them it remains satisfactory.",
)
def _prediction_fails_without_the_methods(tables: Tables) -> tuple[Any, ...]:
    bias = {way: without_shift(tables, "bias", way, "dummy") for way in ("centroid", "resample", "gaussian cdf")}
    r2 = {way: without_shift(tables, "r2", way, "dummy") for way in bias}
    large = [k for k in bias["centroid"] if 20 <= k <= 200]
    fails = all(bias["centroid"][k] < -0.1 or r2["centroid"][k] < 0 for k in large)
    stays = all(abs(bias[way][k]) < 0.1 and r2[way][k] > 0 for way in ("resample", "gaussian cdf") for k in large)
    told = "; ".join(f"{way}: bias {few(bias[way])}, R2 {few(r2[way], lambda v: f'{v:.3f}')}" for way in bias)
    return told, True if fails and stays else None if fails or stays else False, "Dummy-coded, k = 20 to 200."
