"""The attacker who learns from the release itself which sensitive values go with whom.

He is *not* bounded by 1/k: "the old patient is the expensive one" uses sensitive values, and the guarantee is about
quasi-identifiers alone. So he is measured, beside what he achieves on the raw table and on centroids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

from shoal.encoding import EncodedColumn, encode_table, positions
from shoal.errors import InputError
from shoal.grouping import find_clusters
from shoal.hiding import hide
from shoal.privacy.chances import hidden_columns
from shoal.privacy.classes import find_nearest
from shoal.privacy.findings import Finding, wilson
from shoal.privacy.linkage import Agreement, as_table, check_tolerance, length_of, match_nearest
from shoal.progress import Progress, Reporter
from shoal.randomness import make_generator
from shoal.settings import Settings

Floats = NDArray[np.float64]
Index = NDArray[np.int64]
_MOST = 20_000  # people in one attack
_CANDIDATES = 256  # released records that the attacker considers for each person
_REACHES = (
    0.001,
    0.05,
    0.2,
    0.5,
    1.0,
)  # how far a record may have moved, in standard deviations: the attacker tries all
_BALANCING = 20
_LEARNT = 100_000  # records from which he learns, at most
_MANY_LEVELS = 20


def guess_linkage(
    X: Any,
    X_released: Any,
    sensitive: Any,
    *,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    random_state: Any = None,
) -> Finding:
    """Attack as one who learns p(y | x) from the release and weighs the candidates by it.

    He knows everybody's quasi-identifiers and no sensitive value. From the released pairs he learns which values go
    with which quasi-identifiers, scores every record near a person by how well its sensitive values fit, lets every
    record have one owner and every person one record, and takes the best. How far records may have moved he does not
    know: the most successful of five beliefs counts. He is not bounded by 1/k.

    Parameters
    ----------
    X, X_released : tables or arrays of shape (n, d)
        Quasi-identifiers before and after, the same people in the same rows. Of more than 20,000 people so many are
        drawn at random, which makes the attack easier: they hide in a smaller crowd.
    sensitive : table or array of shape (n,) or (n, s)
        As released, aligned.
    kinds, random_state
        As in `shoal.anonymize`.

    Examples
    --------
    A sensitive value that the quasi-identifier determines gives people away, however they are permuted.

    >>> x = np.arange(60.0)[:, None]
    >>> swapped = x.reshape(20, 3)[:, [1, 2, 0]].reshape(60, 1)
    >>> guess_linkage(x, swapped, x[:, 0], random_state=0).rate > 1 / 3
    True
    """
    n = length_of(X, X_released)
    rng = make_generator(random_state)
    chosen = _sample(n, rng)
    both = [column.take(np.append(chosen, n + chosen)) for column in encode_table(X, kinds, X_released)]
    placed = positions(both, reference=len(chosen))
    values = [column.take(chosen) for column in _read_sensitive(sensitive, n)]
    return guess_owners(placed[: len(chosen)], placed[len(chosen) :], values, rng)


def _read_sensitive(sensitive: Any, n: int) -> list[EncodedColumn]:
    values = encode_table(as_table(sensitive))
    if len(values[0].codes) != n:
        raise InputError(f"sensitive must have {n} rows, as X has.")
    return values


def _sample(n: int, rng: np.random.Generator) -> Index:
    return np.arange(n) if n <= _MOST else np.sort(rng.choice(n, _MOST, replace=False))


def guess_owners(
    known: Floats,
    released: Floats,
    values: list[EncodedColumn],
    rng: np.random.Generator,
    people: Index | None = None,
) -> Finding:
    """Attack people at `known`, whose records are the same rows of `released` and `values`.

    people: those attacked, default all; whoever is not takes part with his record only.
    """
    people = np.arange(len(known)) if people is None else people
    known, n, seed = known[people], len(people), int(rng.integers(2**31))
    count = min(_CANDIDATES, len(released))
    # among equal points the candidates are a random choice
    hidden = rng.permutation(len(released))
    jitter = 1e-7 * rng.standard_normal(released.shape)
    parts = list(find_nearest((released + jitter)[hidden], known, count))
    near = hidden[np.concatenate([part[1] for part in parts])]
    squared = np.concatenate([part[2] for part in parts]) ** 2
    with threadpool_limits(1):  # the learner's threads wait for one another for minutes where cores are shared
        fit = sum((_log_fit(column, released, known, near, seed) for column in values), start=np.zeros(near.shape))
    best, reach = np.zeros(n), 0.0
    for trial in _REACHES:
        belief = _balance(-squared / (2 * trial**2) + fit, near, len(released))
        top = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-9)
        chance = (top & (near == people[:, None])).any(axis=1) / top.sum(axis=1)
        if chance.mean() > best.mean():
            best, reach = chance, trial
    rate = float(best.mean())
    reading = (
        f"An attacker who learns from the release which sensitive values go with whom finds {rate:.2%} of {n:,} "
        "people. Whoever uses sensitive values is not bound by 1/k."
    )
    return Finding("learnt p(y | x)", rate, wilson(rate, n), reading, {"reach": reach}, best)


def _log_fit(column: EncodedColumn, released: Floats, known: Floats, near: Index, seed: int) -> Floats:
    """Return log p(y_j | x_i) of every candidate j of person i, as learnt from the released pairs."""
    some = np.arange(len(released))[:: -(-len(released) // _LEARNT)]
    if column.numbers is None:
        levels = np.argsort(np.argsort(-np.bincount(column.codes), kind="stable"), kind="stable")[column.codes]
        levels = np.minimum(levels, _MANY_LEVELS - 1)
        if np.ptp(levels) == 0:
            return np.zeros(near.shape)
        model = HistGradientBoostingClassifier(max_iter=50, random_state=seed, early_stopping=False)
        odds = np.log(np.maximum(model.fit(released[some], levels[some]).predict_proba(known), 1e-6))
        place = np.searchsorted(model.classes_, levels)
        return odds[np.arange(len(known))[:, None], place[near]]
    present = np.where(column.missing, np.nanmedian(column.numbers), column.numbers)
    scores = ndtri((rankdata(present) - 0.5) / len(present))
    line = LinearRegression().fit(released[some], scores[some])
    rest = scores[some] - line.predict(released[some])
    trees = HistGradientBoostingRegressor(max_iter=100, random_state=seed, early_stopping=False)
    trees.fit(released[some], rest)
    spread = max(float(np.mean((rest - trees.predict(released[some])) ** 2)), 1e-6)
    expected = line.predict(known) + trees.predict(known)
    return -((scores[near] - expected[:, None]) ** 2) / (2 * spread)


def _balance(score: Floats, near: Index, n_records: int) -> Floats:
    """Return beliefs that add up to 1 over the owners of every record and over the records of every person."""
    belief = np.exp(score - score.max(axis=1, keepdims=True))
    belief = np.maximum(belief, 1e-300)
    for _ in range(_BALANCING):
        belief /= np.bincount(near.ravel(), weights=belief.ravel(), minlength=n_records)[near]
        belief /= belief.sum(axis=1, keepdims=True)
    return belief


@dataclass(frozen=True)
class Comparison:
    """What several attackers achieve on the raw table, on centroids and on a release of the same people.

    Attributes
    ----------
    findings : dict
        By table ("raw", "centroid", "release"), then by attacker.
    bound : float
        1/k: it binds the attacker who uses quasi-identifiers only.
    """

    findings: Mapping[str, Mapping[str, Finding]]
    bound: float

    @property
    def reading(self) -> str:
        """The result in one sentence."""
        guess, known = (self.findings["release"][name].rate for name in ("learns y", "knows y"))
        above = [name for name, rate in (("guesses", guess), ("knows", known)) if rate > self.bound]
        verdict = f"above 1/k for whoever {' or '.join(above)} sensitive values" if above else "below 1/k here"
        return (
            f"On the release an attacker who guesses sensitive values finds {guess:.2%} of the people and one who "
            f"knows them {known:.2%}: {verdict}; 1/k does not bind them."
        )

    def __str__(self) -> str:
        names = list(self.findings["release"])
        width = max(len(name) for name in names)
        lines = [" " * width + "".join(f"{table:>10}" for table in self.findings)]
        lines += [
            f"{name:<{width}}" + "".join(f"{found[name].rate:>10.4f}" for found in self.findings.values())
            for name in names
        ]
        return "\n".join([*lines, self.reading])


def compare_attackers(
    X: Any,
    sensitive: Any,
    *,
    k: int = 10,
    method: str = "gaussian",
    recovery: str | None = None,
    clustering: Any = "auto",
    loading: float = 1 / 3,
    tolerance: float = 0.05,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    random_state: Any = None,
    progress: bool | Progress | None = None,
) -> Comparison:
    """Release a table and attack it, beside the raw table and its centroids, with and without sensitive values.

    Attackers: "quasi-identifiers" takes the nearest match and is bound by 1/k on centroids and release; "knows y"
    knows the sensitive values up to `tolerance` (a share of the value) and takes the nearest match among the records
    that agree; "learns y" is `guess_linkage`. The last two are not bound by 1/k.

    Parameters
    ----------
    X : table or array of shape (n, d)
        Quasi-identifiers. Of more than 20,000 people so many are drawn at random.
    sensitive : table or array of shape (n,) or (n, s)
    tolerance : float, default 0.05
    k, method, recovery, clustering, loading, kinds, random_state, progress
        As in `shoal.anonymize`.

    Examples
    --------
    >>> cohort = __import__("shoal").datasets.load_cohort(600)
    >>> found = compare_attackers(
    ...     cohort[["sex", "age", "education", "income"]], cohort["cost"], k=5, random_state=0, progress=False)
    >>> found.findings["release"]["quasi-identifiers"].rate < 1 / 5 < found.findings["raw"]["knows y"].rate
    True
    """
    settings = Settings(k, method, recovery, clustering, 0.0, loading, "observed")
    settings.check()
    check_tolerance(tolerance)
    rng = make_generator(random_state)
    columns = encode_table(X, kinds)
    n = len(columns[0].codes)
    values = _read_sensitive(sensitive, n)
    chosen = _sample(n, rng)
    columns, values = ([column.take(chosen) for column in group] for group in (columns, values))
    agree = Agreement([column.followed_by(column) for column in values], len(chosen), tolerance)
    people = np.arange(len(chosen))
    findings = {}
    with Reporter(progress) as reporter:
        labels = find_clusters(positions(columns), settings, reporter)
        report = reporter.stage("attacks")
        for done, table in enumerate(("raw", "centroid", "release")):
            received = columns
            if table != "raw":
                way = replace(settings, method="centroid", recovery=None) if table == "centroid" else settings
                received = hidden_columns(columns, hide(columns, labels, way, rng, Reporter(progress=False)), people)
            both = [column.followed_by(after) for column, after in zip(columns, received, strict=True)]
            placed = positions(both, reference=len(people))
            known, released = placed[: len(people)], placed[len(people) :]
            found = [
                _finding("quasi-identifiers", match_nearest(known, released, people, None)),
                _finding("knows y", match_nearest(known, released, people, agree)),
                replace(guess_owners(known, released, values, rng), name="learns y"),
            ]
            findings[table] = {finding.name: finding for finding in found}
            report((done + 1) / 3)
    return Comparison(findings, 1 / k)


def _finding(name: str, chances: Floats) -> Finding:
    rate = float(chances.mean())
    reading = {
        "quasi-identifiers": f"The nearest match by quasi-identifiers finds {rate:.2%} of {len(chances):,} people.",
        "knows y": f"Whoever also knows the sensitive values finds {rate:.2%} of {len(chances):,} people.",
    }[name]
    return Finding(name, rate, wilson(rate, len(chances)), reading, {}, chances)
