"""Data to try things on: built-in people who do not exist, survey files, and margins of markets."""

from shoal.datasets.california import RATING_AREAS, enrollees_by_age, rating_area
from shoal.datasets.classroom import load_students
from shoal.datasets.cohort import load_cohort
from shoal.datasets.lending import load_borrowers
from shoal.datasets.meps import read_meps

__all__ = [
    "RATING_AREAS",
    "enrollees_by_age",
    "load_borrowers",
    "load_cohort",
    "load_students",
    "rating_area",
    "read_meps",
]
