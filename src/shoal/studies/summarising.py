"""From what every split gave to the tables of the study: means, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from shoal.studies import published
from shoal.studies.releasing import UNTOUCHED

Floats = NDArray[np.float64]
Pieces = Mapping[str, Any]


def summarise(pieces: Pieces) -> dict[str, pl.DataFrame]:
    """Return all tables by name, as far as there are pieces for them."""
    return {name: make(pieces) for name, (kind, make) in TABLES.items() if _of(pieces, kind)}


def _of(pieces: Pieces, kind: str) -> dict[str, Any]:
    return {name: piece for name, piece in pieces.items() if name.split("-")[0] == kind}


def _rows(pieces: Pieces, kind: str, experiment: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of all pieces of a kind, with the split that each is of."""
    return [
        {**row, "split": int(name.split("-")[1])}
        for name, piece in sorted(_of(pieces, kind).items())
        for row in (piece if experiment is None else piece[experiment])
    ]


def _without_shift(pieces: Pieces) -> pl.DataFrame:
    return _average(_rows(pieces, "split", "without_shift"), ["way", "k", "coding"])


def _area_18(pieces: Pieces) -> pl.DataFrame:
    return _average(_rows(pieces, "split", "area_18"), ["way", "k", "shift", "coding"])


def _distinct(pieces: Pieces) -> pl.DataFrame:
    rows = _rows(pieces, "distinct")
    attacked = [row for row in rows if "nearest_risk" in row]
    found = _average(rows, ["way", "k", "coding"])
    if not attacked:
        return found
    risk = pl.DataFrame(attacked).group_by("way", "k", "coding").agg(pl.col("nearest_risk", "optimal_risk").mean())
    return found.join(risk, on=["way", "k", "coding"], how="left", maintain_order="left")


def _models(pieces: Pieces) -> pl.DataFrame:
    return _average(_rows(pieces, "models"), ["model", "way", "k", "shift"])


def _stronger(pieces: Pieces) -> pl.DataFrame:
    measured = ["clusters", "information_loss", "optimal_risk"]
    return _average(_rows(pieces, "stronger"), ["asked", "way", "k"], measured)


def _frontier(pieces: Pieces) -> pl.DataFrame:
    rows = [row for rows in _of(pieces, "frontier").values() for row in rows]
    return pl.DataFrame(rows, infer_schema_length=None).sort("k", "setting")


