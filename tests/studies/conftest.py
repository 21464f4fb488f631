"""A small population with everything that the study needs of a survey."""

from __future__ import annotations

import pytest

from shoal.datasets import load_cohort
from shoal.datasets.meps import read_survey
from shoal.studies.population import make_population


@pytest.fixture(scope="package")
def people():
    return make_population(load_cohort(1600), "a small cohort", synthetic=True)


@pytest.fixture(scope="package")
def survey(meps_path):
    found = read_survey(meps_path)
    return make_population(found.table, found.source)
