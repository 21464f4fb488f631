"""What the paper did not have: other clusters, w and alpha, other models of cost, stronger models of privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.anonymizer import anonymize
from shoal.choosing import LOADINGS, spell_out, try_settings
from shoal.clustering.distortion import squared_distances
from shoal.encoding import EncodedColumn, encode_table, positions
from shoal.hiding import hide
from shoal.market.costs import make_cost_model
from shoal.privacy.risk import draw_releases, measure_risk
from shoal.progress import Reporter
from shoal.settings import Settings
from shoal.studies.population import COLUMNS, Population, Split
from shoal.studies.predicting import (
    AREA,
    CODINGS,
    Market,
    Ratios,
    Row,
    fit_least_squares,
    predict_without_shift,
)
from shoal.studies.releasing import (
    PAPER,
    UNTOUCHED,
    WAYS,
    Sample,
    cluster_members,
    draw_sample,
    encode_members,
    release_members,
    settings_of,
)
from shoal.studies.risking import measure_reidentification

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

VARIED_KS = (5, 20, 100)
FRONTIER_KS = (5, 10, 20, 50, 100)
MODELS = ("additive", "two-part", "gamma", "tweedie", "multiplicative")
MODEL_WAYS = ("resample", "gaussian cdf", "permute", "gaussian rank")
RESPONSE_WEIGHTS = (0.0, 0.3, 1.0, 3.0)
VARIED_LOADINGS = (0.01, 0.03, 0.1, 1 / 3, 1.0)
STRONGER: dict[str, dict[str, Any]] = {
    "k-anonymity": {},
    "3-diversity": {"l_diversity": {"cost": 3}},
    "entropy 5-diversity": {"l_diversity": {"cost": ("entropy", 5)}},
    "0.2-closeness": {"t_closeness": {"cost": 0.2}},
    "0.1-closeness": {"t_closeness": {"cost": 0.1}},
    "0.05-closeness": {"t_closeness": {"cost": 0.05}},
}
_STRONGER_K = 10
_RISK_RELEASES = 12


def vary_settings(
    people: Population, split: Split, k: int, rng: np.random.Generator, *, thorough: bool = False
) -> list[Row]:
    """Change one thing at a time: w, the loading alpha, the clustering (and so the number of clusters).

    thorough=True also refines the clusters, and measures what attackers achieve.
    """
    columns = encode_members(people, split.member_cell)
    points = positions(columns)
    total = float(squared_distances(points, np.ones(len(points)), np.zeros(len(points), dtype=np.int64)).sum())
    ratios = Ratios(people, split)
    known: dict[tuple[str, float], Index] = {}
    rows = []
    for what, way, base in _variations(k, thorough=thorough):
        made_by = str(base.clustering), base.response_weight
        if made_by not in known:
            known[made_by] = cluster_members(columns, split.member_cost, base)
        labels = known[made_by]
        sample = draw_sample(people, split, columns, labels, way, base, rng)
        lost = 100 * float(squared_distances(points, np.ones(len(points)), labels).sum()) / total
        about = {
            "varied": what,
            "way": way,
            "k": k,
            "w": base.response_weight,
            "alpha": base.loading,
            "clustering": base.clustering,
            "clusters": int(labels.max()) + 1,
            "information_loss": lost,
        }
        risk = _measure_optimal(columns, labels, settings_of(way, base), rng) if thorough else {}
        rows += [{**about, **row, **risk} for row in _predict_both(people, split, sample, ratios)]
    return rows


def _variations(k: int, *, thorough: bool) -> Iterator[tuple[str, str, Settings]]:
    paper = replace(PAPER, k=k)
    for w in RESPONSE_WEIGHTS:
        for way in ("permute", "gaussian rank"):
            yield "w", way, replace(paper, response_weight=w)
    for alpha in VARIED_LOADINGS:
        yield "alpha", "gaussian rank", replace(paper, loading=alpha)
    for algorithm in ("greedy", "auto", *(["refined"] if thorough else [])):
        for way in ("permute", "gaussian rank", "centroid"):
            yield "clustering", way, replace(paper, clustering=algorithm, response_weight=0.0)


def _measure_optimal(
    columns: list[EncodedColumn], labels: Index, settings: Settings, rng: np.random.Generator
) -> dict[str, float]:
    found = measure_risk(columns, labels, settings, draw_releases(columns, labels, settings, rng, _RISK_RELEASES))
    return {f"{name}_risk": risk.mean for name, risk in found.items()}


def _predict_both(people: Population, split: Split, sample: Sample, ratios: Ratios) -> list[Row]:
    """Predict enrollees of the same market, and of rating area 18 with non-parametric weights."""
    same = Market.of(people, split, people.enrols)
    other = Market.of(people, split, people.enrols * people.areas[AREA])
    weight = ratios.estimate(AREA)["nonparametric"](sample)
    rows = []
    for coding in CODINGS:
        found = same.score(fit_least_squares(people, sample, np.ones(len(sample.mass)), coding))
        shifted = other.score(fit_least_squares(people, sample, weight, coding))
        rows.append({"coding": coding, **found, **{f"area_{name}": value for name, value in shifted.items()}})
    return rows


def compare_models(people: Population, split: Split, rng: np.random.Generator) -> list[Row]:
    """Learn other models of cost from releases: two-part, and generalised linear ones."""
    columns = encode_members(people, split.member_cell)
    test = people.table_of(np.arange(len(people.cells)), np.zeros(len(people.cells))).select(COLUMNS)
    ratios = Ratios(people, split)
    everyone = Sample.of_cells(people, np.arange(len(people.cells)), np.zeros(len(people.cells)))
    weigh = ratios.estimate(AREA)["nonparametric"](everyone)
    markets = {
        "none": (Market.of(people, split, people.enrols), np.ones(len(people.cells))),
        "nonparametric": (Market.of(people, split, people.enrols * people.areas[AREA]), weigh),
    }
    rows = []
    for way, k, cell in _received(split, columns, rng):
        table = people.table_of(cell, split.member_cost)
        for model in MODELS:
            for shift, (market, weight) in markets.items():
                pipeline = make_cost_model(model)
                last = pipeline.steps[-1][0]
                pipeline.fit(table.select(COLUMNS), split.member_cost, **{f"{last}__sample_weight": weight[cell]})
                found = market.score(np.asarray(pipeline.predict(test)))
                rows.append({"way": way, "k": k, "model": model, "shift": shift, **found})
    return rows


def _received(split: Split, columns: list[EncodedColumn], rng: np.random.Generator) -> Iterator[tuple[str, int, Index]]:
    """Return the cells that members have after a release, untouched first."""
    yield UNTOUCHED, 1, split.member_cell
    for k in VARIED_KS:
        base = replace(PAPER, k=k)
        labels = cluster_members(columns, split.member_cost, base)
        for way in MODEL_WAYS:
            hidden = hide(columns, labels, settings_of(way, base), rng, Reporter(progress=False))
            yield way, k, split.member_cell[hidden.source]


def demand_more(people: Population, split: Split, rng: np.random.Generator) -> list[Row]:
    """Ask the clusters for l-diversity or t-closeness of cost, and see what that costs."""
    table = people.table_of(split.member_cell, split.member_cost)
    market = Market.of(people, split, people.enrols)
    place = {tuple(cell): i for i, cell in enumerate(people.cells.astype(np.int64).tolist())}
    rows = []
    for name, asked in STRONGER.items():
        for method, recovery in (("permute", None), ("gaussian", "rank")):
            release = anonymize(
                table,
                quasi_identifiers=list(COLUMNS),
                sensitive=["cost"],
                allow_leaks=["cost"],  # known to tell of age, which is what the models are about
                k=_STRONGER_K,
                method=method,
                recovery=recovery,
                n_releases=_RISK_RELEASES,
                random_state=rng,
                progress=False,
                **asked,
            )
            cell = np.array([place[row] for row in release.table.select(COLUMNS).iter_rows()], dtype=np.int64)
            sample = Sample.of_cells(people, cell, release.table["cost"].to_numpy())
            told = release.certificate
            rows.append(
                {
                    "asked": name,
                    "way": " ".join(filter(None, (method, recovery))),
                    "k": _STRONGER_K,
                    "clusters": told["clusters"]["number"],
                    "information_loss": told["models_cost"].get("information_loss_with"),
                    "optimal_risk": told["risk"]["optimal"]["mean"],
                    **market.score(fit_least_squares(people, sample, np.ones(len(sample.mass)), "dummy")),
                }
            )
    return rows


def predict_distinct(
    people: Population, split: Split, ks: Sequence[int], ways: Sequence[str], rng: np.random.Generator, *, attack: bool
) -> list[Row]:
    """Predict without shift from members drawn without replacement; attack=True measures attackers too."""
    released = dict(release_members(people, split, ks, ways, rng))
    released[UNTOUCHED, 1] = Sample.of_cells(people, split.member_cell, split.member_cost)
    rows = predict_without_shift(people, split, released)
    if attack:
        for k in ks:
            found = measure_reidentification(people, split, k, _RISK_RELEASES, 0, rng)["ways"]
            for row in rows:
                if row["k"] == k and row["way"] in found:
                    row |= {f"{name}_risk": risk["mean"] for name, risk in found[row["way"]].items()}
    return rows


def make_wide_people(n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Return ordinal columns of five levels that depend on one another, a response, and its coefficients.

    Every column matters as much as any other, so that a recovery that loses the last ones shows it.
    """
    common = rng.normal(size=(n, 1))
    latent = math.sqrt(0.3) * common + math.sqrt(0.7) * rng.normal(size=(n, d))
    X = np.digitize(latent, [-0.84, -0.25, 0.25, 0.84]).astype(np.float64)
    effects = np.ones(d)
    signal = X @ effects
    y = signal + signal.std() * math.sqrt(0.6) * rng.normal(size=n)
    return X, y, effects


