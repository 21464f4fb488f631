"""Models of any table: by hand, and against pyCANON."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal import InputError
from shoal.privacy import k_anonymity, l_diversity, t_closeness


def random_table(seed, n=60):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 23, n),
            "sex": rng.choice(["F", "M"], n),
            "ill": rng.choice(["flu", "cold", "gout", "none"], n, p=[0.4, 0.3, 0.1, 0.2]),
            "cost": rng.integers(0, 12, n) * 10,
            "height": rng.normal(170, 9, n).round(1),
        }
    )


@pytest.mark.parametrize("seed", range(12))
def test_agrees_with_pycanon(seed):
    anonymity = pytest.importorskip("pycanon.anonymity", reason="pyCANON is installed by make test, without its pins")
    table, qi = random_table(seed), ["age", "sex"]
    assert k_anonymity(table, qi) == anonymity.k_anonymity(table, qi)
    for sensitive in (["ill"], ["cost"], ["ill", "cost"]):
        assert l_diversity(table, qi, sensitive) == anonymity.l_diversity(table, qi, sensitive)
        mine = l_diversity(table, qi, sensitive, kind="entropy")
        # pyCANON rounds down, also 2.9999999999999996
        assert anonymity.entropy_l_diversity(table, qi, sensitive) in (int(mine - 1e-9), int(mine + 1e-9))
    for sensitive in (["ill"], ["cost"], ["height"]):
        assert t_closeness(table, qi, sensitive) == pytest.approx(
            anonymity.t_closeness(table, qi, sensitive), abs=1e-12
        )


def test_an_auditor_of_class_sizes_reads_one_on_a_release():
    """pyCANON reads k = 1 on a release in which nobody can be picked out above 1/k: the guarantee is another."""
    import shoal

    anonymity = pytest.importorskip("pycanon.anonymity", reason="pyCANON is installed by make test, without its pins")
    people, qi = shoal.datasets.load_cohort(300).to_pandas(), ["sex", "age", "education", "income"]
    for column in qi:
        people[column] = people[column].astype(str)
    release = shoal.anonymize(people, quasi_identifiers=qi, sensitive=["cost"], others="drop", k=10, random_state=0)
    assert anonymity.k_anonymity(release.table, qi) == k_anonymity(release.table, qi) == 1
    assert max(found["max"] for found in release.certificate["risk"].values()) <= 0.1
    assert any(item["what"] == "equal rows" for item in release.certificate["not_covered"])


def test_by_hand():
    table = pl.DataFrame({"q": [1, 1, 1, 2, 2, 2], "y": [0, 0, 0, 1, 1, 1], "z": ["a", "b", "c", "a", "a", None]})
    assert k_anonymity(table, ["q"]) == 3
    assert l_diversity(table, ["q"], ["y"]) == 1
    assert l_diversity(table, ["q"], ["z"]) == 1  # a missing value is no diversity
    assert l_diversity(table, ["q"], ["y"], kind="entropy") == 1
    assert t_closeness(table, ["q"], ["y"]) == pytest.approx(0.5)
    ordered = {"z": ["a", "b", "c"]}
    overall = np.array([3, 1, 1, 1]) / 6  # a, b, c, missing
    by_class = [[1 / 3, 1 / 3, 1 / 3, 0], [2 / 3, 0, 0, 1 / 3]]
    expected = max(np.abs(np.cumsum(np.array(p) - overall)).sum() / 3 for p in by_class)
    assert t_closeness(table, ["q"], ["z"], kinds=ordered) == pytest.approx(expected)


def test_the_published_example_of_t_closeness():
    """Li, Li and Venkatasubramanian: salaries 3k .. 11k; {3, 4, 5} has distance 0.375 and {6, 8, 11} 0.167."""
    table = pl.DataFrame({"class": [0, 0, 0, 1, 1, 1, 2, 2, 2], "salary": [3, 4, 5, 6, 8, 11, 7, 9, 10]})
    assert t_closeness(table, ["class"], ["salary"]) == pytest.approx(0.375)
    table = pl.DataFrame({"class": [0, 0, 0, 1, 1, 1, 2, 2, 2], "salary": [6, 8, 11, 3, 7, 10, 4, 5, 9]})
    from shoal.clustering.diversity import measure_closeness

    found = measure_closeness(table["salary"].to_numpy() - 3, np.arange(9), table["class"].to_numpy(), ordered=True)
    assert found[0] == pytest.approx(0.1667, abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: l_diversity(t, ["q"], []), "sensitive is empty"),
        (lambda t: l_diversity(t, ["q"], ["y"], kind="best"), "kind='best' is not known"),
        (lambda t: t_closeness(t, ["q"], ["z"]), "names 'z', which is not a column"),
        (lambda t: t_closeness(t, ["q"], ["l"]), "'l' has a dtype for which no model"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call(pl.DataFrame({"q": [1, 1], "y": [1, 2], "l": [[1], [2]]}))
