from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import shoal
from shoal import Anonymizer
from shoal.clustering import KMemberClustering


def test_releases_of_one_table_have_the_same_clusters(rng):
    """Clusters {1, 2}, {3, 4} in one release and {1, 3}, {2, 4} in another would single everybody out."""
    X = rng.standard_normal((400, 3))
    one, other = (Anonymizer(k=5).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, other.labels_)
    assert (one.source_index_ != other.source_index_).any()


@pytest.mark.parametrize("clustering", ["refined", KMemberClustering(5, algorithm="refined")])
def test_an_interrupted_release_is_none(clustering):
    def interrupt(stage, share):
        raise KeyboardInterrupt

    if not isinstance(clustering, str):
        clustering.set_params(progress=lambda share: interrupt("", share) if share > 0.1 else None)
    people = shoal.datasets.load_cohort(300)
    with warnings.catch_warnings(action="error", category=ConvergenceWarning), pytest.raises(KeyboardInterrupt):
        shoal.anonymize(
            people,
            quasi_identifiers=["sex", "age", "education", "income"],
            sensitive=["cost"],
            others="drop",
            k=5,
            clustering=clustering,
            progress=lambda stage, share: interrupt(stage, share) if stage == "clustering" and share > 0.1 else None,
        )
