from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InputError, LeakError


def people(rng, n=600):
    age = rng.integers(18, 90, n)
    income = rng.lognormal(10, 1, n)
    return pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], n),
            "income": income,
            "born": [datetime.date(1930, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 25000, n)],
            "zip": [f"z{z:05d}" for z in rng.integers(0, 2 * n, n)],
            "rare": np.arange(n) % 60 == 0,
            "grade": pl.Series(
                [f"g{g:03d}" for g in rng.integers(0, 300, n)], dtype=pl.Enum([f"g{g:03d}" for g in range(300)])
            ),
            "cost": np.round(rng.lognormal(7, 1.5, n) * (1 + age / 40), 2),  # nearly unique, and rises with age
        }
    )


def release(table, **options):
    roles = {
        "quasi_identifiers": ["age", "sex", "income", "born", "zip", "grade", "rare"],
        "sensitive": ["cost"],
        "others": "keep",
    }
    return shoal.anonymize(table, **(roles | options))


def test_a_nearly_unique_column_is_not_a_leak(rng):
    certificate = release(people(rng)).certificate
    assert certificate["columns"]["leaks_allowed"] == []


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("age", lambda t, rng: pl.Series((t["age"] // 10).cast(pl.String) + "0s")),
        ("age", lambda t, rng: 2020 - t["age"]),
        ("age", lambda t, rng: t["age"] + rng.uniform(-0.5, 0.5, len(t))),  # all different, but in order
        ("age", lambda t, rng: pl.Series([datetime.date(2020 - a, 1 + a % 12, 1) for a in t["age"]])),
        ("sex", lambda t, rng: t["sex"] == "f"),
        ("sex", lambda t, rng: pl.Series([[s] for s in t["sex"]])),
        ("sex", lambda t, rng: pl.Series(np.where(rng.random(len(t)) < 0.02, "?", t["sex"].to_numpy()))),
        ("income", lambda t, rng: t["income"].rank()),
        ("income", lambda t, rng: t["income"].log() + rng.normal(0, 0.02, len(t))),
        ("income", lambda t, rng: pl.Series([f"{x:.2f}" for x in t["income"]])),  # text is not in the order of numbers
        ("income", lambda t, rng: pl.Series([[x] for x in t["income"]])),
        ("born", lambda t, rng: t["born"].dt.strftime("%d/%m/%Y")),
        ("born", lambda t, rng: t["born"].dt.year()),
        ("born", lambda t, rng: t["born"].dt.strftime("%d%b%Y")),
        ("born", lambda t, rng: t["born"].dt.strftime("%B %d, %Y")),
        ("born", lambda t, rng: t["born"].dt.strftime("%d.%m.%Y 08:30")),
        ("income", lambda t, rng: pl.Series([f"${x:,.2f}" for x in t["income"]])),
        ("income", lambda t, rng: pl.Series([f"{x:.0f} EUR" for x in t["income"]])),
        ("zip", lambda t, rng: " Z" + t["zip"]),  # mostly unique, and spelt otherwise
        ("sex", lambda t, rng: pl.Series(np.where(t["sex"].to_numpy() == "f", 7, None))),  # its silence tells
        ("rare", lambda t, rng: pl.Series(np.where(t["rare"].to_numpy(), 2, 1))),  # 1 in 60, renamed
        ("zip", lambda t, rng: t["zip"]),  # mostly unique
        ("zip", lambda t, rng: pl.Series([f"area {hash(z) % 10**9}" for z in t["zip"]])),  # and renamed
        ("grade", lambda t, rng: t["grade"].cast(pl.String)),
    ],
)
def test_what_gives_a_quasi_identifier_away_is_refused_by_name(rng, name, make):
    table = people(rng)
    table = table.with_columns(make(table, rng).alias("telltale"))
    with pytest.raises(LeakError, match=rf"'telltale' would be released and gives the quasi-identifier '{name}' away"):
        release(table)
    certificate = release(table, allow_leaks=["telltale"]).certificate
    assert certificate["columns"]["leaks_allowed"] == ["telltale"]
    assert release(table.rename({"telltale": "x"}), others="drop").certificate["columns"]["kept"] == []


def test_a_weight_and_a_sensitive_column_are_checked_too(rng):
    table = people(rng).with_columns(weight=pl.col("age") * 10.0)
    with pytest.raises(LeakError, match="'weight'"):
        release(table, weight="weight")
    with pytest.raises(LeakError, match="'weight'"):
        release(table, sensitive=["cost", "weight"])


def test_a_short_list_of_all_different_values_is_a_leak_too(rng):
    age = rng.permutation(30)
    with pytest.raises(LeakError):
        shoal.anonymize(pl.DataFrame({"age": age, "copy": age}), quasi_identifiers=["age"], sensitive=["copy"], k=3)


def test_no_false_alarm_on_the_survey(meps):
    table = meps.with_columns(cents=pl.col("exp_tot") + 0.01, text=pl.col("exp_tot").cast(pl.String))
    roles = {"quasi_identifiers": ["age", "female", "educ5", "povcat"], "weight": "wtdper", "others": "keep"}
    assert shoal.anonymize(table, **roles, method="permute").certificate["columns"]["leaks_allowed"] == []


def test_chance_agreement_in_a_small_table_is_no_leak():
    table = pl.DataFrame({"sex": list("ffmm"), "y": [1, 2, 3, 4]})
    shoal.anonymize(table, quasi_identifiers=["sex"], sensitive=["y"], k=2)
    table = pl.DataFrame({"sex": list("ffffmmmmff"), "y": [1, 1, 1, 1, 2, 2, 2, 2, 1, 2]})
    shoal.anonymize(table, quasi_identifiers=["sex"], sensitive=["y"], k=2)


def test_constant_missing_and_infinite_columns_are_no_leak(rng):
    table = people(rng).with_columns(
        one=pl.lit(1),
        nothing=pl.lit(None, dtype=pl.Float64),
        odd=pl.Series(np.where(rng.random(600) < 0.5, np.inf, -np.inf)),
    )
    assert release(table).certificate["columns"]["kept"] == ["one", "nothing", "odd"]


def test_rows_of_one_person_do_not_vouch_for_each_other(rng):
    """A clinic is the same in all rows of a person; that alone must not look like a leak."""
    n = 150
    table = pl.DataFrame(
        {
            "person": np.repeat(np.arange(n), 4),
            "age": np.repeat(rng.integers(18, 90, n), 4),
            "visit": np.repeat(rng.permutation(n), 4),
        }
    )
    shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["visit"], unit="person", k=5)


