from __future__ import annotations

import datetime
import decimal

import narwhals.stable.v2 as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.errors import InputError
from shoal.schema import read_schema


def schema(table, **roles):
    return read_schema(nw.from_native(table, eager_only=True), **roles)


TABLE = pl.DataFrame({"name": ["a", "b"], "age": [1, 2], "sex": ["f", "m"], "zip": ["01", "02"], "cost": [1.0, 2.0]})


def test_kinds_are_inferred_from_dtypes():
    table = pl.DataFrame(
        {
            "int": [1],
            "float": [1.0],
            "decimal": [decimal.Decimal("1.5")],
            "bool": [True],
            "text": ["007"],
            "enum": pl.Series(["a"], dtype=pl.Enum(["b", "a"])),
            "categorical": pl.Series(["a"], dtype=pl.Categorical),
            "date": [datetime.date(2020, 1, 1)],
            "time": [datetime.time(1)],
            "duration": [datetime.timedelta(1)],
        }
    )
    found = schema(table, quasi_identifiers=table.columns)
    assert [c.kind for c in found.columns] == [
        *["numeric"] * 3,
        "nominal",
        "nominal",
        "ordinal",
        "nominal",
        *["datetime"] * 3,
    ]
    assert found.columns[5].levels == ("b", "a")


def test_kinds_of_pandas_and_arrow():
    pandas = pd.DataFrame(
        {
            "ordered": pd.Categorical(["a"], categories=["b", "a"], ordered=True),
            "unordered": pd.Categorical(["a"], categories=["b", "a"]),
            "dates": pd.Series([datetime.date(2020, 1, 1)], dtype=object),
            "decimals": pd.Series([decimal.Decimal(1)], dtype=object),
            "texts": pd.Series(["x"], dtype=object),
        }
    )
    kinds = [c.kind for c in schema(pandas, quasi_identifiers=list(pandas.columns)).columns]
    assert kinds == ["ordinal", "nominal", "datetime", "numeric", "nominal"]
    ordered = pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array(["b", "a"]), ordered=True)
    arrow = pa.table({"ordered": ordered, "unordered": pa.array(["x", "y"]).dictionary_encode()})
    found = schema(arrow, quasi_identifiers=arrow.column_names)
    assert [(c.kind, c.levels) for c in found.columns] == [("ordinal", ("b", "a")), ("nominal", None)]


def test_kinds_can_be_overridden_and_are_shown():
    found = schema(
        TABLE,
        quasi_identifiers=["age", "sex", "zip"],
        sensitive=["cost"],
        identifiers=["name"],
        kinds={"age": "nominal", "zip": ["02", "01"], "cost": "ordinal"},
    )
    assert [(c.kind, c.levels) for c in found.columns][1:] == [
        ("nominal", None),
        ("nominal", None),
        ("ordinal", ("02", "01")),
        ("ordinal", None),
    ]
    assert "zip   quasi-identifier (ordinal)" in str(found)
    assert "name  identifier" in str(found)


def test_a_column_without_a_role_is_an_error_until_others_says():
    with pytest.raises(InputError, match="No role was given for columns 'name', 'zip'.*others='drop'"):
        schema(TABLE, quasi_identifiers=["age", "sex"], sensitive=["cost"])
    kept = schema(TABLE, quasi_identifiers=["age"], others="keep")
    assert kept.names("kept") == ["name", "sex", "zip", "cost"]
    assert schema(TABLE, quasi_identifiers=["age"], others="drop").names("dropped") == ["name", "sex", "zip", "cost"]


@pytest.mark.parametrize(
    ("roles", "text"),
    [
        ({"quasi_identifiers": ["agee"]}, "quasi_identifiers names 'agee'.*did you mean 'age'"),
        ({"quasi_identifiers": ["age"], "sensitive": ["nothing like it"]}, "choose from 'name', 'age'"),
        ({"quasi_identifiers": ["age", "age"]}, "'age' is given twice"),
        ({"quasi_identifiers": ["age"], "sensitive": ["age"]}, "as quasi_identifier and as sensitive"),
        ({"quasi_identifiers": ["age"], "weight": "age"}, "one role"),
        ({"quasi_identifiers": []}, "quasi_identifiers is empty"),
        ({"quasi_identifiers": "age"}, r"must be a list of column names, but it is the text 'age'; write \['age'\]"),
        ({"quasi_identifiers": ["age"], "others": "burn"}, "others='burn' is not known"),
        ({"quasi_identifiers": ["age"], "others": "drop", "kinds": {"aeg": "nominal"}}, "did you mean 'age'"),
        ({"quasi_identifiers": ["age"], "others": "drop", "kinds": {"sex": "nominal"}}, "only quasi-identifiers and"),
        ({"quasi_identifiers": ["age"], "others": "drop", "kinds": {"age": "nomnal"}}, "did you mean 'nominal'"),
        ({"quasi_identifiers": ["sex"], "others": "drop", "kinds": {"sex": "ordinal"}}, "give its levels"),
        ({"quasi_identifiers": ["sex"], "others": "drop", "kinds": {"sex": "datetime"}}, "convert it to a date"),
        ({"quasi_identifiers": ["sex"], "others": "drop", "kinds": {"sex": ["f", "f"]}}, "different levels"),
    ],
)
def test_errors_name_the_argument_and_help(roles, text):
    with pytest.raises(InputError, match=text):
        schema(TABLE, **roles)


def test_dtypes_that_cannot_be_quasi_identifiers_but_may_be_kept():
    table = pl.DataFrame({"tags": [["a"], ["b"]], "age": [1, 2]})
    with pytest.raises(InputError, match="'tags' has dtype List.*cannot be a quasi-identifier"):
        schema(table, quasi_identifiers=["tags"], others="drop")
    assert schema(table, quasi_identifiers=["age"], sensitive=["tags"]).columns[0].kind is None
    mixed = pd.DataFrame({"x": pd.Series([1, "a"], dtype=object)})
    with pytest.raises(InputError, match="'x' has dtype Object"):
        schema(mixed, quasi_identifiers=["x"])
    flags = pd.DataFrame({"x": pd.Series([True, None], dtype=object)})
    assert schema(flags, quasi_identifiers=["x"]).columns[0].kind == "nominal"


def test_many_columns_without_a_role_are_counted():
    table = pl.DataFrame({f"c{i}": [1] for i in range(30)})
    with pytest.raises(InputError, match="and 9 more"):
        schema(table, quasi_identifiers=["c0"])
