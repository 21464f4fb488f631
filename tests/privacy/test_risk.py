"""Exact risk: against enumeration of all releases, against mpmath, and against the paper's attack, simulated."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Anonymizer, InputError
from shoal.clustering import KMemberClustering
from shoal.encoding import encode_table
from shoal.hiding import hide
from shoal.privacy import reidentification_risk
from shoal.privacy._shells import PLACES, STARTS, STOPS, WEIGHTS, integrate_shells
from shoal.privacy.chances import find_best_attack, hidden_columns
from shoal.privacy.classes import Classes, find_matches, find_nearest
from shoal.privacy.linkage import match_nearest
from shoal.privacy.risk import _as_risk, draw_releases, measure_risk
from shoal.progress import Reporter
from shoal.settings import Settings

WAYS = {
    "centroid": ("centroid", None),
    "resample": ("resample", None),
    "permute": ("permute", None),
    "cdf": ("gaussian", "cdf"),
    "rank": ("gaussian", "rank"),
    "transport": ("gaussian", "transport"),
}


def settings_of(way, k=2, release_values="observed"):
    return Settings(k, *WAYS[way], "auto", 0.0, 1 / 3, release_values)


# ---------------------------------------------------------------- oracles


def nearest_of(x, values):
    """Return which of the values are nearest to x."""
    distance = np.abs(np.asarray(values) - x)
    return np.flatnonzero(distance <= distance.min() + 1e-9)


def enumerate_resampling(x, labels):
    """Return the nearest-match risk by going through all equally likely releases of a small column."""
    x, labels = np.asarray(x, float), np.asarray(labels)
    pools = [x[labels == labels[i]] for i in range(len(x))]
    chance, total = np.zeros(len(x)), 0
    for release in itertools.product(*pools):
        total += 1
        for i in range(len(x)):
            matches = nearest_of(x[i], release)
            chance[i] += (i in matches) / len(matches)
    return chance / total


def enumerate_permutations(x, labels):
    x, labels = np.asarray(x, float), np.asarray(labels)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    chance, total = np.zeros(len(x)), 0
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        release = x.copy()
        for group, order in zip(groups, orders, strict=True):
            release[group] = x[list(order)]
        total += 1
        for i in range(len(x)):
            matches = nearest_of(x[i], release)
            chance[i] += (i in matches) / len(matches)
    return chance / total


SMALL = [
    ([1.0, 2.0, 3.0, 9.0], [0, 0, 1, 1]),
    ([1.0, 1.0, 2.0, 2.0, 3.0], [0, 1, 0, 1, 0]),  # clusters that share values
    ([5.0, 5.0, 5.0, 7.0, 7.0], [0, 0, 0, 1, 1]),  # duplicates
    ([0.0, 1.0, 2.0, 100.0], [0, 0, 0, 0]),  # k = n, one far from all others
    ([1.0, 3.0, 2.0, 2.0, 4.0, 0.0], [0, 0, 1, 1, 2, 2]),  # ties at equal distance
]


@pytest.mark.parametrize(("x", "labels"), SMALL)
def test_resampling_and_permutation_equal_the_enumeration_of_all_releases(x, labels):
    X = np.array(x)[:, None]
    exact = reidentification_risk(X, labels, method="resample")
    assert exact.exact
    np.testing.assert_allclose(exact.per_record, enumerate_resampling(x, labels), atol=1e-11)
    exact = reidentification_risk(X, labels, method="permute")
    np.testing.assert_allclose(exact.per_record, enumerate_permutations(x, labels), atol=1e-14)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=2, max_size=5).filter(
        lambda rows: len({label for _, label in rows}) >= 1
    )
)
def test_resampling_equals_enumeration_on_random_tables(rows):
    x, labels = zip(*rows, strict=True)
    exact = reidentification_risk(np.array(x, float)[:, None], labels, method="resample")
    np.testing.assert_allclose(exact.per_record, enumerate_resampling(x, labels), atol=1e-11)


def best_value_by_enumeration(x, labels):
    """Return the success of picking a record of the best value, over all permutations inside clusters."""
    x, labels = np.asarray(x, float), np.asarray(labels)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    values = np.unique(x)
    chance, total = np.zeros((len(x), len(values))), 0
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        release = x.copy()
        for group, order in zip(groups, orders, strict=True):
            release[group] = x[list(order)]
        held = release[:, None] == values
        chance += held / held.sum(axis=0)
        total += 1
    return (chance / total).max(axis=1)


@pytest.mark.parametrize(("x", "labels"), SMALL)
def test_optimal_attacker_of_permutations(x, labels):
    risk = reidentification_risk(np.array(x)[:, None], labels, method="permute", attacker="optimal")
    assert risk.exact
    np.testing.assert_allclose(risk.per_record, best_value_by_enumeration(x, labels), atol=1e-14)


@pytest.mark.parametrize(("x", "labels"), SMALL)
def test_of_resampling_the_optimal_attacker_is_no_less_than_the_nearest_and_not_called_exact(x, labels):
    X = np.array(x)[:, None]
    optimal, nearest = (
        reidentification_risk(X, labels, method="resample", attacker=a).per_record for a in ("optimal", "nearest")
    )
    assert not reidentification_risk(X, labels, method="resample", attacker="optimal").exact
    assert (optimal >= nearest - 1e-12).all()
    assert (optimal <= 1 / np.bincount(labels)[labels] + 1e-12).all()


def test_centroids_are_matched_by_hand():
    """Centres 1, 1 (two clusters) and 10: whoever is near 1 hides among four."""
    X, labels = np.array([[0.0], [2.0], [1.0], [1.0], [9.0], [11.0]]), [0, 0, 1, 1, 2, 2]
    nearest = reidentification_risk(X, labels, method="centroid")
    np.testing.assert_allclose(nearest.per_record, [1 / 4] * 4 + [1 / 2] * 2)
    optimal = reidentification_risk(X, labels, method="centroid", attacker="optimal")
    np.testing.assert_allclose(optimal.per_record, [1 / 4] * 4 + [1 / 2] * 2)
    wrong = reidentification_risk([[0.0], [10.0], [6.0], [30.0]], [0, 0, 1, 1], method="centroid")
    np.testing.assert_allclose(wrong.per_record, [1 / 2, 1 / 2, 0.0, 1 / 2])  # 6 is nearer to 5 than to 18


def plain_integral(near, distance, tolerance, complete, classes, holders, totals, sizes, wanted, risk):
    """The specification of the kernel: shells, and the integral of method S2 by mpmath."""
    starts, clusters, counts = holders
    pair_start, pair_cluster = wanted
    for row, x in enumerate(classes):
        mass = np.zeros((near.shape[1], len(sizes)))
        for j, v in enumerate(near[row]):
            for e in range(starts[v], starts[v + 1]):
                mass[j, clusters[e]] += counts[e] / totals[clusters[e]]
        shell = np.concatenate([[0], np.cumsum(np.diff(distance[row]) > tolerance)])
        for p in range(pair_start[x], pair_start[x + 1]):
            mine = pair_cluster[p]
            risk[p] = 0.0
            for number in np.unique(shell):
                s = mass[shell == number].sum(axis=0)
                q = 1 - mass[shell <= number].sum(axis=0)
                q[np.abs(q) < 1e-15] = 0.0
                if s[mine] == 0:
                    continue

                def integrand(t, s=s, q=q, mine=mine):
                    value = mpmath.mpf(s[mine]) * (q[mine] + s[mine] * t) ** int(sizes[mine] - 1)
                    for m in range(len(sizes)):
                        value *= 1 if m == mine else (q[m] + s[m] * t) ** int(sizes[m])
                    return value

                risk[p] += float(mpmath.quad(integrand, mpmath.linspace(0, 1, 9)))


def test_the_kernel_equals_its_plain_version(rng):
    n, m, c = 24, 5, 4
    labels, values = rng.integers(0, c, n), rng.integers(0, m, n)
    labels[:c], values[:m] = np.arange(c), np.arange(m)
    classes = Classes(values, np.unique(values, return_index=True)[1], labels, [])
    released = classes.shared
    received = classes.count_received(rng.integers(0, n, n))  # clusters may release values they do not hold
    points = rng.integers(0, 4, (m, 2)).astype(float)
    ((_, near, distance),) = find_nearest(points, points, m)
    for table, draws in ((released, 1), (received, 1)):
        arguments = (
            near,
            distance,
            1e-11,
            True,
            np.arange(m),
            (table.starts, table.items, table.counts),
            draws * classes.cluster_sizes,
            classes.cluster_sizes,
            (released.starts, released.items),
        )
        fast, plain = np.zeros(len(released.items)), np.zeros(len(released.items))
        assert integrate_shells(*arguments, (STARTS, STOPS, PLACES, WEIGHTS), fast).all()
        plain_integral(*arguments, plain)
        np.testing.assert_allclose(fast, plain, atol=1e-12)


@pytest.mark.parametrize("n", [3, 100, 15_000])
def test_many_duplicates_are_one_crowd(n):
    """Everybody equal: chance 1/n. Plain quadrature gives 0.073 instead of 1 for the mass at n = 15,000."""
    risk = reidentification_risk(np.ones((n, 1)), np.arange(n) % (n // 3), method="resample")
    np.testing.assert_allclose(risk.per_record, 1 / n, rtol=1e-10)


def test_the_integral_at_a_boundary_of_the_neighbours_at_hand(rng):
    """More tied neighbours than the first query returns: the shell must not be cut."""
    grid = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    labels = rng.permutation(np.arange(81) % 20)
    risk = reidentification_risk(grid, labels, method="resample")
    classes = Classes.find(encode_table(grid), np.unique(labels, return_inverse=True)[1])
    ((_, near, distance),) = find_nearest(classes.points, classes.points, 81)
    whole = np.zeros(len(classes.shared.items))
    integrate_shells(
        near, distance, 1e-11, True, np.arange(81),
        (classes.shared.starts, classes.shared.items, classes.shared.counts),
        classes.cluster_sizes, classes.cluster_sizes, (classes.shared.starts, classes.shared.items),
        (STARTS, STOPS, PLACES, WEIGHTS), whole,
    )  # fmt: skip
    np.testing.assert_allclose(risk.per_record, classes.by_record(whole), atol=1e-12)


@pytest.mark.parametrize("columns", [3, 40])
def test_neighbours_and_matches_equal_brute_force(rng, columns):
    points, queries = rng.integers(0, 3, (200, columns)).astype(float), rng.integers(0, 3, (50, columns)).astype(float)
    points = np.unique(points, axis=0)
    distance = np.sqrt(((queries[:, None] - points) ** 2).sum(axis=2))
    starts, matched = find_matches(points, queries)
    for i in range(50):
        expected = np.flatnonzero(distance[i] <= distance[i].min() + 1e-9)
        np.testing.assert_array_equal(np.sort(matched[starts[i] : starts[i + 1]]), expected)
    ((_, near, found),) = find_nearest(points, queries, 5)
    np.testing.assert_allclose(found, np.sort(distance, axis=1)[:, :5], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(distance, near, axis=1), found, atol=1e-12)


# ---------------------------------------------------------------- against simulation


def simulate(columns, labels, settings, releases, rng):
    """Return the chance of success of the paper's attack in every release, ties averaged, shape (releases, n)."""
    from shoal.encoding import positions

    n = len(labels)
    everyone = np.arange(n)
    found = np.empty((releases, n))
    for r in range(releases):
        hidden = hide(columns, labels, settings, rng, Reporter(progress=False))
        received = hidden_columns(columns, hidden, everyone)
        both = [a.followed_by(b) for a, b in zip(columns, received, strict=True)]
        placed = positions(both, reference=n)
        found[r] = match_nearest(placed[:n], placed[n:], everyone, None)
    return found


