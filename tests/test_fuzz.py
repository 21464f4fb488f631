"""Random small tables through everything: no crash, no breach, no NaN."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import InputError
from shoal.privacy import class_sizes, presence, reidentification_risk, simulate_linkage

METHODS = [
    ("centroid", None),
    ("resample", None),
    ("permute", None),
    *(("gaussian", r) for r in ("transport", "rank", "cdf")),
]


# Why a random table may be refused: a column of missing values, few rows, a model out of reach, text to be smoothed.
REFUSED = (
    "no value at all",
    "cannot be a quasi-identifier",
    "no model can be measured",
    "needs at least",
    "cannot be met",
    "smoothed",
    "loading is too small",
)


def random_column(rng, n):
    """Return a column of some kind: few or many values, constant, heavy-tailed, text, dates, missing."""
    kind = rng.integers(8)
    if kind == 0:
        values = rng.integers(0, rng.integers(1, 6), n).tolist()
    elif kind == 1:
        values = rng.standard_normal(n).tolist()
    elif kind == 2:
        values = (10.0 ** rng.integers(-200, 200, n)).tolist()
    elif kind == 3:
        values = rng.choice(["", "a", "b", "=1+1", "née"], n).tolist()
    elif kind == 4:
        values = (rng.random(n) < 0.3).tolist()
    elif kind == 5:
        values = pl.Series(rng.integers(0, 20_000, n)).cast(pl.Date).to_list()
    elif kind == 6:
        values = [7] * n
    else:
        values = np.sort(rng.integers(-(2**60), 2**60, n)).tolist()
    if rng.random() < 0.2:
        values = [None if gone else v for v, gone in zip(values, rng.random(n) < 0.3, strict=True)]
    return values


def random_case(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 4))
    table = pl.DataFrame(
        {**{f"q{j}": random_column(rng, n) for j in range(d)}, "s": random_column(rng, n)}, strict=False
    )
    method, recovery = METHODS[rng.integers(len(METHODS))]
    k = int(rng.integers(2, max(3, n + 1)))
    options = {"k": k, "method": method, "recovery": recovery, "n_releases": int(rng.choice([0, 2, 3]))}
    if method != "centroid" and rng.random() < 0.2:
        options["release_values"] = "smoothed"
    if rng.random() < 0.2:
        options["t_closeness"] = round(float(rng.random()), 2)
    if rng.random() < 0.2:
        options["l_diversity"] = float(rng.integers(2, 4))
    return table, [f"q{j}" for j in range(d)], options


def find_nan(value):
    if isinstance(value, dict):
        return any(find_nan(v) for v in value.values())
    if isinstance(value, list):
        return any(find_nan(v) for v in value)
    return isinstance(value, float) and not np.isfinite(value)


def run(seed):
    """Release and measure a random table; return whether there was a release."""
    table, qi, options = random_case(seed)
    try:
        made = shoal.anonymize(
            table, quasi_identifiers=qi, sensitive=["s"], allow_leaks=["s"], random_state=seed, **options
        )
    except InputError as error:
        if not any(text in str(error) for text in REFUSED):
            raise
        return False
    certificate = made.certificate
    json.dumps(certificate, allow_nan=False)
    assert not find_nan(certificate)
    k = options["k"]
    assert certificate["clusters"]["smallest"] >= k
    assert all(found["max"] <= 1 / k + 1e-4 for found in certificate["risk"].values())
    assert len(made.table) == len(table)
    exact = options["method"] == "permute" or options["recovery"] in ("transport", "rank")
    if exact and "release_values" not in options:
        assert made.table.select(qi).sort(qi).equals(table.select(qi).sort(qi))
    labels = np.arange(len(table)) % max(1, len(table) // k)
    for attacker in ("nearest", "optimal"):
        risk = reidentification_risk(
            table[qi], labels, method=options["method"], recovery=options["recovery"], attacker=attacker,
            n_releases=2, random_state=seed,
        )  # fmt: skip
        assert ((risk.per_record >= 0) & (risk.per_record <= 1 / np.bincount(labels)[labels] + 1e-12)).all()
    linked = simulate_linkage(table[qi], table[qi], n_trials=1, random_state=seed)
    assert 0 < linked.rate <= 1
    assert 0 <= class_sizes(made.table, qi).rate <= 1
    assert 0 <= presence(table, made.table, qi).rate <= 1
    return True


def test_random_tables():
    assert sum(run(seed) for seed in range(300)) > 180


@pytest.mark.slow
def test_ten_thousand_random_tables():
    assert sum(run(seed) for seed in range(300, 10_300)) > 6_000
