"""The experiments as pieces of work: each a function of the population and a few numbers, seeded by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.studies.population import Population, split_population
from shoal.studies.predicting import bootstrap_areas, run_split
from shoal.studies.releasing import KS, WAYS
from shoal.studies.risking import measure_reidentification
from shoal.studies.running import Task
from shoal.studies.varying import (
    FRONTIER_KS,
    VARIED_KS,
    compare_models,
    demand_more,
    predict_distinct,
    try_frontier,
    try_many_columns,
    vary_settings,
)

WIDE = (4, 8, 12)  # quasi-identifiers of the synthetic table
_WIDE_ROWS, _WIDE_K = 8_000, 5
_SLOW_WAY = "gaussian transport"
_SLOW_EVERY = (
    10  # so many halvings apart releases are by transport too, which takes longer than all other ways together
)
_FRONTIER_RELEASES = 6  # at most
_LARGE = 50  # splits from which on the experiments of ours are not shortened


def plan(people: Population, splits: int, seed: int) -> list[Task]:
    """Return all tasks of the study. What a task of a name gives does not depend on how many splits there are."""
    large = splits >= _LARGE
    ks = usable_ks(people)
    n_releases, n_trials = int(np.clip(splits // 10, 3, 12)), int(np.clip(splits // 3, 5, 60))
    tasks = [Task(f"split-{i:04d}", predict, (i, seed), 12.0 if _is_slow(i) else 2.5) for i in range(splits)]
    tasks += [
        Task(
            f"risk-k{k}-{n_releases}-{n_trials}",
            risk,
            (k, n_releases, n_trials, seed),
            1.4 * n_releases + 0.3 * n_trials,
        )
        for k in ks
    ]
    few = min(n_releases, _FRONTIER_RELEASES)
    tasks += [
        Task(f"frontier-k{k}-{few}", frontier, (k, few, seed), 2.5 * few)
        for k in (FRONTIER_KS if large else VARIED_KS)
        if k in ks
    ]
    thorough = [(i, k) for i in range(2 if large else 1) for k in (VARIED_KS if large else VARIED_KS[1:2])]
    tasks += [
        Task(
            f"settings-{i:04d}-k{k}{'-risk' * ((i, k) in thorough)}",
            settings,
            (i, k, (i, k) in thorough, seed),
            15.0 if (i, k) in thorough else 1.5,
        )
        for i in range(_some(splits, 5))
        for k in VARIED_KS
        if k in ks
    ]
    tasks += [Task(f"distinct-{i:04d}", distinct, (i, seed), 1.5) for i in range(_some(splits, 5))]
    tasks += [Task("survey-0", survey, (seed,), 2.0)]
    tasks += [Task(f"models-{i:04d}", models, (i, seed), 11.0) for i in range(_some(splits, 20))]
    tasks += [Task(f"stronger-{i:04d}", stronger, (i, seed), 8.0) for i in range(_some(splits, 50))]
    tasks += [Task(f"wide-{d}-{i}", wide, (d, i, seed), 4.0) for d in WIDE for i in range(2 if large else 1)]
    return tasks


def usable_ks(people: Population) -> list[int]:
    """Return the k that leave a few clusters at least."""
    return [k for k in KS if k <= people.n_members // 4]


def _some(splits: int, one_in: int) -> int:
    """Return how many splits an experiment of ours runs on: whole halvings, if there are any."""
    return min(splits, max(2, splits // one_in // 2 * 2))


def _is_slow(split: int) -> bool:
    return (split // 2) % _SLOW_EVERY == 0


def predict(people: Population, split: int, seed: int) -> dict[str, Any]:
    """Predict without shift, under shift, and under shift from releases, on one split."""
    ways = [way for way in WAYS if way != _SLOW_WAY or _is_slow(split)]
    rng = np.random.default_rng([seed, split, 2])
    return run_split(people, split_population(people, split, seed), rng, usable_ks(people), ways)


def risk(people: Population, k: int, n_releases: int, n_trials: int, seed: int) -> dict[str, Any]:
    """Measure the attackers at one k, on the members of the first split."""
    rng = np.random.default_rng([seed, k, 3])
    return measure_reidentification(people, split_population(people, 0, seed), k, n_releases, n_trials, rng)


def distinct(people: Population, split: int, seed: int) -> list[dict[str, Any]]:
    """Predict without shift from members of whom none is the same respondent as another."""
    drawn = split_population(people, split, seed, distinct=True)
    ks = [k for k in VARIED_KS if k <= len(drawn.member_cell) // 4]
    ways = [way for way in WAYS if way != _SLOW_WAY]
    rng = np.random.default_rng([seed, split, 9])
    return predict_distinct(people, drawn, ks, ways, rng, attack=split == 0)


def survey(people: Population, seed: int) -> list[dict[str, Any]]:
    """Measure how far the survey's own sampling error reaches into the bias of rating areas."""
    return bootstrap_areas(people, 200, np.random.default_rng([seed, 10]))


def frontier(people: Population, k: int, n_releases: int, seed: int) -> list[dict[str, Any]]:
    """Measure risk and utility of every method at one k, on the members of the first split."""
    return try_frontier(people, split_population(people, 0, seed), k, n_releases, np.random.default_rng([seed, k, 4]))


def settings(people: Population, split: int, k: int, thorough: bool, seed: int) -> list[dict[str, Any]]:
    """Change one setting at a time; if thorough, refine clusters and measure attackers too."""
    rng = np.random.default_rng([seed, split, k, 5])
    return vary_settings(people, split_population(people, split, seed), k, rng, thorough=thorough)


def models(people: Population, split: int, seed: int) -> list[dict[str, Any]]:
    """Learn other models of cost."""
    return compare_models(people, split_population(people, split, seed), np.random.default_rng([seed, split, 6]))


def stronger(people: Population, split: int, seed: int) -> list[dict[str, Any]]:
    """Ask for l-diversity and t-closeness."""
    return demand_more(people, split_population(people, split, seed), np.random.default_rng([seed, split, 7]))


def wide(people: Population, d: int, time: int, seed: int) -> list[dict[str, Any]]:  # noqa: ARG001, as all others
    """Release a synthetic table of many quasi-identifiers."""
    return try_many_columns(d, _WIDE_ROWS, _WIDE_K, np.random.default_rng([seed, d, time, 8]))
