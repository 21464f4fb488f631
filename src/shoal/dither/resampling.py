"""Resampling inside clusters, with and without replacement."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]


def draw_members(labels: Index, rng: np.random.Generator, wanted: Index | None = None) -> Index:
    """Return for every record the index of a random member of its cluster, drawn with replacement.

    Every member has the same odds. With `wanted`, draw a member of each wanted cluster instead.

    Examples
    --------
    >>> labels = np.array([0, 0, 1, 1, 1])
    >>> members = draw_members(labels, np.random.default_rng(0))
    >>> bool((labels[members] == labels).all())
    True
    """
    wanted = labels if wanted is None else wanted
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(labels, kind="stable")
    return order[starts[wanted] + rng.integers(0, sizes[wanted])]


def permute_members(labels: Index, rng: np.random.Generator) -> Index:
    """Return for every record the index of a member of its cluster, so that each member is handed out once.

    Examples
    --------
    >>> members = permute_members(np.array([0, 1, 0, 1]), np.random.default_rng(0))
    >>> sorted(members.tolist())
    [0, 1, 2, 3]
    """
    members = np.empty(len(labels), dtype=np.int64)
    members[np.argsort(labels, kind="stable")] = np.lexsort((rng.random(len(labels)), labels))
    return members
