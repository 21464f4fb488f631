"""What a release keeps."""

from shoal.utility.fidelity import histogram_intersection
from shoal.utility.prediction import Measured, bootstrap, r_squared, relative_bias

__all__ = ["Measured", "bootstrap", "histogram_intersection", "r_squared", "relative_bias"]
