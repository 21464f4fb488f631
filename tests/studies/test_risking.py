"""Risk in the study: exact and simulated agree, class by class, and nobody is above the bound."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.studies.population import split_population
from shoal.studies.risking import measure_reidentification


@pytest.fixture(scope="module")
def found(people):
    return measure_reidentification(people, split_population(people, 0, 0), 5, 12, 40, np.random.default_rng(0))


def test_attackers_keep_to_the_bound(found):
    assert set(found["ways"]) == {
        "centroid", "resample", "gaussian cdf", "permute", "gaussian rank", "gaussian transport"
    }  # fmt: skip
    for way, attackers in found["ways"].items():
        for risk in attackers.values():
            assert 0 < risk["mean"] < risk["max"] <= 1 / 5 + 1e-12, way
            assert len(risk["by_class"]) == len(found["class_sizes"])
            assert np.average(risk["by_class"], weights=found["class_sizes"]) == pytest.approx(risk["mean"])
        assert attackers["nearest"]["exact"] == (way in ("centroid", "resample", "permute"))


@pytest.mark.parametrize("way", ["centroid", "resample", "gaussian cdf"])
def test_trials_agree_with_the_formula(found, way):
    exact, simulated = found["ways"][way]["nearest"], found["simulated"][way]
    error = np.hypot(simulated["standard_error"], exact["standard_error"])
    assert simulated["mean"] == pytest.approx(exact["mean"], abs=4 * error + 1e-12)
    assert np.corrcoef(exact["by_class"], simulated["by_class"])[0, 1] > (0.3 if way == "gaussian cdf" else 0.8)
