"""Looking at a table: what it has, what singles people out, and roles that are only suggested."""

from __future__ import annotations

import datetime
import json

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InputError

CANARY = "Trillian-4242"


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 300
    return pl.DataFrame(
        {
            "patient_id": np.arange(n),
            "fullName": [f"{CANARY}-{i}" for i in range(n)],
            "e-mail": [f"{CANARY}@{i}" for i in range(n)],
            "sex": rng.choice(["f", "m"], n),
            "birth_date": [
                datetime.date(1950, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 15000, n)
            ],
            "zip": pl.Series([None if i % 10 == 0 else int(z) for i, z in enumerate(rng.integers(100, 120, n))]),
            "smoker": rng.choice([True, False], n),
            "total_cost": rng.gamma(2, 300, n).round(2),
            "diagnosis_code": rng.choice([f"D{i}" for i in range(60)], n),
            "survey_weight": rng.gamma(2, 1, n),
            "empty": pl.Series([None] * n, dtype=pl.String),
            "lists": [[1]] * n,
        }
    )


@pytest.fixture(scope="module")
def found(people):
    return shoal.inspect(people, progress=False)


def test_roles_are_suggested_by_name_and_by_how_values_vary(found):
    assert found.roles() == {
        "quasi_identifier": ["sex", "birth_date", "zip", "smoker"],
        "sensitive": ["total_cost", "diagnosis_code", "empty", "lists"],
        "identifier": ["patient_id", "fullName", "e-mail"],
        "unit": [],
        "weight": ["survey_weight"],
    }


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("age", "quasi_identifier"),
        ("PatientAge", "quasi_identifier"),
        ("age_group", "quasi_identifier"),
        ("income2", "quasi_identifier"),
        ("postcode", "quasi_identifier"),
        ("wtdper", "weight"),
        ("weight", "weight"),
        ("ssn", "identifier"),
        ("CustomerID", "identifier"),
        ("last name", "identifier"),
        ("exp_tot", "sensitive"),
        ("storage", "sensitive"),  # not an age
    ],
)
def test_names_as_people_write_them(name, role, rng):
    table = pl.DataFrame({name: rng.normal(size=100), "other": rng.normal(size=100)})
    assert shoal.inspect(table, progress=False).columns[0].suggested == role


@pytest.mark.parametrize(
    ("identifiers", "unit"),
    [
        ({"visit_id": 1, "patient_id": 3, "name": 30}, "patient_id"),  # several rows per person
        ({"patient_id": 1, "name": 30}, "patient_id"),  # names repeat, people do not
        ({"record_key": 1, "lastName": 30}, "record_key"),
        ({"member": 1, "email": 1}, None),
    ],
)
def test_who_tells_people_apart_where_identifiers_repeat(identifiers, unit):
    n = 600
    table = pl.DataFrame(
        {"age": np.arange(n) // 3 % 50, "cost": np.arange(n) % 97}
        | {name: [f"{CANARY}{i // rows}" for i in range(n)] for name, rows in identifiers.items()}
    )
    found = shoal.inspect(table, progress=False)
    assert found.roles()["unit"] == ([] if unit is None else [unit])
    names = {"shoal": shoal, "table": table}
    exec(found.as_python().replace("table,", "table, k=3, n_releases=0,"), names)  # what is to paste runs
    several = identifiers.get(unit, 1) > 1
    assert names["release"].certificate["people"] == (200 if several else 600)
    assert ("different values in 600 rows" in found.reading) == several


def test_counts_are_right(people, found):
    columns = {column.name: column for column in found.columns}
    assert columns["zip"].missing == 30
    assert columns["zip"].distinct == people["zip"].drop_nulls().n_unique()
    assert columns["empty"].distinct == 0
    assert columns["lists"].kind is None
    sizes = people.group_by(found.candidates).len()["len"]
    assert found.together.alone == (sizes == 1).sum()
    assert found.risk == pytest.approx(len(sizes) / 300)
    assert f"{found.together.alone} people" in found.reading


def test_no_value_is_shown(found):
    assert CANARY not in str(found) + found._repr_html_() + json.dumps(found.to_dict())


def test_what_is_to_paste_starts_with_the_file(found):
    assert found.as_command("my file.csv").startswith(
        "shoal anonymize 'my file.csv' -o release.csv --qi sex,birth_date"
    )


def test_a_column_that_singles_out_everybody_is_told_of_once(rng):
    table = pl.DataFrame({"age": rng.integers(0, 5, 200), "sex": rng.integers(0, 2, 200), "birth": np.arange(200.0)})
    found = shoal.inspect(table, quasi_identifiers=["age", "sex", "birth"], progress=False)
    told = [c.columns for c in found.combinations]
    assert told[0] == ("birth",)
    assert ("age", "sex") in told
    assert ("age", "birth") not in told
    assert found.together.alone == 200


def test_the_columns_to_be_combined_can_be_given(people):
    found = shoal.inspect(people, quasi_identifiers=["sex", "zip"], kinds={"zip": "nominal"}, progress=False)
    assert found.candidates == ["sex", "zip"]
    assert {c.columns for c in found.combinations} == {("sex", "zip"), ("sex",), ("zip",)}
    with pytest.raises(InputError, match="did you mean 'sex'"):
        shoal.inspect(people, quasi_identifiers=["sexx"])
    with pytest.raises(InputError, match="must be a list"):
        shoal.inspect(people, quasi_identifiers="sex")


def test_columns_that_cannot_be_combined_are_left_out():
    table = pl.DataFrame(
        {"age": [float("nan")] * 40, "income": [float("inf"), *range(39)], "sex": ["f", "m"] * 20}, strict=False
    )
    found = shoal.inspect(table, progress=False)
    assert found.candidates == ["sex"]
    assert [column.name for column in found.columns] == ["age", "income", "sex"]


def test_a_table_without_candidates():
    found = shoal.inspect(pl.DataFrame({"x": np.random.default_rng(0).normal(size=50)}), progress=False)
    assert found.risk is None
    assert "No column looks like" in str(found)


def test_pandas_and_arrow_are_read_too(people):
    table = people.drop("lists")
    one = shoal.inspect(table, progress=False).to_dict()
    for other in (table.to_pandas(), table.to_arrow()):
        two = shoal.inspect(other, progress=False).to_dict()
        assert two["combinations"] == one["combinations"]
        assert [c["missing"] for c in two["columns"]] == [c["missing"] for c in one["columns"]]
