"""Data to try things on: a built-in cohort, survey files, and margins of markets."""

from shoal.datasets.california import RATING_AREAS, enrollees_by_age, rating_area
from shoal.datasets.cohort import load_cohort
from shoal.datasets.meps import read_meps

__all__ = ["RATING_AREAS", "enrollees_by_age", "load_cohort", "rating_area", "read_meps"]
