"""Models and weights from sums by cell: what the library's own functions give record by record."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from shoal.shift import EmpiricalRatio, LogisticRatio
from shoal.studies.population import split_population
from shoal.studies.predicting import CODINGS, Market, Ratios, design, fit_least_squares, run_split
from shoal.studies.releasing import PAPER, UNTOUCHED, WAYS, Sample, cluster_members, encode_members, release_members
from shoal.utility import histogram_intersection, r_squared, relative_bias


@pytest.fixture(scope="module")
def split(people):
    return split_population(people, 0, 0)


def test_scores_are_those_of_records(people, split):
    market = Market.of(people, split, people.enrols * people.areas["18"])
    weight = split.test_weight * (people.enrols * people.areas["18"])[split.test_cell]
    predicted = np.random.default_rng(0).exponential(3000, len(people.cells))
    found = market.score(predicted)
    bias = relative_bias(split.test_cost, predicted[split.test_cell], weight)
    assert found["predicted"] / found["actual"] - 1 == pytest.approx(bias, rel=1e-10)
    assert found["actual"] == pytest.approx(np.average(split.test_cost, weights=weight))
    assert found["r2"] == pytest.approx(r_squared(split.test_cost, predicted[split.test_cell], weight), abs=1e-10)


@pytest.mark.parametrize("coding", CODINGS)
def test_least_squares_are_those_of_records(people, split, coding):
    sample = Sample.of_cells(people, split.member_cell, split.member_cost)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(people.cells))
    found = fit_least_squares(people, sample, weight, coding)
    columns = design(people.cells, coding, people.levels)[:, 1:]
    model = LinearRegression().fit(columns[split.member_cell], split.member_cost, weight[split.member_cell])
    there = np.unique(split.member_cell)
    assert found[there] == pytest.approx(model.predict(columns[there]), rel=1e-8)


def test_designs_of_levels_and_of_means(people):
    points = np.array([[0.0, 2, 1, 4], [1, 2.5, 0, 0]])
    dummies = design(points, "dummy", people.levels)
    assert dummies.shape == (2, 1 + 1 + 7 + 4 + 4)
    assert dummies.sum(axis=1).tolist() == [1 + 0 + 1 + 1 + 1, 1 + 1 + 0 + 0 + 0]  # 2.5 is no level, the first has none
    assert design(points, "numeric", people.levels)[:, 1:].tolist() == points.tolist()


def test_similarity_is_the_histogram_intersection(people, split):
    market = Market.of(people, split, people.enrols)
    sample = Sample.of_cells(people, split.member_cell, split.member_cost)
    weight = np.random.default_rng(1).uniform(0.1, 3, len(people.cells))
    expected = histogram_intersection(
        people.cells[split.member_cell],
        people.cells[split.test_cell],
        weight[split.member_cell],
        split.test_weight * people.enrols[split.test_cell],
    )
    assert market.intersect(sample, weight) == pytest.approx(expected)
    means = Sample.of_points(people, people.cells[split.member_cell] + 0.25, split.member_cost)
    assert (means.cell == -1).all()
    assert market.intersect(means, np.ones(len(means.mass))) == 0


@pytest.mark.filterwarnings("ignore::shoal.shift.diagnostics.ShiftWarning")
@pytest.mark.parametrize(("name", "ratio"), [("nonparametric", EmpiricalRatio()), ("logistic", LogisticRatio())])
def test_weights_are_those_of_the_library(people, split, name, ratio):
    """From sums by cell, and from the records of both halves."""
    order = np.random.default_rng([0, 0]).permutation(len(people.cell))
    first = np.array_split(order, 2)[0]
    ratio.fit(
        people.cells[people.cell[first]],
        people.cells[split.test_cell],
        weight_source=people.weight[first],
        weight_target=split.test_weight * people.areas["11"][split.test_cell],
    )
    sample = Sample.of_cells(people, split.member_cell, split.member_cost)
    weights = Ratios(people, split).estimate("11")[name](sample)
    there = np.unique(split.member_cell)
    assert weights[there] == pytest.approx(ratio.predict(people.cells[there]), rel=1e-4)


def test_releases(people, split):
    rng = np.random.default_rng(0)
    released = release_members(people, split, [5, 20], list(WAYS), rng)
    whole = Sample.of_cells(people, split.member_cell, split.member_cost)
    for (way, k), sample in released.items():
        assert sample.mass.sum() == len(split.member_cell), way
        assert sample.total.sum() == pytest.approx(split.member_cost.sum()), way
        if way in ("permute", "gaussian rank", "gaussian transport"):
            assert (sample.mass == whole.mass).all(), (way, k)
            assert not np.allclose(sample.total, whole.total), (way, k)
    labels = cluster_members(encode_members(people, split.member_cell), split.member_cost, PAPER)
    assert np.bincount(labels).min() >= PAPER.k
    means = released["centroid", 5]
    assert len(means.mass) <= len(split.member_cell) // 5
    assert (means.mass @ means.points) / means.mass.sum() == pytest.approx(people.cells[split.member_cell].mean(axis=0))
    rounded = released["centroid, rounded", 5]
    assert (rounded.points == np.rint(rounded.points)).all()


def test_leaving_out_a_way_changes_no_other(people, split):
    all_ways = release_members(people, split, [5], list(WAYS), np.random.default_rng(0))
    some = release_members(people, split, [5], ["permute", "gaussian rank"], np.random.default_rng(0))
    for key, sample in some.items():
        assert (sample.total == all_ways[key].total).all()


def test_a_split_has_all_three_experiments(people, split):
    found = run_split(people, split, np.random.default_rng(0), [5], ["resample", "centroid"])
    assert {(row["way"], row["k"]) for row in found["without_shift"]} == {
        ("resample", 5),
        ("centroid", 5),
        (UNTOUCHED, 1),
    }
    assert len(found["without_shift"]) == 3 * 2
    assert len(found["areas"]) == 18 * 3 * 2
    assert len(found["area_18"]) == 3 * 3 * 2
    untouched = [row for row in found["area_18"] if row["way"] == UNTOUCHED]
    same = [row for row in found["areas"] if row["area"] == "18"]  # of all members, not of those drawn
    assert [row["actual"] for row in untouched] == [row["actual"] for row in same]
    assert [row["predicted"] for row in untouched] == pytest.approx([row["predicted"] for row in same], rel=0.5)
