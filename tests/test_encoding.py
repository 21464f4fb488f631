from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from shoal.encoding import bin_codes, embed_levels, encode, joint_codes, make_coordinates, restore, standardise
from shoal.errors import InputError
from shoal.schema import read_schema


def encoded(values, kind=None):
    frame = nw.from_native(pl.DataFrame({"x": values}), eager_only=True)
    schema = read_schema(frame, quasi_identifiers=["x"], kinds={"x": kind} if kind else None)
    return encode(frame["x"], schema.columns[0])


def test_codes_follow_the_order_and_missing_is_last():
    column = encoded([30, None, 10, 30])
    assert column.codes.tolist() == [1, 2, 0, 1]
    assert column.n_levels == 3
    np.testing.assert_array_equal(column.numbers, [30, np.nan, 10, 30])
    column = encoded(["b", None, "a", "b"])
    assert column.codes.tolist() == [1, 2, 0, 1]
    assert column.numbers is None
    column = encoded(["low", "high", None], ["low", "middle", "high"])
    assert column.codes.tolist() == [0, 1, 2]  # levels that occur
    np.testing.assert_array_equal(column.numbers, [0, 2, np.nan])  # but their distance is kept


def test_nan_is_missing_too():
    column = encoded([1.0, float("nan"), None])
    assert column.missing.tolist() == [False, True, True]
    assert column.codes.tolist() == [0, 1, 1]


def test_nan_is_one_level_of_a_nominal_column():
    column = encoded([1.0, float("nan"), float("nan"), None, 2.0], "nominal")
    assert column.codes.tolist() == [0, 2, 2, 2, 1]
    assert column.missing.sum() == 3


def test_large_integers_stay_apart():
    assert encoded([2**60, 2**60 + 1]).n_levels == 2


def test_text_can_be_numeric_and_dates_have_an_order():
    np.testing.assert_array_equal(encoded(["010", "9"], "numeric").numbers, [10, 9])
    dates = encoded([datetime.date(2020, 1, 2), datetime.date(2020, 1, 1)])
    assert np.diff(dates.numbers).tolist() == [-86400e6]
    times = encoded([datetime.time(2), datetime.time(1, 30)])
    assert times.numbers.tolist() == [7200e6, 5400e6]


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([1.0, float("inf")], None, "infinite values"),
        ([None, None], "nominal", "no value at all"),
        ([float("nan")], None, "no value at all"),
        (["a", "secret"], ["a", "b"], "1 values that are not among its 2 levels"),
        (["1", "secret"], "numeric", "some values are not numbers"),
    ],
)
def test_bad_values_are_refused_without_showing_them(values, kind, text):
    series = pl.Series("x", values, dtype=pl.String if values == [None, None] else None)
    with pytest.raises(InputError, match=text) as error:
        encoded(series, kind)
    assert "secret" not in str(error.value)


@given(values=st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30))
def test_standardised_numbers_have_mean_0_and_variance_1(values):
    z = standardise(np.array(values))
    assert np.isfinite(z).all()
    assert abs(z.mean()) < 1e-6
    assert z.var() == pytest.approx(1.0) or (z == 0).all()


def test_standardise_fills_missing_with_the_mean_and_flattens_constants():
    np.testing.assert_allclose(standardise(np.array([1.0, np.nan, 3.0])), [-1, 0, 1])
    assert (standardise(np.full(10, 0.1)) == 0).all()
    assert (standardise(np.array([np.nan, np.nan])) == 0).all()


@pytest.mark.parametrize("n_levels", [2, 3, 32])
def test_levels_are_at_distance_1(n_levels):
    np.testing.assert_allclose(pdist(embed_levels(n_levels)), 1.0)


@pytest.mark.parametrize("n_levels", [33, 1000])
def test_many_levels_are_at_distance_about_1(n_levels):
    points = embed_levels(n_levels)
    assert points.shape[1] == 32
    squared = pdist(points) ** 2
    assert squared.mean() == pytest.approx(1.0, abs=0.01)
    assert squared.std() < 0.19
    assert squared.min() > 0.2


def test_coordinates_of_every_kind():
    columns = [encoded([1.0, None, 3.0, 4.0]), encoded(["a", "b", "c", None])]
    gone, number, level = make_coordinates(columns)
    assert gone.codes.tolist() == [0, 1, 0, 0]
    assert number.targets.tolist() == [0, 0, 1, 2]
    assert number.position().shape == (4, 1)
    assert level.position().shape == (4, 4)
    np.testing.assert_allclose(pdist(level.position()), 1.0)


def test_continuous_columns_get_quantile_bins():
    column = encoded(np.arange(100.0))
    assert column.is_continuous
    assert np.bincount(make_coordinates([column], n_bins=5)[0].targets).tolist() == [20] * 5
    codes = np.array([0] * 50 + [1] * 50)
    assert bin_codes(codes, 4).tolist() == [0] * 50 + [2] * 50


def test_joint_codes_do_not_overflow(rng):
    columns = [rng.integers(0, 10**6, 50) for _ in range(30)]
    joint = joint_codes([*columns])
    assert len(np.unique(joint)) == 50
    doubled = joint_codes([np.tile(c, 2) for c in columns])
    assert (doubled[:50] == doubled[50:]).all()


BERLIN = ZoneInfo("Europe/Berlin")
SERIES = [
    pl.Series("x", [1, None, 5], dtype=pl.Int16),
    pl.Series("x", [1.5, None, 5.0], dtype=pl.Float32),
    pl.Series("x", [datetime.date(2020, 1, 1), None, datetime.date(2021, 5, 5)]),
    pl.Series(
        "x", [datetime.datetime(2020, 1, 1, 3, tzinfo=BERLIN), None, datetime.datetime(2021, 7, 1, tzinfo=BERLIN)]
    ),
    pl.Series("x", [datetime.timedelta(hours=1), None, datetime.timedelta(days=3)]),
    pd.Series([1, None, 5], dtype="Int32", name="x"),
    pd.Series([1, None, 5], dtype="int64[pyarrow]", name="x"),
    pd.Series([1.5, None, 5], name="x"),
    pd.Series(pd.to_datetime(["2020-01-01", None, "2021-05-05"]), name="x"),
    pd.Series(pd.to_datetime(["2020-01-01", None, "2021-05-05"]).tz_localize("Europe/Berlin"), name="x"),
]


@pytest.mark.parametrize("native", SERIES, ids=lambda s: f"{type(s).__module__.split('.')[0]} {s.dtype}")
def test_fresh_numbers_go_back_into_the_dtype(native):
    series = nw.from_native(native, series_only=True)
    frame = series.to_frame()
    column = encode(series, read_schema(frame, quasi_identifiers=["x"]).columns[0])
    source = np.array([2, 1, 0, 0])
    back = restore(series, source, column.numbers[source])
    assert back.dtype == series.dtype
    assert str(back.to_native().dtype) == str(native.dtype)
    assert back.to_list()[2:] == [series.to_list()[0]] * 2
    assert back.to_list()[0] == series.to_list()[2]
    assert back.is_null().to_list() == [False, True, False, False]


def test_integers_become_floats_where_means_are_released():
    series = nw.from_native(pl.Series("x", [1, 2]), series_only=True)
    assert restore(series, np.array([0, 1]), np.array([1.5, 1.5]), promote=True).to_list() == [1.5, 1.5]
    assert restore(series, np.array([0, 1]), np.array([1.6, 2.4])).to_list() == [2, 2]