def class_means(trials, of_record):
    counts = np.bincount(of_record)
    return np.array([np.bincount(of_record, weights=row) / counts for row in trials])


def compare(columns, labels, way, releases, rng, release_values="observed", n_releases=200):
    settings = settings_of(way, int(np.bincount(labels).min()), release_values)
    drawn = draw_releases(columns, labels, settings, rng, n_releases)
    risk = measure_risk(columns, labels, settings, drawn, ["nearest"])["nearest"]
    of_record = Classes.find(columns, labels).of_record
    trials = class_means(simulate(columns, labels, settings, releases, rng), of_record)
    n_of = np.bincount(of_record)
    seen = trials.std(axis=0, ddof=1) / np.sqrt(releases)
    # rare successes: the spread seen may be 0 although the chance is not
    expected = np.sqrt(risk.per_class * (1 - risk.per_class) / (releases * n_of))
    error = np.sqrt(np.maximum(seen, expected) ** 2 + risk.class_standard_error**2) + 1e-12
    assert (np.abs(trials.mean(axis=0) - risk.per_class) <= 4 * error).all()
    mean_error = np.sqrt(np.var(trials @ n_of / n_of.sum()) / releases + risk.mean_standard_error**2) + 1e-12
    assert abs((trials @ n_of / n_of.sum()).mean() - risk.mean) <= 4 * mean_error
    assert (risk.per_record <= 1 / np.bincount(labels)[labels] + 1e-12).all()
    return risk


