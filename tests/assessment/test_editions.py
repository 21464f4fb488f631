"""The two editions: canaries, small groups, and one set of numbers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import polars as pl
import pytest

import shoal
from shoal.assessment import Score, Scores
from shoal.assessment.editions import as_dict, round_numbers
from shoal.errors import InputError
from shoal.report import render_page

from .conftest import CANARIES, SETTINGS

SCHEMA = json.loads((Path(shoal.__file__).parent / "report" / "assessment.schema.json").read_text())


@pytest.fixture(scope="module", params=["gaussian", "permute", "centroid"])
def any_assessment(request, people):
    settings = {**SETTINGS, "method": request.param, "n_releases": 2}
    return shoal.anonymize(people, **settings, random_state=0).assess(progress=False)


@pytest.mark.parametrize("edition", ["internal", "public"])
def test_no_single_persons_value_is_on_any_page(any_assessment, edition):
    data = any_assessment.to_dict(edition)
    texts = [json.dumps(data, ensure_ascii=False), render_page(data)]
    if edition == "internal":
        texts += [str(any_assessment), any_assessment._repr_html_()]
    for text in texts:
        for canary in CANARIES:
            assert not re.search(rf"(?<![\d.]){re.escape(canary)}(?!\d)", text.replace(",", "")), canary
        assert "left out" not in text


def test_the_schema_describes_both_editions(any_assessment, people):
    pair = shoal.assess(people, people.head(500), quasi_identifiers=["age", "town"], progress=False)
    for data in (any_assessment.to_dict(), any_assessment.to_dict("public"), pair.to_dict(), pair.to_dict("public")):
        jsonschema.validate(json.loads(json.dumps(data, allow_nan=False)), SCHEMA)


def numbers_of_people(data):
    """Return every number of people on a page, wherever it stands."""
    for part in ("privacy", "utility"):
        for score in data[part]:
            if score["form"] == "count" and score["value"] is not None:
                yield score["name"], score["value"]
    for bar in data["risk"]:
        yield "risk", bar["people"]
    for one in data["combinations"]:
        yield "alone", one["alone"]
        yield "below", one["below"]


def test_the_public_edition_has_no_small_group(any_assessment, people):
    data = any_assessment.to_dict("public")
    for name, count in numbers_of_people(data):
        assert count is None or count == 0 or count >= 10, name
    shares = {c.name: [bar.original * 600 for bar in c.bars] for c in any_assessment.columns}
    assert all(count > 9.5 for counts in shares.values() for count in counts)
    names = [score["name"] for score in data["privacy"]]
    assert "optimal_max" not in names
    assert "nearest_max" not in names
    assert all("max" not in figures for figures in data["certificate"]["risk"].values())


def test_the_internal_edition_has_small_groups_as_counts(assessment):
    counts = [count for _, count in numbers_of_people(assessment.to_dict())]
    assert any(0 < count < 10 for count in counts)
    assert None not in counts


def test_scores_of_small_groups_are_not_told_in_public(assessment):
    def edition_of(score, edition="public"):
        changed = replace(assessment, privacy=Scores([score]))
        return as_dict(changed, edition)["privacy"][0]

    few = Score("alone", "Alone", 3 / 600, "lower", 3 / 600, "3 of 600 people.", people=600)
    assert edition_of(few, "internal")["written"] == "0.50 %"
    told = edition_of(few)
    assert told["value"] is None
    assert told["reference"] is None
    assert told["written"] == "not told"
    assert "3" not in told["reading"]
    assert edition_of(replace(few, value=0.0))["value"] == 0.0
    assert edition_of(replace(few, value=10 / 600))["value"] is not None
    assert edition_of(replace(few, value=597 / 600))["value"] == pytest.approx(590 / 600, abs=1e-3)  # all but three
    assert edition_of(replace(few, value=37 / 600))["value"] == 0.05  # 30
    assert edition_of(replace(few, value=1.0))["value"] == 1.0
    assert edition_of(replace(few, value=0.5, people=8))["value"] is None
    assert edition_of(replace(few, value=4.0, form="count"))["value"] is None
    assert edition_of(replace(few, value=40.0, form="count", reference=1.0))["value"] == 40.0
    assert edition_of(replace(few, value=40.0, form="count", reference=1.0))["reference"] is None


def test_nothing_small_follows_by_subtraction(people):
    """Numbers of people are multiples of k: their differences are, too."""
    table = people.with_columns(
        cost=pl.when(pl.int_range(600) < 3).then(None).otherwise("cost"),
        code=pl.Series([f"c{i}" if i < 597 else "c0" for i in range(600)]),
    )
    settings = {**SETTINGS, "quasi_identifiers": ["sex", "code"], "method": "permute"}
    found = shoal.anonymize(table, **settings, random_state=0).assess(target="cost", progress=False)
    data, rows = found.to_dict("public"), found.to_dict()
    counts = [count for one in data["combinations"] for count in (one["alone"], one["below"])]
    assert {count % 10 for count in counts if count is not None} <= {0}
    assert {count % 10 for one in rows["combinations"] for count in (one["alone"], one["below"])} > {0}
    assert data["prediction"]["tested"] == 590
    assert rows["prediction"]["tested"] == 597
    assert not any(name.startswith("above") for figures in data["certificate"]["risk"].values() for name in figures)
    for score in data["privacy"]:
        assert not re.search(r"\b59[1-9]\b", score["reading"])


def test_several_rows_of_one_person_are_one_person():
    """Forty rows of one person, with a level and a cost of her own."""
    ids = np.r_[np.zeros(40, dtype=np.int64), 1:121]
    table = pl.DataFrame(
        {
            "id": ids,
            "age": np.where(ids == 0, 33, 40 + ids % 4),
            "dx": np.where(ids == 0, "Zaphod-7731", np.where(ids % 2, "flu", "cold")),
            "cost": np.where(ids == 0, 7777.0, np.random.default_rng(0).normal(10, 2, 160).round(2)),
        }
    )
    options = {"quasi_identifiers": ["age"], "sensitive": ["cost", "dx"]}
    release = shoal.anonymize(table, **options, unit="id", k=10, method="permute", random_state=0)
    two_files = shoal.assess(
        table, release.table, **options, unit="id", certificate=release.certificate, progress=False
    )
    for found in (release.assess(progress=False), two_files):
        for edition in ("internal", "public"):
            data = found.to_dict(edition)
            text = json.dumps(data).replace("7777-7", "")
            assert "Zaphod" not in text
            assert "7777" not in text
            assert data["about"]["people"] == 121
            assert data["prediction"]["tested"] in (121, 120)
    with pytest.raises(InputError, match="speaks of 121 people in 160 rows; say which column"):
        shoal.assess(table, release.table, **options, certificate=release.certificate, progress=False)


def test_values_that_were_protected_are_not_told_in_public_by_effects(people):
    protect = {"cost": {"top": 0.05, "round": 100}}
    found = shoal.anonymize(people, **SETTINGS, protect=protect, random_state=0).assess(progress=False)
    assert found.to_dict()["prediction"]["effects"]
    public = found.to_dict("public")["prediction"]
    assert public["effects"] == public["groups"] == []
    assert public["share"] is not None or public["original"] is not None
    render_page(found.to_dict("public"))


def test_columns_that_cannot_be_compared_tell_no_count_in_public():
    table = pl.DataFrame({"age": np.arange(60) % 7, "x": [float("inf"), *range(59)]}, strict=False)
    found = shoal.assess(table, table, quasi_identifiers=["age"], sensitive=["x"], progress=False)
    reasons = {one["what"]: one["why"] for one in found.to_dict("public")["not_measured"]}
    assert reasons["column 'x'"] == "its values cannot be compared"


def test_characters_that_a_page_cannot_hold(people):
    table = pl.DataFrame({"a\x0bge": np.arange(60) % 7, "dx": ["a", "b\x00\x1b\ufffe"] * 30})
    found = shoal.assess(table, table, quasi_identifiers=["a\x0bge"], sensitive=["dx"], progress=False)
    data = found.to_dict()
    assert data["columns"][0]["name"] == "a\ufffdge"
    assert {bar["label"] for bar in data["columns"][1]["bars"]} == {"a", "b\ufffd\ufffd\ufffd"}
    assert "\x0b" not in render_page(data)


def test_joined_bars_of_risk_hold_everybody(any_assessment):
    internal, public = any_assessment.to_dict(), any_assessment.to_dict("public")
    for attacker in ("optimal", "nearest"):
        one, two = ([bar for bar in data["risk"] if bar["attacker"] == attacker] for data in (internal, public))
        assert sum(bar["people"] for bar in one) == sum(bar["people"] for bar in two) == 600
        edges = [bar["low"] for bar in two] + [two[-1]["high"]]
        assert edges == sorted(edges)


def test_json_html_and_api_tell_the_same_numbers(assessment, tmp_path):
    assessment.to_json(tmp_path / "a.json")
    assessment.to_html(tmp_path / "a.html")
    data = json.loads((tmp_path / "a.json").read_text())
    page = (tmp_path / "a.html").read_text()
    for part in ("privacy", "utility"):
        for score in data[part]:
            api = getattr(assessment, part)[score["name"]]
            assert score["value"] == (api.value if api.value is None else pytest.approx(api.value, rel=1e-5))
            assert score["written"] == api.written()[0]
            assert f'data-label="value">{score["written"]}</td>' in page
    assert data["prediction"]["release"] == pytest.approx(assessment.prediction.kept.release, rel=1e-5)
    for path in ("a.json", "a.html"):
        assert (tmp_path / path).stat().st_mode & 0o777 == 0o600


def test_public_numbers_have_three_digits(assessment):
    def check(value):
        if isinstance(value, dict):
            return all(check(v) for v in value.values())
        if isinstance(value, list):
            return all(check(v) for v in value)
        return not isinstance(value, float) or float(f"{value:.3g}") == value

    assert check(assessment.to_dict("public"))
    assert not check(assessment.to_dict())


def test_numbers_that_json_has_not():
    assert round_numbers({"a": [np.nan, np.inf, np.float64(1 / 3), np.int64(7), True, "x"]}, 3) == {
        "a": [None, None, 0.333, 7, True, "x"]
    }


def test_of_many_columns_the_pairs_that_changed_most(rng):
    table = pl.DataFrame({f"c{i}": rng.integers(0, 5, 300) for i in range(60)})
    other = table.with_columns(c7=table["c8"])
    found = shoal.assess(table, other, quasi_identifiers=table.columns, progress=False)
    data = found.to_dict()
    assert len(data["dependence"]["columns"]) == 40
    assert {"c7", "c8"} <= set(data["dependence"]["columns"])
    assert data["dependence"]["of_columns"] == 60
    assert len(data["columns"]) == 60


def test_an_unknown_edition_is_refused(assessment):
    with pytest.raises(InputError, match="edition='publik' is not known; did you mean 'public'"):
        assessment.to_dict("publik")
