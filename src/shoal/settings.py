"""What the caller chose, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

from shoal.clustering.kmember import ALGORITHMS, check_k
from shoal.encoding import EncodedColumn
from shoal.errors import InputError, suggest

METHODS = ("centroid", "resample", "permute", "gaussian")
RECOVERIES = ("transport", "rank", "cdf")
_LARGEST = 1e6  # of a weight or variance, on standardised columns


@dataclass(frozen=True)
class Settings:
    """What the caller chose."""

    k: int
    method: str
    recovery: str | None
    clustering: Any
    response_weight: float
    loading: float
    release_values: str

    def check(self) -> None:
        """Refuse what is not known or does not go together."""
        check_k(self.k)
        for name, options in (("method", METHODS), ("release_values", ("observed", "smoothed"))):
            if getattr(self, name) not in options:
                raise InputError(f"{name}={getattr(self, name)!r} is not known{suggest(getattr(self, name), options)}")
        if self.recovery is not None and self.method != "gaussian":
            raise InputError(f"recovery={self.recovery!r} goes with method='gaussian' only, not with {self.method!r}.")
        if self.recovery is not None and self.recovery not in RECOVERIES:
            raise InputError(f"recovery={self.recovery!r} is not known{suggest(self.recovery, RECOVERIES)}")
        if isinstance(self.clustering, str) and self.clustering not in ALGORITHMS:
            raise InputError(f"clustering={self.clustering!r} is not known{suggest(self.clustering, ALGORITHMS)}")
        if not isinstance(self.clustering, str) and not hasattr(self.clustering, "fit"):
            raise InputError("clustering must be the name of an algorithm or an estimator with fit and labels_.")
        if self.release_values == "smoothed" and self.method == "centroid":
            raise InputError("release_values='smoothed' does not go with method='centroid', which releases means.")
        for name, sign in (("response_weight", "non-negative"), ("loading", "positive")):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= float(value) <= _LARGEST or (value == 0 and sign == "positive"):
                raise InputError(f"{name}={value!r} must be a {sign} number, at most {_LARGEST:g}.")

    def check_columns(self, columns: list[EncodedColumn]) -> None:
        """Refuse to smooth columns that cannot hold fresh numbers."""
        for column in columns if self.release_values == "smoothed" else ():
            if column.is_continuous and not column.holds_numbers:
                raise InputError(
                    f"release_values='smoothed' needs a dtype of numbers or dates, but {column.name!r} has another."
                )

    @property
    def algorithm(self) -> str:
        """The clustering in use, by name."""
        return self.clustering if isinstance(self.clustering, str) else type(self.clustering).__name__

    @property
    def way(self) -> str:
        """The recovery in use, or the method where there is none."""
        return (self.recovery or "transport") if self.method == "gaussian" else self.method

    @property
    def is_exact(self) -> bool:
        """Whether every original row is handed out exactly once."""
        return self.way in ("permute", "rank", "transport")

    def describe(self) -> dict[str, Any]:
        """Return the settings for the certificate."""
        gaussian = self.method == "gaussian"
        return {
            "k": int(self.k),
            "method": self.method,
            "recovery": self.way if gaussian else None,
            "clustering": self.algorithm,
            "response_weight": float(self.response_weight),
            "loading": float(self.loading) if gaussian else None,
            "release_values": self.release_values,
        }
