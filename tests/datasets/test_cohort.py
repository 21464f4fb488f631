from __future__ import annotations

import numpy as np
import pytest

from shoal.datasets import load_cohort
from shoal.errors import InputError


@pytest.fixture(scope="module")
def cohort():
    return load_cohort(200_000, random_state=1)


def shares(codes, n):
    return np.bincount(codes, minlength=n) / len(codes)


def test_margins_and_costs_agree_with_the_survey(cohort, meps):
    cost, real = cohort["cost"].to_numpy(), meps["exp_tot"].to_numpy()
    assert (cost == 0).mean() == pytest.approx((real == 0).mean(), rel=0.03)
    assert cost.mean() == pytest.approx(real.mean(), rel=0.04)
    assert np.quantile(cost, 0.99) == pytest.approx(np.quantile(real, 0.99), rel=0.05)
    assert np.median(cost) == pytest.approx(np.median(real), rel=0.08)
    group, real_group = (
        cohort["age_group"].to_physical().to_numpy(),
        np.digitize(meps["age"], [25, 35, 45, 55, 65, 75, 85]),
    )
    np.testing.assert_allclose(shares(group, 8), shares(real_group, 8), rtol=0.05, atol=0.002)
    by_age = [cost[group == g].mean() / real[real_group == g].mean() for g in range(8)]
    np.testing.assert_allclose(by_age, 1.0, atol=0.08)
    assert (cohort["sex"] == "female").mean() == pytest.approx(meps["female"].mean(), rel=0.02)
    assert cohort["age"].mean() == pytest.approx(meps["age"].mean(), rel=0.02)
    np.testing.assert_allclose(shares(cohort["education"].to_physical(), 5), shares(meps["educ5"], 5), rtol=0.04)
    np.testing.assert_allclose(shares(cohort["income"].to_physical(), 5), shares(meps["povcat"] - 1, 5), rtol=0.04)
    assert cohort["weight"].mean() == pytest.approx(meps["wtdper"].mean(), rel=0.05)
    weighted = np.average(cost, weights=cohort["weight"]), np.average(real, weights=meps["wtdper"])
    assert weighted[0] == pytest.approx(weighted[1], rel=0.05)


def test_figures_written_down_hold_without_the_survey(cohort):
    cost = cohort["cost"].to_numpy()
    assert (cost == 0).mean() == pytest.approx(0.1774, rel=0.03)
    assert cost.mean() == pytest.approx(3685, rel=0.04)
    old = cohort["age"].to_numpy() >= 75
    assert cost[old].mean() > 5 * cost[cohort["age"].to_numpy() < 25].mean()


def test_nobody_of_the_survey_is_in_it(cohort, meps):
    """Exact weights are fingerprints in the survey; the cohort must hold none beyond chance to the cent."""
    real = np.round(meps["wtdper"].to_numpy(), 2)
    shared = np.isin(cohort["weight"].to_numpy(), real).mean()
    by_chance = np.isin(cohort["weight"].to_numpy() + 0.37, real).mean()  # the same weights, moved off by cents
    assert shared < by_chance + 0.003


def test_reproducible_and_checked():
    assert load_cohort(50, random_state=3).equals(load_cohort(50, random_state=3))
    assert not load_cohort(50, random_state=3).equals(load_cohort(50, random_state=4))
    assert len(load_cohort(1)) == 1
    with pytest.raises(InputError, match="n=0"):
        load_cohort(0)
