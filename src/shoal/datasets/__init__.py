"""Data to try things on."""

from shoal.datasets.cohort import load_cohort

__all__ = ["load_cohort"]
