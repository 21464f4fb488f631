"""Who hides with whom: clusters of people that meet what was asked, and that a vault may already know."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from shoal.clustering.diversity import NAMES, Requirement, meet_requirements
from shoal.clustering.kmember import KMemberClustering, check_sizes
from shoal.encoding import EncodedColumn, positions, standardise
from shoal.errors import CheckError, InputError
from shoal.people import People
from shoal.progress import Reporter
from shoal.settings import Settings
from shoal.vault import Vault

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Grouping:
    """The cluster of every person, 0, 1, ...; what the models asked for cost; what the vault was told."""

    labels: Index
    sizes: Index
    models: list[dict[str, Any]] = field(default_factory=list)
    cost: dict[str, Any] = field(default_factory=dict)
    vault: dict[str, int] | None = None


def group_people(
    points: Floats,
    settings: Settings,
    requirements: Sequence[Requirement],
    reporter: Reporter,
    vault: tuple[str, Vault, nw.DataFrame[Any], People] | None = None,
) -> Grouping:
    """Return clusters of at least k people that meet all requirements; with a vault, the ones it knows.

    The same table has the same clusters in every release: they need not be secret, but two releases whose clusters
    differ could be intersected.
    """
    cost: dict[str, Any] = {}
    told = None
    if vault is None:
        labels, cost = _make_clusters(points, settings, requirements, reporter)
    else:
        path, kept, frame, people = vault
        labels, keys = kept.recall(frame, people, settings.k)
        new = labels < 0
        if new.all():
            labels, cost = _make_clusters(points, settings, requirements, reporter)
        elif new.any():
            labels[new] = int(kept.labels.max()) + 1 + find_clusters(points[new], settings, reporter)
    dense = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    sizes = check_sizes(dense, settings.k)
    models = [_describe(requirement, dense) for requirement in requirements]
    if vault is not None:  # written before any release is: a release whose clusters were lost could not be repeated
        sealed = kept.seal(path, keys, labels)
        told = {"release": sealed.releases, "known": int((~new).sum()), "new": int(new.sum())}
    return Grouping(dense, sizes, models, cost, told)


def _make_clusters(
    points: Floats, settings: Settings, requirements: Sequence[Requirement], reporter: Reporter
) -> tuple[Index, dict[str, Any]]:
    labels = find_clusters(points, settings, reporter)
    if not requirements:
        return labels, {}
    before = int(labels.max()) + 1
    labels, how, loss = meet_requirements(points, labels, settings.k, requirements)
    after = int(labels.max()) + 1
    return labels, {
        "how": how,
        "clusters_without": before,
        "clusters_with": after,
        "information_loss_without": round(float(loss[0]), 4),
        "information_loss_with": round(float(loss[1]), 4),
    }


def _describe(requirement: Requirement, labels: Index) -> dict[str, Any]:
    """Return what a requirement reached for the certificate, refusing what it did not."""
    reached = requirement.worst(labels)
    if requirement.violation(np.array([reached]))[0] > 0:
        raise CheckError(
            f"{NAMES[requirement.model]} of {requirement.level:g} does not hold for column {requirement.column!r}: the "
            f"clusters reach {reached:.4g}. Nothing is released."
        )
    return {
        "model": NAMES[requirement.model],
        "column": requirement.column,
        "asked": requirement.level,
        "reached": round(reached, 6),
        "distance": ("ordered" if requirement.ordered else "equal") if requirement.model == "closeness" else None,
    }


def make_points(persons: list[EncodedColumn], people: People, response: Floats, settings: Settings) -> Floats:
    """Return people as points to be clustered: quasi-identifiers, the log weight, and the response if it counts."""
    parts = [positions(persons)]
    if people.weight is not None:
        parts.append(standardise(people.log_weight())[:, None])
    share = np.sqrt(settings.response_weight / max(response.shape[1], 1))
    parts += [share * standardise(y)[:, None] for y in response.T]
    return np.hstack(parts)


def find_clusters(points: Floats, settings: Settings, reporter: Reporter) -> Index:
    """Return the cluster of every point, 0, 1, ..., by the algorithm or estimator of the settings."""
    if isinstance(settings.clustering, str):
        report = reporter.stage("clustering")
        estimator = KMemberClustering(settings.k, algorithm=settings.algorithm, random_state=0, progress=report)
    else:
        own = settings.clustering
        estimator = clone(own) if isinstance(own, BaseEstimator) else own
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        labels = np.asarray(estimator.fit(points).labels_)
    if getattr(estimator, "interrupted_", False):  # whoever interrupts a release wants none
        raise KeyboardInterrupt
    if labels.shape != (len(points),) or labels.dtype.kind not in "iu":
        raise InputError(f"clustering gave labels of shape {labels.shape}, not {len(points)} whole numbers.")
    if (labels < 0).any():
        raise CheckError("The clustering left records without a cluster (label -1); nothing is released.")
    dense = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    check_sizes(dense, settings.k)
    return dense
