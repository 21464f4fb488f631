"""The risk of being picked out: exact where there is a formula, and the paper's simulated attack beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.hiding import hide
from shoal.privacy.linkage import simulate_linkage
from shoal.privacy.risk import draw_releases, measure_risk
from shoal.progress import Reporter
from shoal.studies.population import Population, Split
from shoal.studies.releasing import PAPER, PAPER_WAYS, ROUNDED, WAYS, cluster_members, encode_members, settings_of

Floats = NDArray[np.float64]


def measure_reidentification(
    people: Population, split: Split, k: int, n_releases: int, n_trials: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Return what attackers achieve on the members at one k, by equivalence class, on the paper's clusters.

    Both attackers know everybody's quasi-identifiers; the optimal one knows the clusters too. n_trials releases by each
    of the paper's methods are attacked as the paper does it.
    """
    columns = encode_members(people, split.member_cell)
    base = replace(PAPER, k=k)
    labels = cluster_members(columns, split.member_cost, base)
    classes, of_record, sizes = np.unique(split.member_cell, return_inverse=True, return_counts=True)
    found: dict[str, Any] = {
        "k": k,
        "releases": n_releases,
        "class_sizes": sizes.tolist(),
        "clones": _count_clones(split, labels),
        "ways": {},
        "simulated": {},
    }
    for way in WAYS:
        if way == ROUNDED:
            continue
        settings = settings_of(way, base)
        drawn = draw_releases(columns, labels, settings, rng, n_releases)
        told = {}
        for attacker, risk in measure_risk(columns, labels, settings, drawn).items():
            by_class = np.bincount(of_record, risk.per_record) / sizes
            told[attacker] = {
                "by_class": by_class.tolist(),
                "mean": risk.mean,
                "max": risk.max,
                "exact": risk.exact,
                "standard_error": risk.mean_standard_error,
            }
        found["ways"][way] = told
    for way in PAPER_WAYS if n_trials else ():
        attacked = _attack(people, split, labels, columns, settings_of(way, base), n_trials, rng)
        by_class = np.bincount(of_record, attacked.mean(axis=0)) / sizes
        found["simulated"][way] = {
            "by_class": by_class.tolist(),
            "mean": float(attacked.mean()),
            "standard_error": float(attacked.mean(axis=1).std(ddof=1) / np.sqrt(n_trials)),
            "trials": n_trials,
        }
    assert len(classes) == len(sizes)
    return found


def _count_clones(split: Split, labels: NDArray[np.int64]) -> dict[str, float]:
    """Return how many members are different respondents, and in how many clusters fewer than k of them are."""
    pairs = np.unique(np.column_stack([labels, split.member]), axis=0)
    distinct, sizes = np.bincount(pairs[:, 0]), np.bincount(labels)
    return {
        "distinct": len(np.unique(split.member)) / len(labels),
        "clusters_with_fewer_than_k": float((distinct < sizes.min()).mean()),
    }


def _attack(
    people: Population,
    split: Split,
    labels: NDArray[np.int64],
    columns: Sequence[Any],
    settings: Any,
    n_trials: int,
    rng: np.random.Generator,
) -> Floats:
    """Return who was picked out in every trial, shape (n_trials, n_members): one release, one match for everybody."""
    known = people.cells[split.member_cell]
    hits = []
    for _ in range(n_trials):
        hidden = hide(list(columns), labels, settings, rng, Reporter(progress=False))
        if hidden.averaged:
            released = np.column_stack([hidden.numbers[j] for j in range(len(columns))])
        else:
            released = known[hidden.source]
        attack = simulate_linkage(known, released, n_trials=1, random_state=rng)
        hits.append(attack.per_record)
    return np.array(hits)