def try_many_columns(d: int, n: int, k: int, rng: np.random.Generator) -> list[Row]:
    """Release d quasi-identifiers, and see which of a linear model's coefficients survive, by the order of columns."""
    X, y, effects = make_wide_people(n, d, rng)
    fresh, truth, _ = make_wide_people(n, d, rng)
    columns = encode_table(X)
    base = replace(PAPER, k=k, clustering="auto", response_weight=0.0)
    labels = cluster_members(columns, y, base)
    rows = [{"way": UNTOUCHED, "columns": d, "k": 1, **_judge(X, y, fresh, truth, effects)}]
    for way in WAYS:
        hidden = hide(columns, labels, settings_of(way, base), rng, Reporter(progress=False))
        if hidden.averaged:
            continue
        rows.append({"way": way, "columns": d, "k": k, **_judge(X[hidden.source], y, fresh, truth, effects)})
    return rows


def _judge(X: Floats, y: Floats, fresh: Floats, truth: Floats, effects: Floats) -> Row:
    ones = np.ones((len(X), 1))
    found = np.linalg.lstsq(np.hstack([ones, X]), y, rcond=None)[0]
    predicted = np.hstack([ones, fresh]) @ found
    shares = found[1:] / effects
    return {
        "r2": 1 - float(((truth - predicted) ** 2).mean() / truth.var()),
        "first_effect": float(shares[:2].mean()),
        "last_effect": float(shares[-2:].mean()),
    }


def try_frontier(
    people: Population, split: Split, k: int, n_releases: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Return risk and utility of every method and loading at one k, on the default clusters, as `shoal.frontier`."""
    table = people.table_of(split.member_cell, split.member_cost)
    *columns, response = encode_table(table)
    base = replace(PAPER, k=k, clustering="auto", response_weight=0.0)
    labels = cluster_members(columns, split.member_cost, base)
    settings = spell_out(base, ("transport", "rank", "cdf", "permute", "resample", "centroid"), LOADINGS)
    found = [outcome.to_dict() for outcome in try_settings(columns, labels, response, settings, n_releases, rng)]
    return [{name: None if value != value else value for name, value in row.items()} for row in found]  # noqa: PLR0124