def tables():
    rng = np.random.default_rng(5)
    ages = rng.integers(20, 28, 60)
    return {
        "discrete": pl.DataFrame({"age": ages, "education": rng.integers(0, 3, 60)}),
        "mixed, missing": pl.DataFrame(
            {
                "age": [None if i % 9 == 0 else int(a) for i, a in enumerate(ages)],
                "area": rng.choice(list("ABC"), 60),
                "height": rng.normal(170, 9, 60),
            }
        ),
        "continuous": pl.DataFrame(rng.standard_normal((60, 2)), schema=["x", "y"]),
        "one far from all others": pl.DataFrame({"x": [*range(59), 10_000]}),
        "sorted": pl.DataFrame({"x": np.sort(rng.integers(0, 20, 60))}),
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", tables())
def test_formulas_equal_simulation(name, way):
    columns = encode_table(tables()[name])
    labels = KMemberClustering(5, random_state=0).fit(np.hstack([c.codes[:, None] for c in columns])).labels_
    compare(columns, labels, way, 300, np.random.default_rng(1))


def test_smoothed_values_equal_simulation():
    columns = encode_table(tables()["continuous"])
    labels = KMemberClustering(5, random_state=0).fit(np.hstack([c.codes[:, None] for c in columns])).labels_
    compare(columns, labels, "transport", 300, np.random.default_rng(1), release_values="smoothed")
    compare(columns, labels, "permute", 300, np.random.default_rng(1), release_values="smoothed")


@pytest.fixture(scope="module")
def meps_sample(meps):
    X = np.column_stack(
        [meps["female"], np.digitize(meps["age"], [25, 35, 45, 55, 65, 75, 85]), meps["educ5"], meps["povcat"]]
    ).astype(float)
    odds = meps["wtdper"].to_numpy() / meps["wtdper"].sum()
    return X[np.random.default_rng(0).choice(len(X), 7_500, p=odds)]


@pytest.mark.parametrize("k", [5, 10, 50])
@pytest.mark.parametrize("way", WAYS)
def test_formulas_equal_simulation_on_meps(meps_sample, way, k):
    labels = KMemberClustering(k).fit((meps_sample - meps_sample.mean(axis=0)) / meps_sample.std(axis=0)).labels_
    releases, drawn = (1, 2) if way == "centroid" else (8, 8) if way == "transport" else (30, 15)
    columns = encode_table(meps_sample)
    if way == "transport":  # a release takes 0.4 s: a third of the people will do
        columns = [column.take(np.arange(2_500)) for column in columns]
        labels = KMemberClustering(k).fit(meps_sample[:2_500] / meps_sample.std(axis=0)).labels_
    if way == "centroid":
        exact = measure_risk(
            columns,
            labels,
            settings_of(way, k),
            draw_releases(columns, labels, settings_of(way, k), np.random.default_rng(0), 1),
        )
        trial = simulate(columns, labels, settings_of(way, k), 1, np.random.default_rng(0))[0]
        np.testing.assert_allclose(exact["nearest"].per_record, trial, atol=1e-12)
        return
    compare(columns, labels, way, releases, np.random.default_rng(2), n_releases=drawn)


@pytest.mark.parametrize(
    ("way", "k", "mean", "largest"),
    [
        ("permute", 5, 0.0395, 0.2),
        ("permute", 20, 0.0256, 0.05),
        ("rank", 5, 0.0064, 0.11),
        ("rank", 20, 0.0058, 0.042),
    ],
)
def test_the_optimal_attacker_on_meps(meps_sample, way, k, mean, largest):
    """Method S2b: permute 0.0395 / 0.0254, max 0.2 / 0.05; by transport 0.0065 / 0.0059, max 0.12 / 0.037."""
    labels = Anonymizer(k, method="permute", clustering="greedy").fit(meps_sample).labels_
    method, recovery = WAYS[way]
    risk = reidentification_risk(
        meps_sample, labels, method=method, recovery=recovery, attacker="optimal", n_releases=100, random_state=0
    )
    assert risk.mean == pytest.approx(mean, rel=0.05)
    assert risk.max <= largest + 1e-9


def test_choosing_and_trying_on_the_same_releases_would_be_biased(monkeypatch, meps_sample):
    """The optimal attacker's value is tried on a release he did not learn from; with few releases that matters."""
    labels = Anonymizer(5, method="permute", clustering="greedy").fit(meps_sample[:2000]).labels_
    few, many = (
        reidentification_risk(
            meps_sample[:2000], labels, recovery="rank", attacker="optimal", n_releases=n, random_state=0
        ).mean
        for n in (4, 150)
    )
    assert 0.7 * many < few < 1.1 * many
    columns, settings = encode_table(meps_sample[:2000]), settings_of("rank", 5)
    classes = Classes.find(columns, labels)
    drawn = [
        classes.count_received(h.source) for h in draw_releases(columns, labels, settings, np.random.default_rng(0), 4)
    ]
    monkeypatch.setattr("shoal.privacy.chances._PRIOR", 0.0)
    monkeypatch.setattr("shoal.privacy.chances._DOUBT", 0.0)
    twice = find_best_attack(classes, drawn + drawn)  # he learns from the release he is tried on, and believes it
    once = find_best_attack(classes, drawn)
    assert _as_risk(twice, "optimal", classes).mean > 1.2 * _as_risk(once, "optimal", classes).mean


# ---------------------------------------------------------------- bounds, and the edge


ADVERSARIAL = {
    "one far from all others": np.append(np.zeros(39), 1e9)[:, None],
    "a cluster of duplicates": np.repeat(np.arange(8.0), 5)[:, None],
    "two values, many clusters": np.tile([0.0, 1.0], 20)[:, None],
    "sorted": np.arange(40.0)[:, None],
    "heavy tail": np.exp(np.linspace(0, 40, 40))[:, None],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ADVERSARIAL)
@pytest.mark.parametrize("k", [5, 40])
def test_nobody_is_above_one_over_k_on_adversarial_tables(name, way, k):
    X = ADVERSARIAL[name]
    labels = Anonymizer(k, method="permute", random_state=0).fit(X).labels_
    for attacker in ("nearest", "optimal"):
        risk = reidentification_risk(
            X, labels, method=WAYS[way][0], recovery=WAYS[way][1], attacker=attacker, n_releases=10, random_state=0
        )
        assert risk.max <= 1 / k + 1e-12
        assert risk.bound <= 1 / k
        assert np.isfinite(risk.per_record).all()


def test_classes_records_and_figures_fit_together(meps_sample):
    labels = Anonymizer(10, method="permute").fit(meps_sample).labels_
    risk = reidentification_risk(meps_sample, labels, method="resample")
    rows, of = np.unique(meps_sample, axis=0, return_inverse=True)
    assert len(risk.per_class) == len(rows)
    np.testing.assert_array_equal(np.unique(meps_sample[risk.classes], axis=0), rows)
    means = np.bincount(of.ravel(), weights=risk.per_record) / np.bincount(of.ravel())
    where = {tuple(row): mean for row, mean in zip(rows, means, strict=True)}
    np.testing.assert_allclose(risk.per_class, [where[tuple(row)] for row in meps_sample[risk.classes]], atol=1e-15)
    assert risk.mean == pytest.approx(risk.per_record.mean())
    assert risk.share_above(0.05) == (risk.per_record > 0.05).mean()
    assert "nobody can be above 0.1" in str(risk)
    assert risk.describe()["above_0.05"] == pytest.approx(risk.share_above(0.05), rel=1e-3)


@pytest.mark.parametrize("way", ["centroid", "resample", "cdf"])
def test_a_sample_of_the_combinations_has_their_risk(monkeypatch, meps_sample, way):
    columns = encode_table(meps_sample[:1500])
    labels = Anonymizer(10, method="permute").fit(meps_sample[:1500]).labels_
    settings = settings_of(way, 10)
    monkeypatch.setattr("shoal.privacy.risk._SEARCHES", 60)
    drawn = list(draw_releases(columns, labels, settings, np.random.default_rng(0), 4))
    whole = measure_risk(columns, labels, settings, iter(drawn))["nearest"]
    part = measure_risk(columns, labels, settings, iter(drawn), sample=np.random.default_rng(1))["nearest"]
    assert len(part.per_class) == 60 < len(whole.per_class)
    of_class = dict(zip(whole.classes.tolist(), whole.per_class, strict=True))
    np.testing.assert_allclose(part.per_class, [of_class[row] for row in part.classes.tolist()], atol=1e-12)
    assert part.describe()["records_sampled"] == len(part.per_record)
    assert part.mean == pytest.approx(whole.mean, rel=0.35)


def test_a_table_with_levels_and_dates():
    people = pl.DataFrame(
        {"sex": list("MFMFMF"), "born": pl.date_range(pl.date(1950, 1, 1), pl.date(1950, 6, 1), "1mo", eager=True)}
    )
    risk = reidentification_risk(people, [0, 0, 0, 1, 1, 1], method="permute")
    np.testing.assert_allclose(risk.per_record, 1 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0, 0]}, "labels must be 3 whole numbers"),
        ({"labels": [0.0, 0.0, 0.0]}, "labels must be 3 whole numbers"),
        ({"attacker": "best"}, "attacker='best' is not known"),
        ({"n_releases": 1}, "n_releases=1 must be a whole number of at least 2"),
        ({"method": "magic"}, "method='magic' is not known"),
        ({"X": [["a"], ["b"], ["c"]]}, "X must be a table, or rows of numbers"),
        ({"X": [1.0, 2.0, 3.0]}, "X must be a table or have shape"),
    ],
)
def test_bad_input(options, message):
    given = {"X": [[1.0], [2.0], [3.0]], "labels": [0, 0, 0]} | options
    with pytest.raises(InputError, match=message):
        reidentification_risk(given.pop("X"), given.pop("labels"), **given)
