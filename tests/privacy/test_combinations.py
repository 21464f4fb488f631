from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.encoding import encode_table
from shoal.errors import InputError
from shoal.privacy import combinations as room
from shoal.privacy import risky_combinations

rows = st.lists(st.tuples(*(st.integers(0, 3) for _ in range(4))), min_size=2, max_size=40)


@given(rows)
def test_counts_agree_with_a_group_by(values):
    table = pl.DataFrame(values, schema=["a", "b", "c", "d"], orient="row")
    found = risky_combinations(table, k=3)
    assert len(found) == 4 + 6 + 4 + 1
    for one in found:
        sizes = table.group_by(one.columns).len()["len"]
        assert one.alone == (sizes == 1).sum()
        assert one.below == sizes.filter(sizes < 3).sum()
        assert one.classes == len(sizes)
    assert [c.alone for c in found] == sorted((c.alone for c in found), reverse=True)


def test_many_levels_are_counted_by_sorting(rng):
    wide = [rng.permutation(3000) for _ in range(3)]  # 2.7e10 cells
    assert (room._class_sizes(wide) == 1).all()
    assert len(room._class_sizes([np.zeros(5, dtype=np.int64)] * 3)) == 1


def test_of_many_columns_smaller_combinations_only(monkeypatch, rng):
    columns = encode_table(rng.integers(0, 5, size=(100, 12)).astype(float))
    monkeypatch.setattr(room, "_WORK", 10_000 * 40)
    found = room.count_combinations(columns)
    sizes = [len(c.columns) for c in found]
    assert max(sizes) == 12  # all together is always there
    assert sizes.count(1) == 12
    assert 0 < sizes.count(2) < 66


def test_an_unknown_column_is_named():
    with pytest.raises(InputError, match="'ages', which is not a column; did you mean 'age'"):
        risky_combinations(pl.DataFrame({"age": [1, 2]}), ["ages"])


@given(rows)
def test_what_contains_a_column_that_singles_out_nearly_everybody_is_left_out(values):
    found = risky_combinations(pl.DataFrame(values, schema=["a", "b", "c", "d"], orient="row"))
    enough = [set(c.columns) for c in found if c.alone >= 0.9 * len(values)]
    expected = [c for c in found if not any(one < set(c.columns) for one in enough)]
    assert room.leave_out_supersets(found, len(values)) == expected


def test_hundreds_of_columns_take_no_time_to_sift(rng):
    columns = encode_table(rng.integers(0, 40, size=(500, 200)).astype(float))
    found = room.count_combinations(columns)
    assert 200 < len(found) < 40_000
    assert len(room.leave_out_supersets(found, 500)) < len(found)
