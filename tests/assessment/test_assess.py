"""One measurement, for releases in memory and for any two tables."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import polars as pl
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression

import shoal
from shoal.assessment import Scores
from shoal.errors import InputError

from .conftest import SETTINGS

COMPARED = {"quasi_identifiers": SETTINGS["quasi_identifiers"], "sensitive": SETTINGS["sensitive"]}
QI = ["sex", "age", "education", "income"]


def test_a_release_in_memory_knows_its_attackers(release, assessment):
    assert assessment.privacy["bound"].value == 0.1
    for attacker in ("optimal", "nearest"):
        figures = release.certificate["risk"][attacker]
        assert assessment.privacy[f"{attacker}_mean"].value == figures["mean"]
        assert assessment.privacy[f"{attacker}_max"].value == figures["max"] <= 0.1
    assert assessment.privacy["guessing"].value < 1
    counted = [bar.people for bar in assessment.risk_bars if bar.attacker == "optimal"]
    assert sum(counted) == 600
    assert max(bar.high for bar in assessment.risk_bars) == pytest.approx(0.1)
    assert assessment.refused == []


def test_every_score_has_direction_reference_and_reading(assessment):
    for score in [*assessment.privacy.values(), *assessment.utility.values()]:
        assert score.better in ("higher", "lower")
        assert score.reading.endswith(".")
        assert score.title
        if not score.name.startswith("homogeneous"):
            assert score.reference is not None, score.name
            assert math.isfinite(score.reference), score.name


def test_an_exact_release_keeps_every_count_and_beats_an_independent_sample(assessment):
    utility = assessment.utility
    assert utility["joint_histogram"].value == 1.0 > utility["joint_histogram"].reference
    assert utility["joint_histogram_in_bins"].value == 1.0
    for name in ("ks", "wasserstein"):
        assert utility[name].value == 0.0 < utility[name].reference
    assert all(column.marginal_histogram == 1.0 for column in assessment.columns)


def test_an_independent_sample_scores_its_own_reference():
    a, b = (shoal.datasets.load_cohort(6000, random_state=seed) for seed in (0, 1))
    found = shoal.assess(a, b, quasi_identifiers=QI, sensitive=["cost"], progress=False).utility
    for name in ("joint_histogram", "joint_histogram_in_bins", "marginal_histogram"):
        assert 1 - found[name].value == pytest.approx(1 - found[name].reference, rel=0.35), name
    assert found["ks"].value < 3 * found["ks"].reference
    assert found["correlation"].value < 3 * found["correlation"].reference
    assert found["pmse_ratio"].value < 2
    assert found["coefficient_shift"].value < 3 * found["coefficient_shift"].reference
    assert found["shift_error"].value < 4 * found["shift_error"].reference


def test_a_broken_release_is_seen(rng):
    cohort = shoal.datasets.load_cohort(4000)
    broken = cohort.with_columns(cost=cohort["cost"].sample(fraction=1, shuffle=True, seed=0))
    found = shoal.assess(cohort, broken, quasi_identifiers=QI, sensitive=["cost"], progress=False).utility
    assert found["joint_histogram"].value == 1.0  # the quasi-identifiers are untouched
    assert found["correlation"].value > 5 * found["correlation"].reference
    assert found["pmse_ratio"].value > 3
    assert found["prediction_kept"].value < 0.3
    assert found["coefficient_shift"].value > 3


def test_two_files_are_not_aligned_and_linkage_is_refused_with_a_reason(people, release):
    found = shoal.assess(people, release.table, **COMPARED, progress=False)
    assert "bound" not in found.privacy
    assert "linkage" not in found.privacy
    assert "guessing" not in found.privacy
    reasons = dict(found.refused)
    assert "not aligned" in reasons["attacks that link people to records"]
    assert "certificate" in reasons["the guarantee"]
    assert found.utility["joint_histogram"].value == 1.0
    assert found.privacy["presence"].value == 1.0


def test_a_certificate_brings_bound_and_attackers(people, release):
    found = shoal.assess(people, release.table, **COMPARED, certificate=release.certificate, progress=False)
    assert found.privacy["bound"].value == 0.1
    assert found.privacy["optimal_mean"].value == release.certificate["risk"]["optimal"]["mean"]
    assert found.risk_bars == []
    whole = shoal.assess(people, release, **COMPARED, progress=False)
    assert whole.to_dict() == found.to_dict()


def test_aligned_tables_are_attacked(people):
    columns = people[SETTINGS["quasi_identifiers"]]
    same = shoal.assess(people, people, **COMPARED, aligned=True, progress=False)
    assert same.privacy["linkage"].value > 0.9  # nearly everybody is alone: the table as it is
    hidden = shoal.Anonymizer(k=10, random_state=0).fit_transform(columns)
    other = people.with_columns(*(hidden[name] for name in hidden.columns))
    found = shoal.assess(people, other, **COMPARED, aligned=True, progress=False)
    assert found.privacy["linkage"].value < 0.1
    expected = shoal.privacy.simulate_linkage(columns, hidden, n_trials=1).rate
    assert found.privacy["linkage"].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
def test_tables_of_any_kind_give_the_same_numbers(people, release, kind):
    to = (lambda t: t.to_pandas()) if kind == "pandas" else (lambda t: t.to_arrow())
    one = shoal.assess(people, release.table, **COMPARED, progress=False)
    two = shoal.assess(to(people), to(release.table), **COMPARED, progress=False)
    for name, score in one.utility.items():
        assert two.utility[name].value == pytest.approx(score.value, abs=1e-9), name
    assert [c.bars for c in one.columns] == [c.bars for c in two.columns]


def test_the_same_numbers_every_time(release, assessment):
    again = release.assess(progress=False)
    assert again.to_dict() == assessment.to_dict()
    assert again.privacy["guessing"] == assessment.privacy["guessing"]


def test_any_model_and_target(release):
    forest = RandomForestRegressor(10, max_depth=4, random_state=0)
    found = release.assess(target="cost", model=forest, progress=False)
    assert found.prediction.kept.model == "RandomForestRegressor"
    classes = release.assess(target="diagnosis", progress=False)
    assert classes.prediction.kept.measure == "2 AUC - 1"
    for options, text in (
        ({"target": "costs"}, "'costs' is not a sensitive column; did you mean 'cost'"),
        ({"model": "forest"}, "model must be a scikit-learn estimator, but it is str"),
        ({"model": RandomForestRegressor}, "model must be a scikit-learn estimator"),
        ({"model": forest, "target": "diagnosis"}, "has classes, so model must be a classifier"),
        ({"model": LogisticRegression()}, "'cost' must have 2 to 20 classes"),
    ):
        with pytest.raises(InputError, match=text):
            release.assess(**options, progress=False)


def test_what_a_release_was_made_from_does_not_leave_with_it(release):
    for other in (pickle.loads(pickle.dumps(release)), copy.deepcopy(release), copy.copy(release)):
        assert other._origin is None
        with pytest.raises(InputError, match="loaded or copied"):
            other.assess()
    assert b"Zaphod-7731-5" not in pickle.dumps(release)
    assert "Zaphod" not in repr(release) + repr(release._origin) + release._repr_html_()


def test_sensitive_values_that_nobody_else_has_are_counted(people, assessment):
    for name in ("cost", "diagnosis"):
        alone = people[name].value_counts()["count"].to_list().count(1)
        assert assessment.privacy[f"unique:{name}"].value == pytest.approx(alone / 600)
    assert assessment.privacy["unique:cost"].value > 0.9


def test_numbers_are_predicted_before_classes(people):
    settings = {**SETTINGS, "sensitive": ["diagnosis", "cost"], "n_releases": 0}
    release = shoal.anonymize(people, **settings, random_state=0)
    assert release.assess(progress=False).prediction.kept.target == "cost"


def test_people_with_several_rows_are_counted_once():
    cohort = shoal.datasets.load_cohort(300)[QI].with_row_index("person")
    visits = cohort[np.repeat(np.arange(300), np.arange(300) % 4 + 1)]
    visits = visits.with_columns(cost=pl.Series(np.random.default_rng(0).gamma(2, 100, len(visits)).round()))
    release = shoal.anonymize(visits, quasi_identifiers=QI, sensitive=["cost"], unit="person", k=5, random_state=0)
    found = release.assess(progress=False)
    assert found.about["people"] == 300
    assert found.about["rows"] == len(visits)
    alone = cohort.group_by(QI).len()["len"].to_list().count(1)
    assert found.privacy["alone"].value == pytest.approx(alone / 300)
    assert found.combinations[0].alone == alone
    assert sum(bar.people for bar in found.risk_bars if bar.attacker == "nearest") == 300


def test_columns_that_cannot_be_compared_are_told_of():
    table = shoal.datasets.load_cohort(100)[QI].with_columns(
        empty=pl.lit(None, dtype=pl.Float64), lists=pl.lit([1, 2]), cost=pl.Series([np.inf, *range(99)], strict=False)
    )
    release = shoal.anonymize(
        table, quasi_identifiers=QI, sensitive=["empty", "lists", "cost"], k=5, random_state=0, n_releases=0
    )
    found = release.assess(progress=False)
    assert [what for what, _ in found.refused] == [
        "column 'empty'",
        "column 'lists'",
        "column 'cost'",
        "attackers of a release",
        "prediction",
    ]
    assert found.prediction is None
    assert found.utility["joint_histogram"].value == 1.0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"quasi_identifiers": ["ages"]}, "None of the named columns|did you mean 'age'"),
        ({"quasi_identifiers": ["age", "name"]}, "released table has no column 'name'"),
        ({"quasi_identifiers": ["age"], "aligned": True, "head": 5}, "same people in the same rows.*600 and 5"),
        ({"quasi_identifiers": "age"}, r"write \['age'\]"),
        ({"quasi_identifiers": ["age"], "certificate": {"k": 5}}, "must be that of a release, but it has no 'bound'"),
    ],
)
def test_errors_say_what_to_do(people, release, options, text):
    options = dict(options)
    other = release.table.head(options.pop("head", 600))
    with pytest.raises(InputError, match=text):
        shoal.assess(people, other, **options, progress=False)


@pytest.mark.parametrize("n", [5, 7, 12, 30])
def test_small_tables_are_assessed_as_far_as_they_can_be(n):
    table = shoal.datasets.load_cohort(n)[[*QI, "cost"]]
    release = shoal.anonymize(table, quasi_identifiers=QI, sensitive=["cost"], k=3, random_state=0)
    found = release.assess(progress=False)
    assert found.utility["joint_histogram"].value == 1.0
    assert (found.prediction is None) == (n < 20)
    assert found.charts("public")


def test_levels_that_are_all_rare_leave_nothing_to_learn_from():
    table = pl.DataFrame({"town": [f"t{i}" for i in range(60)], "cost": np.arange(60.0)})
    options = {"quasi_identifiers": ["town"], "sensitive": ["cost"], "random_state": 0}
    release = shoal.anonymize(table, **options, max_risk=0.2)
    assert release.certificate["k"] == 5
    assert release.assess(progress=False).utility["joint_histogram"].value == 1.0


def test_scores_read_like_a_dict_and_print(assessment):
    assert isinstance(assessment.privacy, Scores)
    assert next(iter(assessment.privacy)) == "bound"
    text = str(assessment)
    assert "independent sample" in text
    assert "10.0 %" in text
    html = assessment._repr_html_()
    assert html.count("<svg") >= 2
    assert "What is kept" in html


def test_progress_goes_through_the_stages(release):
    seen = []
    release.assess(progress=lambda stage, share: seen.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in seen))
    assert stages == ["reading", "privacy", "utility", "learning", "columns"]
    assert all((stage, 1.0) in seen for stage in stages)


@pytest.mark.slow
def test_a_million_rows():
    rng = np.random.default_rng(0)
    cohort = shoal.datasets.load_cohort(1_000_000)[[*QI, "cost"]].with_columns(
        height=pl.Series(rng.normal(170, 9, 1_000_000).round(1))
    )
    release = shoal.anonymize(
        cohort, quasi_identifiers=[*QI, "height"], sensitive=["cost"], k=10, method="permute", random_state=0
    )
    found = release.assess(progress=False)
    assert found.utility["joint_histogram"].value == 1.0
    assert sum(bar.people for bar in found.risk_bars if bar.attacker == "optimal") == 1_000_000
    assert found.privacy["guessing"].value < 0.2  # he attacks some, among all
