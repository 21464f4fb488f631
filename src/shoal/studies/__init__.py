"""Studies: the paper's experiments as code, beside its own numbers."""

from shoal.studies.claims import Claim
from shoal.studies.study import MarketRiskStudy, market_risk

__all__ = ["Claim", "MarketRiskStudy", "market_risk"]
