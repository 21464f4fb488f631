from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from shoal.errors import InputError
from shoal.utility import histogram_intersection


def test_closed_forms():
    a = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    assert histogram_intersection(a, a[::-1]) == 1.0
    assert histogram_intersection(a, a + 9) == 0.0
    assert histogram_intersection(a, [[1, 1], [0, 0]]) == pytest.approx(0.75)
    assert histogram_intersection(a, [[1, 1], [0, 0]], weight_b=[3, 1]) == pytest.approx(0.75)
    assert histogram_intersection(a, [[1, 1], [0, 0]], weight_a=[1, 0, 0, 0], weight_b=[3, 1]) == pytest.approx(0.25)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_frames_with_missing_values(kind):
    a = kind({"x": ["a", None, "b"], "y": [1.0, 2.0, None]})
    b = kind({"y": [None, 2.0], "x": ["b", None]})
    assert histogram_intersection(a, b) == pytest.approx(2 / 3)


def test_joint_not_marginal(rng):
    a = np.column_stack([np.arange(100) % 2, np.arange(100) % 2])
    b = np.column_stack([np.arange(100) % 2, (np.arange(100) + 1) % 2])
    assert histogram_intersection(a, b) == 0.0


def test_tables_of_different_kinds_and_dtypes():
    a = pl.DataFrame({"x": [1, 2, 2, None], "t": ["a", "b", "b", None]})
    b = pd.DataFrame({"x": [1.0, 2.0, 2.5, np.nan], "t": ["a", "b", "b", None]})
    assert histogram_intersection(a, b) == pytest.approx(0.75)
    arrow = a.to_arrow()
    assert histogram_intersection(arrow, a) == 1.0


def test_weights_are_checked():
    for weight in ([1.0], [-1.0, 2.0], [np.nan, 1.0], [0.0, 0.0]):
        with pytest.raises(InputError, match="weight_a must be 2 numbers"):
            histogram_intersection([[1], [2]], [[1]], weight_a=weight)


def test_errors():
    with pytest.raises(InputError, match="equally many columns"):
        histogram_intersection([[1, 2]], [[1]])
    with pytest.raises(InputError, match="same columns"):
        histogram_intersection(pl.DataFrame({"x": [1]}), pl.DataFrame({"y": [1]}))
