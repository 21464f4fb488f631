"""What a release keeps."""

from shoal.utility.fidelity import histogram_intersection

__all__ = ["histogram_intersection"]
