"""Learning from one population for another: weights, and models fitted and checked with them."""

from shoal.shift.diagnostics import Diagnostics, ShiftWarning
from shoal.shift.empirical import EmpiricalRatio
from shoal.shift.learning import CrossValidation, importance_weighted_cv, importance_weighted_fit
from shoal.shift.logistic import LogisticRatio
from shoal.shift.neighbors import NeighborRatio
from shoal.shift.raking import RakedRatio
from shoal.shift.ratio import DensityRatio
from shoal.shift.transfer import TransferWeights

__all__ = [
    "CrossValidation",
    "DensityRatio",
    "Diagnostics",
    "EmpiricalRatio",
    "LogisticRatio",
    "NeighborRatio",
    "RakedRatio",
    "ShiftWarning",
    "TransferWeights",
    "importance_weighted_cv",
    "importance_weighted_fit",
]
