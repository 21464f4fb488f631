"""The people of the tutorials: the same every time, and with the effects that the tutorials speak of."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.datasets import load_borrowers, load_students
from shoal.errors import InputError


@pytest.mark.parametrize("load", [load_borrowers, load_students])
def test_the_same_people_every_time(load):
    assert load(500).equals(load(500))
    assert not load(500).equals(load(500, random_state=1))
    assert len(load(7)) == 7
    assert load(2_000).null_count().sum_horizontal().item() == 0
    with pytest.raises(InputError, match="n=0"):
        load(0)


def test_students():
    students = load_students(50_000)
    marks = students.group_by("parents").agg(pl.col("mathematics").mean())
    by_parents = dict(marks.iter_rows())
    assert by_parents["university"] - by_parents["basic"] == pytest.approx(17, abs=3)
    assert 0.6 < students["passed"].mean() < 0.95
    assert students.filter(students["gender"] == "girl")["reading"].mean() > students["reading"].mean() + 1


def test_borrowers():
    borrowers = load_borrowers(50_000)
    assert borrowers["postcode"].str.starts_with("0").all()
    assert borrowers["postcode"].n_unique() == 40
    assert 0.05 < borrowers["defaulted"].mean() < 0.25
    burden = np.log(borrowers["amount"].to_numpy() / borrowers["income"].to_numpy())
    heavy = burden > np.median(burden)
    assert borrowers["defaulted"].to_numpy()[heavy].mean() > 1.3 * borrowers["defaulted"].to_numpy()[~heavy].mean()
