"""Attacks on releases: what is gained by reading our source, our certificate and all quasi-identifiers."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom, spearmanr

import shoal
from shoal import Anonymizer
from shoal.encoding import encode_table
from shoal.hiding import hide
from shoal.privacy import reidentification_risk
from shoal.progress import Reporter
from shoal.randomness import make_generator
from shoal.settings import Settings

WAYS = [
    ("centroid", None),
    ("resample", None),
    ("permute", None),
    ("gaussian", "transport"),
    ("gaussian", "rank"),
    ("gaussian", "cdf"),
]
K = 4


def adversarial_tables():
    rng = np.random.default_rng(8)
    return {
        "one far from all others": np.append(np.arange(15), 1000),
        "a cluster of duplicates": np.repeat([1, 5, 9, 30], 4),
        "two clusters sharing values": np.tile([1, 2, 3, 4], 4),
        "sorted": np.arange(16),
        "random": rng.integers(0, 30, 16),
    }


def release_often(x, method, recovery, k, times):
    """Return the released x and the true person of every released row, from the whole pipeline."""
    table = pl.DataFrame({"x": x, "who": np.random.default_rng(1).permutation(len(x)) * 7 + 3})
    person = {value: i for i, value in enumerate(table["who"])}
    for _ in range(times):
        release = shoal.anonymize(
            table, quasi_identifiers=["x"], sensitive=["who"], k=k, method=method, recovery=recovery, n_releases=0
        )
        yield release.table["x"].to_numpy().astype(float), np.array([person[v] for v in release.table["who"]])


QUICK = ("one far from all others", "two clusters sharing values")
NAMES = [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in adversarial_tables()]


@pytest.mark.parametrize(("method", "recovery"), WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_no_attacker_who_uses_released_quasi_identifiers_exceeds_one_over_k(name, method, recovery):
    """He knows x of everybody and the clusters, and may learn from as many releases of his own as he likes."""
    x = adversarial_tables()[name].astype(float)
    n, times = len(x), 40
    labels = Anonymizer(K, method="permute").fit(x[:, None]).labels_
    releases = list(release_often(x, method, recovery, K, times))
    values = np.unique(np.concatenate([released for released, _ in releases]).round(9))
    received = np.zeros((labels.max() + 1, len(values)))  # what each cluster received in the first half
    for released, who in releases[: times // 2]:
        np.add.at(received, (labels[who], np.searchsorted(values, released.round(9))), 1)
    points_to = received / np.maximum(received.sum(axis=0), 1)
    rng = np.random.default_rng(2)
    attackers = {
        "nearest": lambda i, released: np.abs(released - x[i]),
        "farthest": lambda i, released: -np.abs(released - x[i]),
        "the same row": lambda i, released: np.abs(np.arange(n) - i),
        "nearest to the cluster": lambda i, released: np.abs(released - x[labels == labels[i]].mean()),
        "learnt": lambda i, released: -points_to[labels[i], np.searchsorted(values, released.round(9))],
    }
    for attacker in attackers.values():
        success = np.zeros((times - times // 2, n))
        for r, (released, who) in enumerate(releases[times // 2 :]):
            for i in range(n):
                score = attacker(i, released)
                tied = np.flatnonzero(score <= score.min() + 1e-9)
                success[r, i] = who[rng.choice(tied)] == i
        # of some 2,500 shares in all, one in ten thousand runs has one that exceeds this
        limit = binom.isf(4e-8, len(success), 1 / K) / len(success)
        assert success.mean(axis=0).max() <= limit
        assert success.mean() <= 1 / K + 5 * np.sqrt(1 / K * (1 - 1 / K) / success.size)


def test_the_test_above_would_notice():
    """The raw table, shuffled, is found out by the nearest match."""
    x = adversarial_tables()["sorted"].astype(float)
    order = np.random.default_rng(0).permutation(16)
    assert all(order[np.abs(x[order] - x[i]).argmin()] == i for i in range(16))


# ---------------------------------------------------------------- replaying the clustering

X, Y = np.array([9.0, 0.0, 8.0, 7.0]), np.array([6.0, 8.0, 0.0, 2.0])


def replay(released, response_weight):
    """Return the attacker's posterior: rows are people, columns are the released records (their y, sorted).

    He tries every assignment of sensitive values to people, forms the clusters that we would form, and keeps the
    assignments under which the release is possible.
    """
    values = np.sort(Y)
    belief = np.zeros((4, 4))
    for guess in itertools.permutations(values):
        labels = _clusters(tuple(guess), response_weight)
        chance = 1.0
        for label in set(labels):
            inside = [i for i in range(4) if labels[i] == label]
            handed = sorted(released[guess[i]] for i in inside)
            chance *= (handed == sorted(X[inside])) / len(set(itertools.permutations(X[inside])))
        for person in range(4):
            belief[person, np.searchsorted(values, guess[person])] += chance
    return belief / belief.sum(axis=1, keepdims=True)


_seen: dict[tuple[tuple[float, ...], float], tuple[int, ...]] = {}


def _clusters(guess, response_weight):
    if (guess, response_weight) not in _seen:
        model = Anonymizer(2, method="permute", clustering="greedy", response_weight=response_weight)
        _seen[guess, response_weight] = tuple(model.fit(X[:, None], np.array(guess)).labels_.tolist())
    return _seen[guess, response_weight]


@pytest.mark.parametrize(("response_weight", "certain"), [(1.0, 2), (0.0, 0)])
def test_replaying_the_clustering_succeeds_only_if_it_reads_the_sensitive_values(response_weight, certain):
    """Method S1: x = (9, 0, 8, 7), y = (6, 8, 0, 2), k = 2, permute. docs/theory.md shows both."""
    best = []
    for seed in range(30):
        model = Anonymizer(2, method="permute", clustering="greedy", response_weight=response_weight, random_state=seed)
        hidden = model.fit_transform(X[:, None], Y)[:, 0]
        belief = replay(dict(zip(Y, hidden, strict=True)), response_weight)
        own = belief[np.arange(4), np.searchsorted(np.sort(Y), Y)]
        assert (own > 0).all()  # the truth is never excluded
        best.append((belief.max(axis=1) > 1 - 1e-9).sum())
        if response_weight == 0:
            assert belief.max() <= 0.5 + 1e-12
    assert max(best) == certain


# ---------------------------------------------------------------- secrets


def rebuild(table, seed, settings, labels):
    """Return the release that a seed would give: the pipeline's draws, in the pipeline's order."""
    rng = make_generator(seed)
    source = hide(encode_table(table[["age", "sex"]]), labels, settings, rng, Reporter(progress=False)).source
    order = rng.permutation(len(table))
    return np.column_stack([table["age"].to_numpy()[source[order]], table["cost"].to_numpy()[order]])


@pytest.mark.slow
def test_no_seed_reproduces_a_release():
    rng = np.random.default_rng(4)
    table = pl.DataFrame({"age": rng.integers(20, 60, 24), "sex": ["F", "M"] * 12, "cost": rng.permutation(24) * 10})
    options = {"quasi_identifiers": ["age", "sex"], "sensitive": ["cost"], "k": 4, "method": "permute"}
    settings = Settings(4, "permute", None, "auto", 0.0, 1 / 3, "observed")
    labels = Anonymizer(4, method="permute").fit(table[["age", "sex"]]).labels_
    seeded = shoal.anonymize(table, random_state=1234, **options)
    np.testing.assert_array_equal(seeded.table[["age", "cost"]].to_numpy(), rebuild(table, 1234, settings, labels))
    assert seeded.certificate["status"].startswith("not for release")
    assert "1234" not in json.dumps(seeded.certificate)
    release = shoal.anonymize(table, **options).table[["age", "cost"]].to_numpy()
    assert not any(np.array_equal(release, rebuild(table, seed, settings, labels)) for seed in range(10_001))


@pytest.mark.parametrize(("method", "recovery"), WAYS)
@pytest.mark.parametrize("fmt", ["csv", "parquet", "arrow"])
def test_no_trace_of_order(tmp_path, method, recovery, fmt):
    """Input sorted by person: neither the place of a record nor the place of its quasi-identifiers tells the person."""
    n = 1500
    table = pl.DataFrame({"x": np.arange(n) // 3, "who": np.arange(n) * 2.0})
    path = tmp_path / f"release.{fmt}"
    release = shoal.anonymize(
        table, quasi_identifiers=["x"], sensitive=["who"], k=5, method=method, recovery=recovery, n_releases=0,
        allow_leaks=["who"],
    )  # fmt: skip
    release.write(path)
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}[fmt](path)
    place = np.arange(n)
    for column in ("who", "x"):
        assert abs(spearmanr(place, read[column].to_numpy()).statistic) < 4 / np.sqrt(n)
        assert abs(spearmanr(place[1:], np.diff(read[column].to_numpy())).statistic) < 4 / np.sqrt(n)


def test_the_certificate_has_no_labels_and_its_figures_do_not_depend_on_this_release():
    """Risk is measured on releases drawn anew: two certificates of one table differ only by chance."""
    table = pl.DataFrame({"x": np.arange(40) % 13, "y": np.arange(40)})
    options = {"quasi_identifiers": ["x"], "sensitive": ["y"], "k": 4, "method": "permute"}
    one, other = (shoal.anonymize(table, **options) for _ in range(2))
    assert not one.table.equals(other.table)
    assert one.certificate == other.certificate  # closed form: equal for every release of the table
    exact = reidentification_risk(
        table[["x"]], Anonymizer(4, method="permute").fit(table[["x"]]).labels_, method="permute"
    )
    assert one.certificate["risk"]["nearest"] == exact.describe()


def test_what_the_release_tells_of_a_sensitive_value_meets_the_model():
    """docs/theory.md, section 5: enumerate all worlds in which the clusters meet the model; none tells more.

    Six people in two clusters of three, permuted; every cluster has to hold both sensitive values (2-diversity). The
    attacker knows x, the clusters and that; he sees the released pairs.
    """
    x, labels, y = (0, 1, 2, 4, 5, 6), (0, 0, 0, 1, 1, 1), (0, 1, 0, 1, 1, 0)
    clusters = [(0, 1, 2), (3, 4, 5)]

    def worlds():
        for given in set(itertools.permutations(y)):
            if all(len({given[i] for i in cluster}) == 2 for cluster in clusters):
                for a, b in itertools.product(itertools.permutations(x[:3]), itertools.permutations(x[3:])):
                    yield given, a + b

    seen: dict[tuple, list] = {}
    for given, received in worlds():
        seen.setdefault(tuple(sorted(zip(received, given, strict=True))), []).append(given)
    assert len(labels) == 6
    for consistent in seen.values():
        for person in range(6):
            share = np.mean([given[person] for given in consistent])
            assert 1 / 3 - 1e-12 <= share <= 2 / 3 + 1e-12  # as inside a cluster of two values among three
