"""The vault: the same people hide with the same people in every release."""

from __future__ import annotations

import os
import stat

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import FileError, InputError


@pytest.fixture
def people():
    rng = np.random.default_rng(2)
    return pl.DataFrame(
        {
            "id": [f"p{i:03d}" for i in range(60)],
            "age": rng.integers(20, 80, 60),
            "sex": rng.choice(["F", "M"], 60),
            "height": rng.normal(170, 9, 60).round(1),
            "cost": rng.permutation(60) * 10,
        }
    )


def release(people, vault, qi=("age", "sex"), k=5, **options):
    given = {"identifiers": ["id"]} if "id" in people.columns else {}
    return shoal.anonymize(
        people, quasi_identifiers=list(qi), sensitive=["cost"], others="drop", k=k, method="permute", vault=vault,
        **(given | options),
    )  # fmt: skip


def clusters_of(path):
    with np.load(path) as stored:
        return {bytes(key): label for key, label in zip(stored["keys"], stored["labels"].tolist(), strict=True)}


def partners(people, made):
    """Return, for permute on unique rows, who could have received whose row: the owner of every released x, by cost."""
    owner = {row: who for who, *row in people.select("cost", "height").iter_rows() for row in [tuple(row)]}
    return {cost: owner[(height,)] for cost, height in made.table.select("cost", "height").iter_rows()}


def test_a_corrected_and_wider_release_has_the_same_clusters(people, tmp_path):
    vault = tmp_path / "people.vault"
    first = release(people, vault)
    assert stat.S_IMODE(os.stat(vault).st_mode) == 0o600
    before = clusters_of(vault)
    corrected = people.sample(fraction=1.0, shuffle=True, seed=1).with_columns(
        age=pl.when(pl.col("id") == "p003").then(99).otherwise(pl.col("age"))
    )
    second = release(corrected, vault, qi=("age", "sex", "height"))
    assert clusters_of(vault) == before
    assert first.certificate["vault"] == {"release": 1, "known": 0, "new": 60}
    assert second.certificate["vault"] == {"release": 2, "known": 60, "new": 0}
    alone = release(corrected, None, qi=("age", "sex", "height"))
    texts = [{i["what"]: i["why"] for i in m.certificate["not_covered"]}["several releases"] for m in (second, alone)]
    assert "kept in a vault" in texts[0]
    assert "covers one release of this table" in texts[1]


def test_intersecting_two_releases_narrows_nobody_down(people, tmp_path):
    """Unique costs link the rows of two releases. Without a vault the pairs of clusters single people out."""

    def candidates(vault):
        """Return how many people could own each record, from the clusters of both releases."""
        small = people.with_columns(height=pl.int_range(60).cast(pl.Float64) + 100)
        shuffled = small.with_columns(age=pl.col("age").shuffle(seed=5))
        groups = []
        for table in (small, shuffled):
            owners = [partners(small, release(table, vault, qi=("age", "height"))) for _ in range(70)]
            groups.append([{seen[cost] for seen in owners} for cost in small["cost"]])
        return min(len(a & b) for a, b in zip(*groups, strict=True))

    assert candidates(tmp_path / "v") >= 5
    assert candidates(None) < 5


def test_new_people_hide_among_one_another(people, tmp_path):
    vault = tmp_path / "v"
    release(people[:40], vault)
    old = clusters_of(vault)
    with pytest.raises(InputError, match="3 people are new to the vault.*takes k=5"):
        release(people[:43], vault)
    assert clusters_of(vault) == old
    made = release(people, vault)
    assert made.certificate["vault"] == {"release": 2, "known": 40, "new": 20}
    now = clusters_of(vault)
    assert {key: now[key] for key in old} == old
    assert set(old.values()).isdisjoint({label for key, label in now.items() if key not in old})


@pytest.mark.parametrize("gone", [1, 5, 20])
def test_people_who_left_would_be_singled_out(people, tmp_path, gone):
    """Also where whole clusters leave: comparing three releases, each fine beside the first, may single people out."""
    vault = tmp_path / "v"
    release(people, vault)
    with pytest.raises(InputError, match=f"{gone} people of the vault are not in this table"):
        release(people[gone:], vault)


