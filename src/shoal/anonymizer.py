"""The whole pipeline: from a table of people to a release."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from shoal.choosing import choose_settings, find_response, read_k
from shoal.clustering.kmember import check_enough, check_sizes, read_points
from shoal.encoding import EncodedColumn, encode, forget_order, restore
from shoal.errors import CheckError, InputError
from shoal.grouping import Grouping, find_clusters, group_people, make_points
from shoal.hiding import Hidden, hide
from shoal.leaks import refuse_leaks
from shoal.people import People, find_people, read_weight
from shoal.privacy.risk import Risk, check_releases, draw_releases, measure_risk
from shoal.progress import Progress, Reporter
from shoal.protection import check_protection, describe_protection, protect_columns
from shoal.randomness import make_generator
from shoal.release import Origin, Release, make_certificate
from shoal.requirements import read_requirements
from shoal.schema import Schema, frame_of_array, name_columns, read_frame, read_schema
from shoal.settings import Settings
from shoal.utility.fidelity import intersect, shared_cells
from shoal.vault import open_vault

Floats = NDArray[np.float64]
Index = NDArray[np.int64]


def anonymize(
    table: Any,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    weight: str | None = None,
    unit: str | None = None,
    others: str | None = None,
    kinds: Mapping[str, str | Sequence[Any]] | None = None,
    k: int | None = None,
    max_risk: float | None = None,
    target: str | None = None,
    method: str | None = None,
    recovery: str | None = None,
    clustering: Any = "auto",
    response_weight: float = 0.0,
    loading: float | None = None,
    release_values: str = "observed",
    l_diversity: Any = None,
    t_closeness: Any = None,
    protect: Mapping[str, Mapping[str, float]] | None = None,
    vault: str | os.PathLike[str] | None = None,
    allow_leaks: Sequence[str] = (),
    n_releases: int | None = None,
    random_state: Any = None,
    progress: bool | Progress | None = None,
) -> Release:
    """Release a table about people: nobody can be picked out above 1/k, and the joint distribution is kept.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
        The same kind comes back.
    quasi_identifiers : list of str
        Columns by which a person could be recognised. They are re-assigned among people.
    sensitive : list of str, default none
        Columns that are released as they are, with their record.
    identifiers : list of str, default none
        Columns that never leave. A repeated value is an error unless `unit` says who is who.
    weight : str, default none
        A survey weight. It travels with the quasi-identifiers, not with the record.
    unit : str, default none
        The person, when a person has several rows: clusters then hold k persons. It never leaves.
    others : {"drop", "keep"}, default: every column must have a role
        What to do with the remaining columns; kept ones travel untouched with their record.
    kinds : dict, default: from the dtypes
        Overrides, such as {"zip": "nominal", "education": ["none", "school", "college"]}; "numeric", "ordinal",
        "nominal", "datetime", or the levels of an ordinal column in order.
    k : int, default 10
    max_risk : float, default none
        Instead of k: the highest chance that is allowed, such as 0.05. k is then the smallest whose bound 1/k meets it,
        and method and loading, unless given, are those with the best utility on these clusters (`shoal.frontier` says
        how); the certificate tells what was tried and why it was taken.
    target : str, default: the first sensitive column that can be predicted
        With max_risk: the sensitive column whose prediction counts as utility.
    method : {"gaussian", "permute", "resample", "centroid"}, default "gaussian"
        What a record receives: a draw from its cluster's Gaussian carried back onto the original rows; the row of
        another member of its cluster, each handed out once; or drawn with replacement; or the cluster's centre,
        which does not keep the distribution.
    recovery : {"transport", "rank", "cdf"}, default "transport"
        How Gaussian draws are carried back; an error with another method. "transport" and "rank" hand out the
        original rows, so every joint count is exact; "cdf" is the paper's, exact on average.
    clustering : {"auto", "greedy", "refined", "mdav", "optimal", "flow"} or estimator, default "auto"
        Which clusters are made (docs/clustering.md says how to choose). An estimator is cloned and fitted to the
        standardised columns; its `labels_` must leave no cluster under k.
    response_weight : float, default 0
        Weight of the sensitive columns in the clustering (w of the paper, which uses 1). Above 0 the clusters depend
        on sensitive values, which an attacker can use.
    loading : float, default 1/3
        Added to the variance of every standardised column in the Gaussian dither (alpha of the paper).
    release_values : {"observed", "smoothed"}, default "observed"
        "smoothed": draw continuous values near the observed ones instead of publishing them. Joint counts are then
        kept up to that smoothing only.
    l_diversity : number, ("entropy", number) or dict, default none
        Every cluster holds so many different values of each sensitive column, or an entropy of at least the log of
        the number; by column: {"diagnosis": 3, "cost": ("entropy", 2.5)}. Missing values do not count.
    t_closeness : number or dict, default none
        The earth mover's distance between a sensitive column inside a cluster and in the whole table is at most this,
        from 0 to 1; ranks are the distance of ordered columns. By column: {"cost": 0.1}.
    protect : dict, default none
        Change sensitive columns themselves: {"cost": {"noise": 0.1, "top": 0.01, "bottom": 0.01, "round": 100}}
        multiplies by noise of that relative standard deviation, replaces the largest and smallest shares by their
        means (noise and these keep the mean of the column), and rounds to multiples.
    vault : path, default none
        A private file, mode 0600, that keeps the clusters, so that a corrected or wider release of the same people
        reuses them. It is made by the first release.
    allow_leaks : list of str, default none
        Released columns that may give a quasi-identifier away.
    n_releases : int, default: from 20 for small tables to 2 for large ones
        Further releases that are drawn, and thrown away, to measure the attackers' risk where it has no formula
        (method="gaussian", smoothed values). 0 leaves it unmeasured, and the certificate says so.
    random_state : int or numpy.random.Generator, default None
        For tests and studies: the release is then marked as not for release. None draws from a cryptographic
        generator keyed by the operating system.
    progress : bool or callable, default None
        None shows a bar on a terminal after two seconds; a callable receives the stage and the share done.

    Returns
    -------
    Release

    Examples
    --------
    >>> import shoal
    >>> cohort = shoal.datasets.load_cohort(n=500)
    >>> release = shoal.anonymize(
    ...     cohort, quasi_identifiers=["sex", "age", "education", "income"], sensitive=["cost"], weight="weight",
    ...     others="drop", k=5)
    >>> print(release.certificate["guarantee"])
    From the quasi-identifiers alone, nobody's record can be picked out with a chance above 1/5.
    """
    settings = Settings(
        k=read_k(k, max_risk),
        method="gaussian" if method is None else method,
        recovery=recovery,
        clustering=clustering,
        response_weight=response_weight,
        loading=1 / 3 if loading is None else loading,
        release_values=release_values,
    )
    settings.check()
    if target is not None and max_risk is None:
        raise InputError(f"target={target!r} goes with max_risk only, where something is chosen.")
    frame = read_frame(table)
    schema = read_schema(
        frame,
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        identifiers=identifiers,
        weight=weight,
        unit=unit,
        others=others,
        kinds=kinds,
    )
    columns = [encode(frame[column.name], column) for column in schema.quasi_identifiers]
    settings.check_columns(columns)
    people = find_people(frame, schema, columns)
    check_enough(settings.k, people.number, "row" if unit is None else "person")
    rng = make_generator(random_state)
    steps, original = check_protection(protect, schema), frame
    frame = protect_columns(frame, schema, steps, people, settings.k, rng)
    leaks = refuse_leaks(frame, schema.names("sensitive", "kept", "weight"), columns, people.of_row, allow_leaks)
    response = _read_response(frame, schema, settings, people)
    requirements = read_requirements(frame, schema, people, l_diversity, t_closeness)
    persons = [column.take(people.first) for column in columns]
    n_releases = check_releases(n_releases, people.number)
    kept = None if vault is None else (str(vault), open_vault(vault, frame, schema), frame, people)

    with Reporter(progress) as reporter:
        points = make_points(persons, people, response, settings)
        groups = group_people(points, settings, requirements, reporter, kept)
        chosen = None
        if max_risk is not None:
            response_to_keep = find_response(frame, schema, people, target)
            fixed = {"method": method, "recovery": recovery, "loading": loading}
            settings, chosen = choose_settings(
                persons, groups.labels, response_to_keep, settings, fixed, max_risk, rng, reporter
            )
        hidden = hide(persons, groups.labels, settings, rng, reporter)
        order = rng.permutation(len(frame))
        released = _assemble(frame, schema, people, groups.labels, hidden, order)
        measured = _measure(frame, released, schema, people, columns, settings, order)
        risk = _measure_risk(persons, groups, settings, rng, n_releases, reporter)
    certificate = make_certificate(
        schema=schema,
        settings=settings,
        chosen=chosen,
        rows=len(frame),
        groups=groups,
        risk={name: found.describe() for name, found in risk.items()},
        measured=measured,
        smoothed=_smoothed(columns, settings),
        protected=describe_protection(steps),
        leaks_allowed=leaks,
        look_like_identifiers=_find_identifiers(frame, schema),
        seeded=random_state is not None,
    )
    origin = Origin(original, None if unit is None else people.of_row, order, risk)
    release = Release(_strip_metadata(released.to_native()), certificate, schema, origin)
    groups.seal()  # before the release leaves: if its clusters were lost, it could not be repeated
    return release


class Anonymizer(BaseEstimator):
    """Re-assign quasi-identifiers inside clusters of at least k: a study tool, in scikit-learn's style.

    `fit_transform` keeps the order of the rows, so its result is *not* a release (use `shoal.anonymize` for that).
    There is no `transform`: what a record receives depends on the others in the table.

    Parameters
    ----------
    k, method, recovery, clustering, response_weight, loading, release_values, kinds, random_state, progress
        As in `shoal.anonymize`. Every column of X is a quasi-identifier; y is the response in the clustering.

    Attributes
    ----------
    labels_ : array of shape (n,)
        Never publish these.
    cluster_sizes_ : array of shape (c,)
    n_clusters_ : int
    source_index_ : array of shape (n,)
        The row whose quasi-identifiers each record received (for "centroid": its own).
    sample_weight_ : array of shape (n,) or None
        The weights after the release: they travel with the quasi-identifiers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> hidden = Anonymizer(k=5, method="permute", random_state=0).fit_transform(X)
    >>> bool((np.sort(hidden, axis=0) == np.sort(X, axis=0)).all())
    True
    """

    def __init__(
        self,
        k: int = 10,
        *,
        method: str = "gaussian",
        recovery: str | None = None,
        clustering: Any = "auto",
        response_weight: float = 0.0,
        loading: float = 1 / 3,
        release_values: str = "observed",
        kinds: Mapping[str, str | Sequence[Any]] | None = None,
        random_state: Any = None,
        progress: bool | Progress | None = None,
    ) -> None:
        self.k = k
        self.method = method
        self.recovery = recovery
        self.clustering = clustering
        self.response_weight = response_weight
        self.loading = loading
        self.release_values = release_values
        self.kinds = kinds
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Cluster X and draw what every record receives."""
        self.fit_transform(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Any:
        """Return X with every row's quasi-identifiers re-assigned: the same kind of table, in the same order."""
        chosen = self.get_params(deep=False)
        settings = Settings(**{field.name: chosen[field.name] for field in fields(Settings)})
        settings.check()
        frame, is_array = self._read_input(X)
        schema = read_schema(frame, quasi_identifiers=frame.columns, kinds=self.kinds)
        columns = [encode(frame[column.name], column) for column in schema.columns]
        check_enough(self.k, len(frame))
        settings.check_columns(columns)
        weights = None if sample_weight is None else read_weight(np.asarray(sample_weight), len(frame), "sample_weight")
        people = People.one_row_each(len(frame), weights)
        response = _read_target(y, len(frame)) if settings.response_weight > 0 else np.empty((len(frame), 0))
        rng = make_generator(self.random_state)
        with Reporter(self.progress) as reporter:
            self.labels_ = find_clusters(make_points(columns, people, response, settings), settings, reporter)
            self.cluster_sizes_ = check_sizes(self.labels_, self.k)
            hidden = hide(columns, self.labels_, settings, rng, reporter)
        self.n_clusters_ = len(self.cluster_sizes_)
        self.source_index_ = hidden.source
        self.sample_weight_ = hidden.weights(weights, self.labels_)
        series = [hidden.restore(frame[c.name], i, np.arange(len(frame))) for i, c in enumerate(columns)]
        if is_array:
            return np.column_stack([s.to_numpy().astype(np.float64) for s in series])
        hidden_frame = nw.maybe_reset_index(frame).with_columns(*(nw.maybe_reset_index(s) for s in series)).to_native()
        if hasattr(X, "index") and hasattr(X, "columns"):  # pandas: the caller's own labels
            hidden_frame.index, hidden_frame.columns = X.index, X.columns
        return hidden_frame

    def _read_input(self, X: Any) -> tuple[nw.DataFrame[Any], bool]:
        if hasattr(X, "columns") or hasattr(X, "column_names"):
            validate_data(self, X, skip_check_array=True)
            return read_frame(name_columns(X)), False
        return frame_of_array(read_points(self, X, ensure_all_finite="allow-nan")), True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


def _read_response(frame: nw.DataFrame[Any], schema: Schema, settings: Settings, people: People) -> Floats:
    """Return the numeric and ordinal sensitive columns that take part in the clustering, a mean for every person."""
    if settings.response_weight == 0:
        return np.empty((people.number, 0))
    used = [c for c in schema.columns if c.role == "sensitive" and c.kind in ("numeric", "ordinal")]
    if not used:
        raise InputError("response_weight > 0 needs a numeric or ordinal sensitive column; set it to 0.")
    encoded = [encode(frame[column.name], column).numbers for column in used]
    return np.column_stack([people.average(y) for y in encoded if y is not None])


def _read_target(y: ArrayLike | None, n: int) -> Floats:
    if y is None:
        raise InputError("response_weight > 0 needs y.")
    try:
        response = np.asarray(y, dtype=np.float64)
    except (ValueError, TypeError):
        raise InputError(f"y must be {n} numbers, or as many rows of numbers.") from None
    if response.shape[:1] != (n,) or response.ndim > 2:
        raise InputError(f"y must be {n} numbers, or as many rows of numbers, but its shape is {response.shape}.")
    response = response.reshape(n, -1)
    if np.isinf(response).any():
        raise InputError("y has infinite values.")
    return response


def _assemble(
    frame: nw.DataFrame[Any], schema: Schema, people: People, labels: Index, hidden: Hidden, order: Index
) -> nw.DataFrame[Any]:
    """Return the released rows in this order, columns in the table's."""
    persons = people.of_row[order]
    released = schema.names("quasi_identifier", "sensitive", "kept", "weight")
    table = nw.maybe_reset_index(frame.select(released)[order])
    fresh = [
        hidden.restore(frame[column.name][people.first], i, persons)
        for i, column in enumerate(schema.quasi_identifiers)
    ]
    name = schema.name("weight")
    if name is not None:
        means = hidden.weights(people.weight, labels) if hidden.averaged else None
        weights = frame[name][people.first]
        at = None if means is None else means[persons]
        fresh.append(restore(weights, hidden.source[persons], at, promote=hidden.averaged))
    table = table.with_columns(*(nw.maybe_reset_index(series) for series in fresh))
    return table.with_columns(*(forget_order(table[name]) for name in released))


def _measure(
    frame: nw.DataFrame[Any],
    released: nw.DataFrame[Any],
    schema: Schema,
    people: People,
    columns: list[EncodedColumn],
    settings: Settings,
    order: Index,
) -> dict[str, Any]:
    """Measure on the released table itself what it keeps of the joint distribution; refuse it if it should be all."""
    coarse = _smoothed(columns, settings)
    before, after = shared_cells(frame, released, [column.name for column in columns], coarse)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    of_people = intersect(before[people.first], after[place[people.first]])
    if settings.is_exact and not coarse and of_people != 1.0:
        raise CheckError("The released table does not have the joint counts of the original; nothing is released.")
    measured: dict[str, Any] = {"histogram_intersection": intersect(before, after)}
    if schema.name("unit") is not None:
        measured["histogram_intersection_of_people"] = of_people
    weight = schema.name("weight")
    if weight is not None:
        old, new = (table[weight].to_numpy().astype(np.float64) for table in (frame, released))
        measured["weighted_histogram_intersection"] = round(intersect(before, after, old, new), 12)
    measured["cells"] = "continuous columns in quantile bins" if coarse else "exact values"
    return measured


def _measure_risk(
    persons: list[EncodedColumn],
    groups: Grouping,
    settings: Settings,
    rng: np.random.Generator,
    n_releases: int,
    reporter: Reporter,
) -> dict[str, Risk]:
    """Measure both attackers on releases drawn anew, so that the figures tell nothing about this one.

    Refuse the release if anybody is above the bound, which the theory excludes.
    """
    formula = settings.way in ("centroid", "permute", "resample") and not _smoothed(persons, settings)
    if not n_releases and not formula:
        return {}
    report = reporter.stage("attackers")
    drawn = draw_releases(persons, groups.labels, settings, rng, max(n_releases, 1), report)
    risk = measure_risk(persons, groups.labels, settings, drawn, sample=rng)
    if any(found.max > 1 / settings.k + 1e-9 for found in risk.values()):
        raise CheckError("A record could be picked out with a chance above 1/k; nothing is released.")
    return risk


def _smoothed(columns: list[EncodedColumn], settings: Settings) -> list[str]:
    return [c.name for c in columns if settings.release_values == "smoothed" and c.is_continuous]


def _find_identifiers(frame: nw.DataFrame[Any], schema: Schema) -> list[str]:
    """Return kept text columns that are different in nearly every row, as names are."""
    texts = [name for name in schema.names("kept") if frame[name].dtype == nw.String]
    return [name for name in texts if len(frame) > 1 and frame[name].n_unique() > 0.9 * len(frame)]


def _strip_metadata(table: Any) -> Any:
    """Remove notes that travel with a table and may speak of columns that stay at home."""
    if hasattr(table, "attrs"):  # pandas
        table.attrs = {}
        table.columns.name = None
    if hasattr(table, "replace_schema_metadata"):  # pyarrow
        import pyarrow

        table = table.cast(pyarrow.schema([field.remove_metadata() for field in table.schema]))
    return table
