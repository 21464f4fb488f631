"""Market risk: what a new population would cost, from members at hand."""

from shoal.market.assessment import MarketRiskAssessment
from shoal.market.costs import COST_MODELS, SmearedLogRegressor, TableCoder, TwoPartRegressor, make_cost_model
from shoal.market.findings import MarketRisk, SegmentCost

__all__ = [
    "COST_MODELS",
    "MarketRisk",
    "MarketRiskAssessment",
    "SegmentCost",
    "SmearedLogRegressor",
    "TableCoder",
    "TwoPartRegressor",
    "make_cost_model",
]
