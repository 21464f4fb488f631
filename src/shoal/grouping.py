"""Who hides with whom: clusters of people that meet what was asked, and that a vault may already know."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
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
    seal: Callable[[], object] = lambda: None  # keeps the clusters in the vault; called when nothing can fail any more


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
    if vault is None:
        labels, cost = _make_clusters(points, settings, requirements, reporter)
        return _check(labels, cost, settings, requirements)
    path, kept, frame, people = vault
    labels, keys = kept.recall(frame, people, settings.k)
    new, cost = labels < 0, {}
    if new.any():
        asked = [requirement.among(new) for requirement in requirements]
        fresh, cost = _make_clusters(points[new], settings, asked, reporter)
        labels[new] = fresh + (int(kept.labels.max()) + 1 if len(kept.labels) else 0)
    told = {"release": kept.releases + 1, "known": int((~new).sum()), "new": int(new.sum())}
    groups = _check(labels, cost, settings, requirements)
    return replace(groups, vault=told, seal=lambda: kept.seal(path, keys, labels))


def _check(labels: Index, cost: dict[str, Any], settings: Settings, requirements: Sequence[Requirement]) -> Grouping:
    dense = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    sizes = check_sizes(dense, settings.k)
    return Grouping(dense, sizes, [_describe(requirement, dense) for requirement in requirements], cost)


def _make_clusters(
    points: Floats, settings: Settings, requirements: Sequence[Requirement], reporter: Reporter
) -> tuple[Index, dict[str, Any]]:
    labels = find_clusters(points, settings, reporter)
    if not requirements:
        return labels, {}
    before = int(labels.max()) + 1
    report = reporter.stage("models")
    labels, how, loss = meet_requirements(points, labels, settings.k, requirements)
    report(1.0)
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
            f"clusters reach {reached:.4g}. Nothing is released. Where a vault fixes the clusters, ask for models in "
            "the first release."
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