def test_an_identifier_in_another_form(people, tmp_path):
    """1 and 1.0 are one person; 1 and 'p1' are not, and then nobody is recognised: refused, not clustered anew."""
    vault, table = tmp_path / "v", people.with_columns(id=pl.int_range(60))
    release(table, vault)
    for dtype in (pl.Float64, pl.String):
        assert release(table.with_columns(pl.col("id").cast(dtype)), vault).certificate["vault"]["known"] == 60
    with pytest.raises(InputError, match="recognises nobody in this table by column 'id'"):
        release(table.with_columns(id=pl.format("p{}", "id")), vault)


def test_another_release_in_the_meantime_is_noticed(people, tmp_path):
    vault, done = tmp_path / "v", []

    def meanwhile(stage, share):
        if not done:
            done.append("begun")
            release(people[30:], vault)

    with pytest.raises(FileError, match="changed by another release in the meantime"):
        release(people[:30], vault, progress=meanwhile)
    assert len(clusters_of(vault)) == 30


def test_new_people_meet_the_models_too(people, tmp_path):
    vault = tmp_path / "v"
    table = people.with_columns(cost=pl.when(pl.col("cost") % 3 == 0).then(1).otherwise(0))
    release(table[:30], vault, l_diversity=2)
    made = release(table, vault, l_diversity=2)
    assert made.certificate["models"][0]["reached"] >= 2
    assert made.certificate["vault"]["new"] == 30


def test_a_refused_release_leaves_no_vault(people, tmp_path):
    vault = tmp_path / "v"
    with pytest.raises(InputError):
        release(people, vault, k=61)
    with pytest.raises(InputError, match="vault must be a path"):
        release(people, 5)
    assert not vault.exists()


def test_a_larger_k_than_the_vault_knows(people, tmp_path):
    vault = tmp_path / "v"
    release(people, vault)
    with pytest.raises(InputError, match="clusters are smaller than k=20"):
        release(people, vault, k=20)
    assert release(people, vault, k=3).certificate["clusters"]["smallest"] >= 5


def test_rows_without_an_identifier_are_recognised_by_their_values(people, tmp_path):
    vault, table = tmp_path / "v", people.drop("id")
    release(table, vault)
    assert release(table, vault, qi=("age", "sex", "height")).certificate["vault"]["known"] == 60
    with pytest.raises(InputError, match="no column that tells people apart"):
        release(table.reverse(), vault)


def test_a_person_of_several_rows(people, tmp_path):
    vault = tmp_path / "v"
    claims = pl.concat([people, people.with_columns(cost=pl.col("cost") + 1)])
    made = release(claims, vault, identifiers=[], unit="id")
    assert made.certificate["vault"]["new"] == 60
    again = release(claims.sample(fraction=1, shuffle=True, seed=0), vault, identifiers=[], unit="id")
    assert again.certificate["vault"]["known"] == 60


def test_identifiers_are_not_in_the_file(people, tmp_path):
    vault = tmp_path / "v"
    release(people, vault)
    data = vault.read_bytes()
    assert b"p001" not in data
    assert b"p059" not in data


def test_models_are_checked_on_known_clusters(people, tmp_path):
    vault = tmp_path / "v"
    release(people, vault)
    with pytest.raises(shoal.CheckError, match="t-closeness of 0.001 does not hold"):
        release(people, vault, t_closeness=0.001)


def test_a_vault_that_is_none(people, tmp_path):
    bad = tmp_path / "bad"
    bad.write_bytes(b"not a vault")
    bad.chmod(0o600)
    with pytest.raises(FileError, match="is not a vault of shoal, or is damaged"):
        release(people, bad)
    assert bad.read_bytes() == b"not a vault"
    vault = tmp_path / "v"
    release(people, vault)
    vault.write_bytes(vault.read_bytes()[:-40])
    with pytest.raises(FileError, match="damaged"):
        release(people, vault)
    vault.chmod(0o644)
    with pytest.raises(FileError, match="can be read by others"):
        release(people, vault)
    with pytest.raises(FileError, match="folder of the vault"):
        release(people, tmp_path / "none" / "v")
    with pytest.raises(FileError, match="not an ordinary file"):
        release(people, tmp_path)


def test_the_column_that_tells_people_apart_must_stay(people, tmp_path):
    vault = tmp_path / "v"
    release(people, vault)
    with pytest.raises(InputError, match="recognises people by column 'id', which the table does not have"):
        release(people.drop("id"), vault)
    with pytest.raises(InputError, match="'id', which has missing values"):
        release(people.with_columns(id=pl.when(pl.col("id") > "p002").then("id")), vault)
