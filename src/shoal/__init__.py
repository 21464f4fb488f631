"""Release a table about people: nobody can be picked out above 1/k, and the joint distribution is kept.

>>> import shoal
>>> cohort = shoal.datasets.load_cohort(n=1000)
>>> release = shoal.anonymize(
...     cohort, quasi_identifiers=["sex", "age", "education", "income"], sensitive=["cost"], weight="weight",
...     others="drop", k=10)
>>> release.certificate["measured"]["histogram_intersection"]
1.0
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal import bundle as bundle
    from shoal import clustering, datasets, market, privacy, recovery, shift, utility
    from shoal import io as io
    from shoal import studies as studies
    from shoal.anonymizer import Anonymizer, anonymize
    from shoal.assessment import assess
    from shoal.errors import CheckError as CheckError
    from shoal.errors import FileError as FileError
    from shoal.errors import InputError as InputError
    from shoal.errors import LeakError as LeakError
    from shoal.errors import ShoalError
    from shoal.inspection import inspect
    from shoal.release import Release
    from shoal.tradeoff import frontier

__version__ = "0.1.0"

# Imported when first used: `import shoal` stays fast, and pays for no compiler.
_HOME = {
    "Anonymizer": "shoal.anonymizer",
    "anonymize": "shoal.anonymizer",
    "assess": "shoal.assessment",
    "frontier": "shoal.tradeoff",
    "inspect": "shoal.inspection",
    "Release": "shoal.release",
    "ShoalError": "shoal.errors",
    "InputError": "shoal.errors",
    "FileError": "shoal.errors",
    "LeakError": "shoal.errors",
    "CheckError": "shoal.errors",
}
_ROOMS = (
    "bundle", "clustering", "datasets", "dither", "io", "market", "privacy", "recovery", "shift", "studies", "utility"
)  # fmt: skip

__all__ = [
    "Anonymizer",
    "Release",
    "ShoalError",
    "anonymize",
    "assess",
    "clustering",
    "datasets",
    "frontier",
    "inspect",
    "market",
    "privacy",
    "recovery",
    "shift",
    "utility",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"shoal.{name}")
    raise AttributeError(f"module 'shoal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
