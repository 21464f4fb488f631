"""What an attack or a measurement returns: a number, its interval, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri


@dataclass(frozen=True)
class Finding:
    """A share of people or records, with a 95 % interval and a sentence that reads it.

    Attributes
    ----------
    name : str
    rate : float
    interval : tuple of float
        Wilson's, seeing the people as a sample of a larger population.
    reading : str
    details : dict
        Further numbers, by name.
    per_record : array or None
        The chance of every person attacked, where the finding is an attack.
    """

    name: str
    rate: float
    interval: tuple[float, float]
    reading: str
    details: Mapping[str, Any] = field(default_factory=dict)
    per_record: NDArray[np.float64] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.reading


def wilson(share: float, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval for a share observed among n.

    Examples
    --------
    >>> [round(end, 4) for end in wilson(0.0, 100)]
    [0.0, 0.037]
    """
    z = float(ndtri(0.5 + confidence / 2))
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(max(share * (1 - share), 0.0) / n + z * z / (4 * n * n)))
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))
