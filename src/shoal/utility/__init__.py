"""What a release keeps."""

from shoal.utility.dependence import correlation_difference, information_difference
from shoal.utility.fidelity import histogram_intersection
from shoal.utility.marginals import ks_distance, wasserstein_distance
from shoal.utility.prediction import Measured, bootstrap, r_squared, relative_bias
from shoal.utility.propensity import Propensity, propensity

__all__ = [
    "Measured",
    "Propensity",
    "bootstrap",
    "correlation_difference",
    "histogram_intersection",
    "information_difference",
    "ks_distance",
    "propensity",
    "r_squared",
    "relative_bias",
    "wasserstein_distance",
]