def test_a_column_that_speaks_of_few_is_not_excused_by_its_silence(rng):
    table = people(rng)
    hint = pl.when(pl.Series(rng.random(600) < 0.2)).then(2020 - pl.col("age"))
    with pytest.raises(LeakError, match="'hint' would be released and gives the quasi-identifier 'age' away"):
        release(table.with_columns(hint=hint))


def test_every_row_of_a_person_is_looked_at(rng):
    """Empty on the first visit, there on the second."""
    n = 200
    age = rng.integers(18, 60, n)
    table = pl.DataFrame({"person": np.tile(np.arange(n), 2), "age": np.tile(age, 2)})
    table = table.with_columns(born=pl.Series([None] * n + (2020 - age).tolist()))
    with pytest.raises(LeakError, match="'born'"):
        shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["born"], unit="person", k=5)


def test_consecutive_rows_of_one_person_do_not_vouch_for_each_other(rng):
    n = 200
    table = pl.DataFrame({"person": np.repeat(np.arange(n), 5), "sex": np.repeat(rng.choice(["f", "m"], n), 5)})
    table = table.with_columns(claim=pl.Series(np.arange(5 * n)))
    shoal.anonymize(table, quasi_identifiers=["sex"], sensitive=["claim"], unit="person", k=5)


@pytest.mark.parametrize("n", [20, 50, 100, 1000])
def test_no_false_alarm_on_independent_columns(n):
    """Rare flags, counts with many zeros, notes, ids, dates: none tells of another."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        start = datetime.date(2020, 1, 1)
        table = pl.DataFrame(
            {
                "rare": rng.random(n) < 0.05,
                "visits": rng.poisson(0.2, n),
                "age": rng.integers(18, 90, n),
                "sex": rng.choice(["f", "m"], n),
                "income": rng.lognormal(10, 1, n),
                "flag": rng.random(n) < 0.03,
                "yes": rng.choice(["yes", "no"], n, p=[0.04, 0.96]),
                "count": rng.poisson(0.15, n),
                "note": [
                    f"{a} {b}" for a, b in zip(rng.choice(list("abcdef"), n), rng.integers(0, 30, n), strict=True)
                ],
                "record": [f"R{i}" for i in rng.permutation(n)],
                "day": [start + datetime.timedelta(int(d)) for d in rng.integers(0, 300, n)],
                "some": [None if u < 0.7 else float(u) for u in rng.random(n)],
            }
        )
        shoal.anonymize(
            table,
            quasi_identifiers=["rare", "visits", "age", "sex", "income"],
            others="keep",
            k=3,
            method="permute",
        )


def test_every_quasi_identifier_that_is_given_away_is_named(rng):
    table = people(rng).with_columns(key=pl.concat_str(pl.col("age").cast(pl.String), "sex"))
    named = [item["what"] for item in release(table, allow_leaks=["key"]).certificate["not_covered"]]
    assert "'age' can be read off 'key'" in named
    assert "'sex' can be read off 'key'" in named


def test_allow_leaks_must_name_released_columns(rng):
    with pytest.raises(InputError, match="allow_leaks names 'costt'.*did you mean 'cost'"):
        release(people(rng), allow_leaks=["costt"])


def test_values_that_python_cannot_hold_are_not_quoted():
    days = pl.Series([8000 + i for i in range(59)] + [3_950_000]).cast(pl.Int32).cast(pl.Date)
    table = pl.DataFrame({"age": np.arange(60) % 9, "seen": days})
    with pytest.raises(InputError, match="'seen' has dates beyond the year 9999") as caught:
        shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["seen"], k=5, random_state=0)
    assert "12784" not in str(caught.value)
