"""Noise by cluster: what a record becomes depends on its cluster only, never on itself."""

from shoal.dither.cells import draw_cells
from shoal.dither.centroid import cluster_means, modal_members, nearest_members
from shoal.dither.gaussian import GaussianDither
from shoal.dither.resampling import draw_members, permute_members

__all__ = [
    "GaussianDither",
    "cluster_means",
    "draw_cells",
    "draw_members",
    "modal_members",
    "nearest_members",
    "permute_members",
]
