from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InputError

WAYS = [
    ("centroid", None),
    ("resample", None),
    ("permute", None),
    *(("gaussian", r) for r in ("transport", "rank", "cdf")),
]


def claims(rng, persons=40):
    rows = rng.integers(1, 8, persons)
    who = np.repeat(np.arange(persons), rows)
    return pl.DataFrame(
        {
            "person": [f"id{p}" for p in who],
            "age": rng.integers(18, 60, persons)[who],
            "sex": rng.choice(["f", "m"], persons)[who],
            "weight": rng.random(persons)[who] + 1,
            "claim": np.arange(len(who)),
        }
    ).sample(fraction=1.0, shuffle=True, seed=1)


@pytest.mark.parametrize(("method", "recovery"), WAYS)
def test_all_rows_of_a_person_receive_the_same_and_clusters_hold_k_persons(rng, method, recovery):
    table = claims(rng)
    release = shoal.anonymize(
        table,
        quasi_identifiers=["age", "sex"],
        sensitive=["claim"],
        weight="weight",
        unit="person",
        k=5,
        method=method,
        recovery=recovery,
    )
    both = release.table.join(table.select("claim", "person"), on="claim")
    assert (both.group_by("person").agg(pl.struct("age", "sex", "weight").n_unique())["age"] == 1).all()
    assert "person" not in release.table.columns
    assert release.certificate["people"] == 40
    assert release.certificate["rows"] == len(table)
    assert release.certificate["clusters"]["smallest"] >= 5
    assert "number of rows" in [item["what"] for item in release.certificate["not_covered"]]
    measured = release.certificate["measured"]
    names = ["age", "sex"]
    expected = shoal.utility.histogram_intersection(table.select(names), release.table.select(names))
    assert measured["histogram_intersection"] == pytest.approx(expected)  # over rows, as anybody would count
    if method == "permute" or recovery in ("transport", "rank"):
        assert measured["histogram_intersection_of_people"] == 1.0
        assert measured["histogram_intersection"] < 1.0
        assert "1.0000 of the joint histogram kept (exact values), counting people;" in str(release)
        before = table.unique("person").select("age", "sex", "weight")
        after = both.unique("person").select("age", "sex", "weight")
        assert before.sort(before.columns).equals(after.sort(before.columns))


def test_a_patient_with_k_claims_is_not_his_own_cluster():
    """One person with many rows, far from the others: rows alone would fill a cluster with him."""
    table = pl.DataFrame({"person": [0] * 6 + [1, 2, 3], "age": [99] * 6 + [20, 21, 22], "claim": range(9)})
    release = shoal.anonymize(
        table, quasi_identifiers=["age"], sensitive=["claim"], unit="person", k=3, allow_leaks=["claim"]
    )
    assert release.certificate["clusters"] == {"number": 1, "smallest": 4, "median": 4.0, "largest": 4}


def test_repeated_identifiers_need_a_unit(rng):
    table = claims(rng)
    with pytest.raises(InputError, match="Identifier 'person' has repeated values.*unit='person'"):
        shoal.anonymize(table, quasi_identifiers=["age"], identifiers=["person"], others="drop", k=3)
    shoal.anonymize(table, quasi_identifiers=["age"], identifiers=["person"], unit="person", others="drop", k=3)
    unique = table.with_columns(name=pl.Series([f"n{i}" for i in range(len(table) - 2)] + [None, None]))
    shoal.anonymize(unique.drop("person"), quasi_identifiers=["age"], identifiers=["name"], others="drop", k=3)


def test_what_must_not_vary_within_a_person(rng):
    table = claims(rng)
    varying = table.with_columns(age=pl.Series(np.arange(len(table))))
    with pytest.raises(InputError, match="Quasi-identifier 'age' varies within a person"):
        shoal.anonymize(varying, quasi_identifiers=["age"], unit="person", others="drop", k=3)
    varying = table.with_columns(weight=pl.Series(np.arange(len(table)) + 1.0))
    with pytest.raises(InputError, match="weight='weight' varies within a person"):
        shoal.anonymize(varying, quasi_identifiers=["age"], weight="weight", unit="person", others="drop", k=3)
    with pytest.raises(InputError, match="k=41 needs at least 41 persons, but the table has 40 persons"):
        shoal.anonymize(table, quasi_identifiers=["age"], unit="person", others="drop", k=41)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        ([1.0, -1.0, 1.0], "must not be negative"),
        ([0.0, 0.0, 0.0], "nor zero throughout"),
        ([1.0, None, 1.0], "missing values"),
        ([1.0, float("nan"), 1.0], "missing values"),
        ([1.0, float("inf"), 1.0], "missing or infinite"),
        (["a", "b", "c"], "must be numbers"),
    ],
)
def test_bad_weights(weights, text):
    table = pl.DataFrame({"age": [1, 2, 3], "w": weights})
    with pytest.raises(InputError, match=text):
        shoal.anonymize(table, quasi_identifiers=["age"], weight="w", k=2)


def test_missing_persons_are_refused():
    with pytest.raises(InputError, match="unit='p' has missing values"):
        shoal.anonymize(pl.DataFrame({"age": [1, 2], "p": ["a", None]}), quasi_identifiers=["age"], unit="p", k=2)
    with pytest.raises(InputError, match="unit='p' has missing values"):
        shoal.anonymize(
            pl.DataFrame({"age": [1, 2], "p": [1.0, float("nan")]}), quasi_identifiers=["age"], unit="p", k=2
        )


def test_a_weight_of_0_is_a_person_too():
    table = pl.DataFrame({"age": [1, 2, 3, 4], "w": [0.0, 1.0, 2.0, 3.0]})
    release = shoal.anonymize(table, quasi_identifiers=["age"], weight="w", k=2, method="permute")
    assert sorted(release.table["w"]) == [0, 1, 2, 3]


def test_several_rows_share_the_response_equally(rng):
    """With response_weight > 0 a person counts with the mean of the sensitive rows, missing ones left out."""
    table = claims(rng)
    table = table.with_columns(y=pl.when(pl.col("claim") % 3 == 0).then(None).otherwise(pl.col("claim") * 1.0))
    release = shoal.anonymize(
        table, quasi_identifiers=["age"], sensitive=["y"], unit="person", others="drop", k=5, response_weight=1.0
    )
    assert release.certificate["clusters"]["smallest"] >= 5
    assert "replay of the clustering" in [item["what"] for item in release.certificate["not_covered"]]
