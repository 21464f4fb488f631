"""Bars that nobody stands behind alone, and no bar at anybody's value."""

from __future__ import annotations

import datetime
import re

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.assessment.columns import Crowd, make_bars
from shoal.encoding import encode_table


def bars_of(values, *, k=10, kinds=None, after=None, person=None):
    table = pl.DataFrame({"x": values})
    column = encode_table(table, kinds, pl.DataFrame({"x": values if after is None else after}))[0]
    series = nw.from_native(table, eager_only=True)["x"]
    return make_bars(column, series, Crowd(len(values), person, person, k))


def test_levels_that_enough_people_have_are_named_and_the_rest_joined():
    bars = bars_of(["a"] * 40 + ["b"] * 30 + ["secret"] * 4 + ["rare"] * 8)
    assert [(bar.label, round(bar.original * 82)) for bar in bars] == [("a", 40), ("b", 30), ("all other levels", 12)]
    assert all(bar.original == bar.release for bar in bars)


def test_a_few_rare_people_are_joined_with_the_smallest_level():
    bars = bars_of(["a"] * 40 + ["b"] * 30 + ["secret"] * 3)
    assert [bar.label for bar in bars] == ["a", "all other levels"]
    assert bars_of(["a"] * 40 + ["secret"] * 3) == bars_of(["a"] * 40 + ["other"] * 3)
    assert bars_of(["x", "y"] * 4) == []  # eight people in all


@given(st.lists(st.integers(0, 60).map(lambda v: int(v * v / 20)), min_size=1, max_size=150), st.integers(2, 15))
def test_no_bar_of_numbers_is_small(values, k):
    bars = bars_of(values, k=k)
    counts = [bar.original * len(values) for bar in bars]
    assert all(count > k - 0.5 for count in counts)
    if len(values) >= k:
        assert sum(counts) == pytest.approx(len(values))
    else:
        assert bars == []


def test_a_bar_is_as_large_in_the_release():
    bars = bars_of([1] * 50 + [2] * 50, after=[1] * 97 + [2] * 3)
    assert bars == [] or all(bar.release * 100 >= 10 for bar in bars)
    assert [bar.label for bar in bars] == ["all values"]


def test_extremes_are_not_shown():
    rng = np.random.default_rng(0)
    cost = np.round(np.exp(rng.normal(7, 1, 1000)), 2)
    bars = bars_of(cost.tolist())
    assert bars[0].label.startswith("under ")
    assert bars[-1].label.endswith(" or more")
    shown = {float(text.replace(",", "")) for bar in bars for text in re.findall(r"[\d,]+\.?\d*", bar.label)}
    assert not shown & set(cost.tolist())
    assert max(shown) < np.sort(cost)[-10]
    assert min(shown) > np.sort(cost)[9]


def test_numbers_with_few_values_are_shown_as_they_are():
    assert [bar.label for bar in bars_of([0.5] * 20 + [1.5] * 20)] == ["0.5", "1.5"]
    assert [bar.label for bar in bars_of([True] * 20 + [False] * 20)] == ["False", "True"]
    children = [0] * 50 + [1] * 30 + [2] * 20 + [3] * 9 + [7]
    assert [bar.label for bar in bars_of(children)] == ["under 1", "1", "2", "3 or more"]


def test_ordered_levels_join_their_neighbours():
    levels = ["none", "school", "college", "doctor"]
    bars = bars_of(["none"] * 3 + ["school"] * 40 + ["college"] * 30 + ["doctor"] * 2, kinds={"x": levels})
    assert [bar.label for bar in bars] == ["school and rarer ones", "college and rarer ones"]


def test_dates_are_cut_at_years_months_or_days():
    long = [datetime.date(1930, 1, 1) + datetime.timedelta(days=40 * i) for i in range(600)]
    bars = bars_of(long)
    assert re.fullmatch(r"under \d{4}", bars[0].label)
    assert re.fullmatch(r"\d{4} to \d{4}", bars[1].label)
    short = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i % 300) for i in range(600)]
    assert re.fullmatch(r"2024-\d\d to 2024-\d\d", bars_of(short)[1].label)


def test_times_of_day_and_durations_are_in_hours():
    hours = [datetime.timedelta(minutes=7 * i) for i in range(400)]
    assert bars_of(hours)[-1].label.endswith(" h or more")


def test_missing_values_have_a_bar_if_enough_people_lack_one():
    assert bars_of([1.0] * 30 + [2.0] * 30 + [None] * 12)[-1].label == "missing"
    few = bars_of([1.0] * 30 + [2.0] * 30 + [None] * 3)
    assert [bar.label for bar in few] == ["1", "2"]
    assert sum(bar.original for bar in few) == pytest.approx(1.0)  # nor does the rest tell how many lack one


def test_people_are_counted_not_rows():
    person = np.array([0] * 50 + list(range(1, 51)))
    bars = bars_of(["his own"] * 50 + ["a"] * 25 + ["b"] * 25, person=person)
    assert "his own" not in [bar.label for bar in bars]


def test_cuts_lie_on_a_coarse_grid():
    """Close together as values are, cuts do not follow them one by one."""
    rng = np.random.default_rng(0)
    numbers = bars_of(rng.permutation(np.arange(1000, 1100))[:60].tolist(), k=3)
    cuts = {int(bar.label.split()[0].replace(",", "")) for bar in numbers[1:]}
    assert all(cut % 5 == 0 for cut in cuts)
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.permutation(200)[:120]]
    assert all(re.fullmatch(r"(under )?2024-\d\d( or more| to 2024-\d\d)?", bar.label) for bar in bars_of(days, k=3))
    weeks = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 60, 300)]
    starts = [datetime.date.fromisoformat(bar.label.split()[0]) for bar in bars_of(weeks)[1:]]
    assert {start.weekday() for start in starts} == {0}


def test_labels_are_distinct():
    long = ["x" * 50 + "1"] * 20 + ["x" * 50 + "2"] * 30
    labels = [bar.label for bar in bars_of(long)]
    assert len(set(labels)) == 2
    assert [bar.label for bar in bars_of([1234567.25] * 20 + [1234567.75] * 20)] == ["1234567.25", "1234567.75"]


def test_long_names_are_cut():
    assert len(bars_of(["x" * 500] * 20 + ["y"] * 20)[0].label) == 40