def _average(rows: Sequence[Mapping[str, Any]], by: Sequence[str], means: Sequence[str] = ()) -> pl.DataFrame:
    """Return relative bias, R2 and similarity with standard errors over halvings.

    bias: that of the averages of predicted and actual cost over the splits. The mean of every split's own relative
    bias, which leans upwards because the actual cost stands below the line, is `mean_of_biases`. Where the untouched
    members are among the ways, `bias_moved` and `r2_moved` are the differences from them, on the same splits.
    """
    table = pl.DataFrame(rows, infer_schema_length=None)
    if "way" in by:
        table = _beside_untouched(table, [name for name in by if name not in ("way", "k")])
    measured = [name for name in ("predicted", "actual", "r2", "kept", *_MOVED) if name in table.columns]
    halvings = (
        table.with_columns(halving=pl.col("split") // 2, own=pl.col("predicted") / pl.col("actual") - 1)
        .group_by([*by, "halving"], maintain_order=True)
        .agg(pl.col(*measured, "own", *means).mean(), splits=pl.len())
    )
    bias = (pl.col("predicted") - pl.col("actual")).sum() / pl.col("actual").sum()
    rest = pl.col("predicted") - (1 + bias) * pl.col("actual")
    n, cost = pl.len().sqrt(), pl.col("actual").mean()
    columns = {
        "bias": bias,
        "bias_error": rest.std() / n / cost,
        "mean_of_biases": pl.col("own").mean(),
        "r2": pl.col("r2").mean(),
        "r2_error": pl.col("r2").std() / n,
    }
    if "kept" in measured:
        columns["kept"] = pl.col("kept").mean()
    if _MOVED[0] in measured:
        columns |= {
            "bias_moved": pl.col("cost_moved").sum() / pl.col("actual").sum(),
            "bias_moved_error": pl.col("cost_moved").std() / n / cost,
            "r2_moved": pl.col("r2_moved").mean(),
            "r2_moved_error": pl.col("r2_moved").std() / n,
        }
    columns |= {name: pl.col(name).mean() for name in means}
    return halvings.group_by(by, maintain_order=True).agg(**columns, splits=pl.col("splits").sum()).sort(by)


_MOVED = ("cost_moved", "r2_moved")


def _beside_untouched(table: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add by how much the predicted cost and R2 differ from those of the untouched members on the same split."""
    untouched = table.filter(pl.col("way") == UNTOUCHED).select("split", *by, cost_of="predicted", r2_of="r2")
    if untouched.is_empty():
        return table
    both = table.join(untouched, on=["split", *by], how="left", maintain_order="left")
    return both.with_columns(
        cost_moved=pl.col("predicted") - pl.col("cost_of"), r2_moved=pl.col("r2") - pl.col("r2_of")
    )


def _area_summary(pieces: Pieces) -> pl.DataFrame:
    """Return the mean absolute bias over the areas by weights, against none, with jackknife errors over halvings."""
    rows = pl.DataFrame(_rows(pieces, "split", "areas"), infer_schema_length=None)
    found = []
    for coding in ("dummy", "numeric"):
        own = rows.filter(pl.col("coding") == coding).with_columns(halving=pl.col("split") // 2)
        names = sorted(set(own["shift"]))
        sums = own.group_by("shift", "area", "halving").agg(
            off=(pl.col("predicted") - pl.col("actual")).sum(), actual=pl.col("actual").sum(), r2=pl.col("r2").mean()
        )
        cube = sums.sort("shift", "area", "halving")
        shape = (len(names), cube["area"].n_unique(), cube["halving"].n_unique())
        off, actual, r2 = (cube[name].to_numpy().reshape(shape) for name in ("off", "actual", "r2"))
        bias = off.sum(axis=2) / actual.sum(axis=2)
        n = shape[2]
        sizes, each = np.abs(bias).mean(axis=1), np.empty((len(names), 0))
        if n > 1:
            left_out = (off.sum(axis=2, keepdims=True) - off) / (actual.sum(axis=2, keepdims=True) - actual)
            each = np.abs(left_out).mean(axis=1)
        none = names.index("none")
        lost = (r2[[none]] - r2).mean(axis=1)
        for i, shift in enumerate(names):
            found.append(
                {
                    "coding": coding,
                    "shift": shift,
                    "size": sizes[i],
                    "size_error": _jackknife(each[i]),
                    "cut": sizes[none] - sizes[i],
                    "cut_error": _jackknife(each[none] - each[i]),
                    "areas_cut": int((np.abs(bias[i]) < np.abs(bias[none])).sum()),
                    "areas": shape[1],
                    "r2": float(r2[i].mean()),
                    "r2_lost": float(lost[i].mean()),
                    "r2_lost_error": float(lost[i].std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan"),
                }
            )
    return pl.DataFrame(found)


def _jackknife(left_out: Floats) -> float:
    """Return the standard error of an estimate from what it is when each part is left out; NaN if there is but one."""
    n = len(left_out)
    if n < 2:
        return float("nan")
    return float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum()))


def _areas(pieces: Pieces) -> pl.DataFrame:
    """Return the paper's Tables 1 and 2, its own figures beside ours."""
    areas = _average(_rows(pieces, "split", "areas"), ["area", "coding", "shift"])
    places = {"none": 0, "logistic": 1, "nonparametric": 2}
    tables = {"dummy": published.DUMMY_CODED, "numeric": published.NUMERIC}
    rows = [
        (tables[coding][area][3 + places[shift]] / 100, tables[coding][area][places[shift]])
        for area, coding, shift in areas.select("area", "coding", "shift").iter_rows()
    ]
    paper = pl.DataFrame(rows, schema=["paper_bias", "paper_r2"], orient="row")
    order = {area: i for i, area in enumerate(published.DUMMY_CODED)}
    survey = _rows(pieces, "survey")
    if survey:
        own = pl.DataFrame(survey).drop("split").with_columns(shift=pl.lit("none"))
        areas = areas.join(own, on=["area", "coding", "shift"], how="left", maintain_order="left")
    return (
        pl.concat([areas, paper], how="horizontal")
        .with_columns(place=pl.col("area").replace_strict(order, return_dtype=pl.Int64))
        .sort("coding", "place", "shift")
        .drop("place")
    )


def _risk(pieces: Pieces) -> pl.DataFrame:
    rows = []
    for piece in _of(pieces, "risk").values():
        for way, attackers in piece["ways"].items():
            simulated = piece["simulated"].get(way, {})
            for attacker, found in attackers.items():
                beside = simulated if attacker == "nearest" else {}
                rows.append(
                    {
                        "way": way,
                        "k": piece["k"],
                        "attacker": attacker,
                        "bound": 1 / piece["k"],
                        **{name: found[name] for name in ("mean", "max", "exact", "standard_error")},
                        "simulated": beside.get("mean"),
                        "simulated_error": beside.get("standard_error"),
                        "trials": beside.get("trials"),
                        "classes": len(piece["class_sizes"]),
                        "releases": piece["releases"] if not found["exact"] else None,
                        **piece["clones"],
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None).sort("attacker", "way", "k")


def _risk_by_class(pieces: Pieces) -> pl.DataFrame:
    """Return the risk of every equivalence class at k = 5 and 10, by the nearest match: exact, and as simulated."""
    rows = []
    for piece in _of(pieces, "risk").values():
        if piece["k"] not in (5, 10):
            continue
        for way, attackers in piece["ways"].items():
            simulated = piece["simulated"].get(way)
            each = [None] * len(piece["class_sizes"]) if simulated is None else simulated["by_class"]
            rows += [
                {"way": way, "k": piece["k"], "class": i, "people": people, "nearest": exact, "simulated": trial}
                for i, (people, exact, trial) in enumerate(
                    zip(piece["class_sizes"], attackers["nearest"]["by_class"], each, strict=True)
                )
            ]
    schema = {"way": pl.String, "k": pl.Int64, "class": pl.Int64, "people": pl.Int64}
    schema |= {"nearest": pl.Float64, "simulated": pl.Float64}
    return pl.DataFrame(rows, schema=schema).sort("k", "way", "class")


def _settings(pieces: Pieces) -> pl.DataFrame:
    rows = _rows(pieces, "settings")
    by = ["varied", "way", "k", "w", "alpha", "clustering", "coding"]
    found = _average(rows, by, ["clusters", "information_loss"])
    shifted = [
        {**row, "predicted": row["area_predicted"], "actual": row["area_actual"], "r2": row["area_r2"]} for row in rows
    ]
    areas = _average(shifted, by).select(*by, area_bias="bias", area_bias_error="bias_error")
    attacked = [row for row in rows if "optimal_risk" in row]
    risk = (
        pl.DataFrame(attacked, infer_schema_length=None).group_by(by).agg(pl.col("optimal_risk", "nearest_risk").mean())
    )
    return found.join(areas, on=by, how="left").join(risk, on=by, how="left").sort(by)


def _many_columns(pieces: Pieces) -> pl.DataFrame:
    table = pl.DataFrame([row for rows in _of(pieces, "wide").values() for row in rows], infer_schema_length=None)
    found = table.group_by("columns", "way", "k").agg(pl.col("r2", "first_effect", "last_effect").mean())
    untouched = found.filter(pl.col("way") == "original").select("columns", of_original="r2")
    kept = found.join(untouched, on="columns").with_columns(r2_kept=pl.col("r2") / pl.col("of_original"))
    return kept.drop("of_original").sort("columns", "way")


# name of the table: kind of the pieces it is made from, and how
TABLES: dict[str, tuple[str, Callable[[Pieces], pl.DataFrame]]] = {
    "risk": ("risk", _risk),
    "risk_by_class": ("risk", _risk_by_class),
    "without_shift": ("split", _without_shift),
    "rating_areas": ("split", _areas),
    "area_summary": ("split", _area_summary),
    "area_18": ("split", _area_18),
    "distinct": ("distinct", _distinct),
    "settings": ("settings", _settings),
    "models": ("models", _models),
    "stronger": ("stronger", _stronger),
    "many_columns": ("wide", _many_columns),
    "frontier": ("frontier", _frontier),
}


def pick(table: pl.DataFrame, column: str, **where: Any) -> float:
    """Return the one number of a table in a column where others have these values."""
    found = table.filter(*(pl.col(name) == value for name, value in where.items()))[column].to_numpy()
    if len(found) != 1:
        raise KeyError(f"{len(found)} rows with {where}")
    return float(found[0])


def series(table: pl.DataFrame, column: str, **where: Any) -> dict[int, float]:
    """Return the numbers of a column by k."""
    rows = table.filter(*(pl.col(name) == value for name, value in where.items())).sort("k")
    return dict(zip(rows["k"].to_list(), np.asarray(rows[column].to_numpy(), dtype=float).tolist(), strict=True))
