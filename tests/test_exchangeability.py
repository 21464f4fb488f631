"""The lemma everything rests on (method S1): inside a cluster everybody is equally likely to receive every row.

What a record receives is tested down to the original row, not only its values, so that survey weights, which travel
with the row, are covered too. For every row, the members of a cluster must receive it equally often: counts over
independent releases are multinomial, and Pearson's test is exact enough.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2, f_oneway

import shoal
from shoal import recovery
from shoal.encoding import encode
from shoal.hiding import hide
from shoal.progress import Reporter
from shoal.schema import read_schema
from shoal.settings import Settings

RELEASES = 1500
WAYS = [
    ("resample", None),
    ("permute", None),
    ("gaussian", "transport"),
    ("gaussian", "rank"),
    ("gaussian", "cdf"),
]


def columns_of(table):
    import narwhals.stable.v2 as nw

    frame = nw.from_native(table, eager_only=True)
    return [encode(frame[c.name], c) for c in read_schema(frame, quasi_identifiers=frame.columns).columns]


def tables():
    rng = np.random.default_rng(3)
    ages = [20, 20, 31, 40, 41, 42, 60, 60, 75, 80, 81, 90]
    return {
        "sorted numbers": pl.DataFrame({"age": ages, "income": [10 * a for a in ages]}),
        "levels only": pl.DataFrame({"sex": list("MFMFMFMFMFMF"), "area": list("AABBCCAABBCC")}),
        "equal rows": pl.DataFrame({"age": [1.0] * 12, "area": ["A"] * 12}),
        "mixed, missing": pl.DataFrame({"age": [None, *ages[1:]], "area": [*"AABBCCAABBC", None]}),
        "continuous": pl.DataFrame({"x": rng.standard_normal(12), "y": rng.standard_normal(12)}),
    }


LABELS = np.repeat([0, 1, 2], 4)


def worst_p_value(columns, labels, settings, rng):
    """Return the smallest p-value over clusters and rows, corrected for their number."""
    received = np.array(
        [hide(columns, labels, settings, rng, Reporter(progress=False)).source for _ in range(RELEASES)]
    )
    worst, tests = 1.0, 0
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        for row in range(len(labels)):
            counts = (received[:, members] == row).sum(axis=0)
            if counts.sum() < 20 * len(members):
                continue
            expected = counts.mean()
            statistic = ((counts - expected) ** 2).sum() / expected
            worst = min(worst, chi2.sf(statistic, len(members) - 1))
            tests += 1
    assert tests > 0
    return worst * tests


@pytest.mark.parametrize(("method", "how"), WAYS)
@pytest.mark.parametrize("name", tables())
def test_everybody_in_a_cluster_is_equally_likely_to_receive_every_row(method, how, name):
    settings = Settings(4, method, how, "auto", 0.0, 1 / 3, "observed")
    assert worst_p_value(columns_of(tables()[name]), LABELS, settings, np.random.default_rng(11)) > 1e-3


def test_the_test_would_notice_ties_broken_in_row_order():
    """Without the two secret orders, ties hand people their own rows: the test above must fail then."""

    class InOrder(np.random.Generator):
        def permutation(self, n):
            return np.arange(n)

    settings = Settings(4, "gaussian", "transport", "auto", 0.0, 1 / 3, "observed")
    rng = InOrder(np.random.PCG64(11))
    assert worst_p_value(columns_of(tables()["levels only"]), LABELS, settings, rng) < 1e-10


@pytest.mark.parametrize(
    "name",
    [*(pytest.param(name, marks=pytest.mark.slow) for name in ("sorted numbers", "levels only")), "mixed, missing"],
)
def test_transport_through_many_leaves_and_rounds(name, monkeypatch):
    """In small tables transport is one exact assignment; with tiny leaves it splits and exchanges as in large ones."""
    real = recovery.transport_recover
    monkeypatch.setattr(recovery, "transport_recover", lambda *a, **k: real(*a, **(k | {"leaf_size": 3, "rounds": 3})))
    settings = Settings(4, "gaussian", "transport", "auto", 0.0, 1 / 3, "observed")
    assert worst_p_value(columns_of(tables()[name]), LABELS, settings, np.random.default_rng(12)) > 1e-3


def test_smoothed_values_tell_no_more_than_the_row_they_come_from(monkeypatch):
    """The mean of the smoothed values that each member of a cluster receives is the same for all."""
    monkeypatch.setattr("shoal.encoding.MANY_LEVELS", 5)
    columns = columns_of(tables()["continuous"])
    assert columns[0].is_continuous
    settings = Settings(4, "permute", None, "auto", 0.0, 1 / 3, "smoothed")
    rng = np.random.default_rng(13)
    drawn = np.array(
        [hide(columns, LABELS, settings, rng, Reporter(progress=False)).numbers[0] for _ in range(RELEASES)]
    )
    for cluster in range(3):
        members = drawn[:, cluster == LABELS]
        assert f_oneway(*members.T).pvalue > 1e-3


SLOW_WAYS = [pytest.param(*way, marks=pytest.mark.slow) for way in WAYS if way[0] == "resample" or way[1] == "cdf"]


@pytest.mark.parametrize(("method", "how"), [*SLOW_WAYS, *WAYS[1:4]])
def test_with_weights_through_the_whole_pipeline(method, how):
    """Two records of very different weight: neither may keep, or attract, the heavy row more often."""
    table = pl.DataFrame({"age": [30, 30, 50, 50], "weight": [1.0, 100.0, 3.0, 900.0], "y": [0, 1, 2, 3]})
    counts = np.zeros((4, 4))
    for seed in range(600):
        release = shoal.anonymize(
            table,
            quasi_identifiers=["age"],
            weight="weight",
            sensitive=["y"],
            k=4,
            method=method,
            recovery=how,
            n_releases=0,
            random_state=seed,
        ).table
        for weight, y in zip(release["weight"], release["y"], strict=True):
            counts[y, table["weight"].to_list().index(weight)] += 1
    expected = counts.sum(axis=0) / 4
    p_values = chi2.sf(((counts - expected) ** 2 / expected).sum(axis=0), 3)
    assert p_values.min() * 4 > 1e-3


def test_released_position_tells_nothing_about_the_original_position():
    n = 400
    table = pl.DataFrame({"age": range(n), "y": range(n)})
    release = shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["y"], k=5, allow_leaks=["y"]).table
    assert abs(np.corrcoef(release["y"].to_numpy(), np.arange(n))[0, 1]) < 5 / np.sqrt(n)
