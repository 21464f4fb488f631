"""What the paper says of prediction in rating area 18 from releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.studies.claims.making import (
    SMALL_BIAS,
    Judge,
    Tables,
    collect,
    few,
    is_kept,
    percent,
    up_to,
)
from shoal.studies.releasing import UNTOUCHED
from shoal.studies.summarising import pick, series

CLAIMS: list[Judge] = []
claim = collect(CLAIMS)


def _in_area(tables: Tables, column: str, way: str, shift: str, coding: str) -> dict[int, float]:
    return series(tables["area_18"], column, way=way, shift=shift, coding=coding)


@claim(
    "Area 18 with privacy, centroids",
    "Dummy-coded, bias and R2 become unacceptable with k, weights or not; numeric, the bias hardly suffers without "
    "weights, while R2 falls below 0.",
)
def _centroids_fail_under_shift(tables: Tables) -> tuple[Any, ...]:
    none = _in_area(tables, "bias", "centroid", "none", "dummy")
    weighted = _in_area(tables, "bias", "centroid", "nonparametric", "dummy")
    r2 = _in_area(tables, "r2", "centroid", "nonparametric", "dummy")
    numeric = _in_area(tables, "bias_moved", "centroid", "none", "numeric")
    low = min(_in_area(tables, "r2", "centroid", "none", "numeric").values())
    bad = min(none.values()) < -0.3 and min(weighted.values()) < -0.3 and min(r2.values()) < 0
    mild = max(abs(value) for value in numeric.values()) < SMALL_BIAS and low < 0
    measured = (
        f"dummy-coded bias {few(none)}, weighted {few(weighted)}; numeric bias moved by at most "
        f"{percent(max(map(abs, numeric.values())))}, lowest R2 {low:.3f}"
    )
    return measured, True if bad and mild else None if bad or mild else False


@claim("Area 18 with privacy, centroids", "Numeric, with weights the bias becomes unacceptable, but R2 stays above 0.")
def _weights_hurt_numeric_centroids(tables: Tables) -> tuple[Any, ...]:
    bias = _in_area(tables, "bias", "centroid", "nonparametric", "numeric")
    r2 = _in_area(tables, "r2", "centroid", "nonparametric", "numeric")
    bad, positive = max(abs(value) for value in bias.values()) > 0.1, min(r2.values()) > 0
    measured = f"bias {few(bias)}; R2 {few(r2, lambda v: f'{v:.3f}')}"
    why = "Our weights of a mean that is nobody's combination back off to the columns that it shares with somebody."
    return measured, True if bad and positive else None if bad or positive else False, why


@claim("Area 18 with privacy, resampling", "The bias stays low at every k, and R2 decreases slightly.")
def _resampling_keeps_the_bias_low(tables: Tables) -> tuple[Any, ...]:
    told, kept = [], []
    for shift in ("none", "logistic", "nonparametric"):
        base = {c: pick(tables["area_18"], c, way=UNTOUCHED, shift=shift, coding="dummy") for c in ("bias", "r2")}
        moved = [_in_area(tables, column, "resample", shift, "dummy") for column in ("bias_moved", "r2_moved")]
        kept.append(up_to(is_kept(moved[0], moved[1], base["r2"])))
        bias = {k: base["bias"] + v for k, v in moved[0].items()}
        told.append(f"{shift}: bias {few(bias)} (original {percent(base['bias'])}), R2 kept {kept[-1][1]}")
    holds = [verdict for verdict, _ in kept]
    why = "Slightly: at most a fifth of R2. The bias alone stays low at every k."
    low = all(abs(v) < SMALL_BIAS for s in ("none", "logistic", "nonparametric")
              for v in _in_area(tables, "bias_moved", "resample", s, "dummy").values())  # fmt: skip
    return "; ".join(told), True if all(holds) else False if False in holds else None, why if low else ""


@claim(
    "Area 18 with privacy, Gaussian dither",
    "The bias stays controlled, but grows with k and beyond that of resampling.",
)
def _gaussian_bias_exceeds_that_of_resampling(tables: Tables) -> tuple[Any, ...]:
    found = {
        way: [_in_area(tables, column, way, "nonparametric", "dummy") for column in ("bias_moved", "bias_moved_error")]
        for way in ("gaussian cdf", "resample")
    }
    (gaussian, error), (resample, _) = found["gaussian cdf"], found["resample"]
    sizes = {way: {k: abs(v) for k, v in moved.items()} for way, (moved, _) in found.items()}
    ks = sorted(gaussian)
    controlled = max(sizes["gaussian cdf"].values()) < SMALL_BIAS
    some = 2 * float(np.mean(list(error.values()))) / np.sqrt(2)
    grows = abs(gaussian[ks[-1]]) + abs(gaussian[ks[-2]]) - abs(gaussian[ks[0]]) - abs(gaussian[ks[1]]) > 2 * some
    beyond = np.mean([abs(gaussian[k]) - abs(resample[k]) for k in ks]) > some
    measured = f"bias moved: Gaussian {few(gaussian)}; resampling {few(resample)}; each ± {percent(some / np.sqrt(2))}"
    return measured, True if controlled and grows and beyond else None if controlled else False


@claim(
    "Area 18 with privacy, Gaussian dither",
    "Dummy-coded, the non-parametric weights reduce the bias at every k; numeric, for k < 50.",
)
def _weights_reduce_the_bias_of_gaussian_releases(tables: Tables) -> tuple[Any, ...]:
    told, fewer, beyond = [], {}, []
    for coding in ("dummy", "numeric"):
        none, weighted = (
            _in_area(tables, "bias", "gaussian cdf", shift, coding) for shift in ("none", "nonparametric")
        )
        errors = _in_area(tables, "bias_error", "gaussian cdf", "nonparametric", coding)
        fewer[coding] = [k for k in none if abs(weighted[k]) < abs(none[k])]
        beyond += [abs(abs(weighted[k]) - abs(none[k])) > 2 * errors[k] for k in none]
        told.append(f"{coding}: without {few(none)}, with {few(weighted)}")
    if not any(beyond):
        return "; ".join(told), "cannot be told", "Nowhere do the two differ by more than two standard errors."
    every = len(fewer["dummy"]) == len(_in_area(tables, "bias", "gaussian cdf", "none", "dummy"))
    return "; ".join(told), True if every else None if fewer["dummy"] else False


@claim(
    "Area 18 with privacy, similarity",
    "Similarity of estimated and actual enrolment stays nearly constant with distribution-preserving methods and is "
    "raised by the weights; with centroids it deteriorates rapidly.",
)
def _similarity_under_shift(tables: Tables) -> tuple[Any, ...]:
    ways = ("resample", "gaussian cdf")
    kept = {(w, s): _in_area(tables, "kept", w, s, "dummy") for w in ways for s in ("none", "nonparametric")}
    spread = max(max(values.values()) - min(values.values()) for values in kept.values())
    raised = all(kept[w, "nonparametric"][k] > kept[w, "none"][k] for w in ways for k in kept[w, "none"])
    centroid = _in_area(tables, "kept", "centroid", "nonparametric", "dummy")
    measured = "; ".join(f"{w}, {s} {few(v, lambda x: f'{x:.3f}')}" for (w, s), v in kept.items())
    measured += f"; centroid {few(centroid, lambda x: f'{x:.3f}')}"
    return measured, spread < 0.06 and raised and min(centroid.values()) < 0.2
