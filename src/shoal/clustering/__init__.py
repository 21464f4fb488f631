"""Who hides with whom: clusters of at least k records, as tight as possible."""

from shoal.clustering.kmember import KMemberClustering

__all__ = ["KMemberClustering"]
