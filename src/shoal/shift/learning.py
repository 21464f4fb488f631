"""Fitting a model for another population, and checking it there."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from shoal.errors import InputError, suggest
from shoal.schema import read_any
from shoal.shift.logistic import LogisticRatio
from shoal.shift.raking import RakedRatio
from shoal.shift.ratio import DensityRatio, Floats, SampleRatio, read_weights
from shoal.shift.weighting import need_weight_argument


def importance_weighted_fit(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_target: Any = None,
    *,
    ratio: DensityRatio | ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_target: ArrayLike | None = None,
) -> Any:
    """Fit an estimator on one population for another: every record counts as often as it would occur there.

    Parameters
    ----------
    estimator : a scikit-learn regressor, classifier or pipeline
        It is cloned. One that takes no sample_weight is refused; in a pipeline the last step is meant. A search inside
        fits with the weights, but chooses by scores of its own.
    X, y : the source's records, in any form the estimator takes, and their responses
    X_target : table or array, optional
        The target's records: columns of X, perhaps not all of them. A mapping is read as margins of the target.
    ratio : DensityRatio or array of shape (n,), optional
        How to weigh; default LogisticRatio(), RakedRatio() for margins. One that is fitted already is used as it is
        where no X_target is given. Or the weights themselves, such as those of TransferWeights.
    sample_weight, weight_target : arrays, default 1
        Survey weights of the source and of the target.

    Returns
    -------
    The fitted clone.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0]
    >>> importance_weighted_fit(LinearRegression(), X, y, ratio=[0, 1, 1]).predict([[3.0]]).round(6)
    array([7.])
    """
    weights = _combine_weights(X, X_target, ratio, sample_weight, weight_target)
    return fit_weighted(clone(estimator), X, y, weights)


def fit_weighted(estimator: Any, X: Any, y: ArrayLike, weights: Floats) -> Any:
    """Fit an estimator, not a clone, with weights scaled to mean 1."""
    argument = need_weight_argument(estimator)
    try:
        return estimator.fit(X, y, **{argument: weights / weights.mean()})
    except ValueError as error:
        if "could not convert" not in str(error):  # which goes on with a value of the data
            raise
    raise InputError(
        f"{type(estimator).__name__} needs numbers, but X has texts; begin with a transformer in a pipeline, or use "
        "shoal.market.make_cost_model."
    )


def _combine_weights(
    X: Any,
    X_target: Any,
    ratio: DensityRatio | ArrayLike | None,
    sample_weight: ArrayLike | None,
    weight_target: ArrayLike | None,
) -> Floats:
    """Return survey weight times density ratio of every source record."""
    omega = read_weights(sample_weight, X.shape[0] if hasattr(X, "shape") else len(X), "sample_weight")
    weights = omega * _find_ratio(X, X_target, ratio, omega, weight_target)
    if not weights.any():
        raise InputError("No record has any weight: sample_weight is 0 wherever the ratio is not.")
    return weights


def _find_ratio(
    X: Any,
    X_target: Any,
    ratio: DensityRatio | ArrayLike | None,
    omega: Floats,
    weight_target: ArrayLike | None,
) -> Floats:
    """Return the density ratio of every source record: as given, as fitted already, or fitted now."""
    if ratio is not None and not isinstance(ratio, DensityRatio):
        if X_target is not None:
            raise InputError("Where ratio is an array of weights, X_target has no use; leave it out.")
        return read_weights(ratio, len(omega), "ratio")
    if X_target is None:
        if ratio is None or not _is_fitted(ratio):
            raise InputError("X_target is needed to fit the ratio; pass it, or a ratio that is fitted already.")
        return ratio.predict(X)
    if isinstance(X_target, Mapping):
        if not isinstance(ratio, RakedRatio | None):
            raise InputError(
                f"X_target is a mapping of margins, which {type(ratio).__name__} does not take; use RakedRatio."
            )
        raked = RakedRatio() if ratio is None else clone(ratio)
        return raked.fit(X, X_target, weight_source=omega).weights_
    model = LogisticRatio() if ratio is None else clone(ratio)
    if not isinstance(model, SampleRatio):
        raise InputError("RakedRatio needs X_target to be a mapping of margins, such as {'sex': {'f': 51, 'm': 49}}.")
    source = take_columns(X, X_target)
    return model.fit(source, X_target, weight_source=omega, weight_target=weight_target).weights_


def take_columns(X: Any, X_target: Any) -> Any:
    """Return the columns of a table that another one has too, in its order; arrays as they are."""
    target = read_any(X_target, "X_target")
    if not (hasattr(X, "columns") or hasattr(X, "column_names")):
        return X
    source = read_any(X, "X")
    for name in target.columns:
        if name not in source.columns:
            raise InputError(f"X_target has the column {name!r}, which X has not{suggest(name, source.columns)}")
    return source.select(target.columns).to_native()


def _is_fitted(ratio: DensityRatio) -> bool:
    try:
        check_is_fitted(ratio, "weights_")
    except NotFittedError:
        return False
    return True


@dataclass(frozen=True)
class CrossValidation:
    """How well an estimator does on the target, from the source's records alone.

    Attributes
    ----------
    scores : array, one a fold
        Weighted: on the target.
    source_scores : array, one a fold
        The same models on the source: what would be reported without weights.
    predicted : array of shape (n,)
        Every record's prediction by the model that has not seen it.
    weights : array of shape (n,)
        Survey weight times density ratio, mean 1: for intervals, see shoal.utility.bootstrap.
    """

    scores: Floats
    source_scores: Floats
    predicted: NDArray[Any] = field(repr=False)
    weights: Floats = field(repr=False)

    @property
    def mean(self) -> float:
        """The mean score on the target."""
        return float(self.scores.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean, from the folds; a rough figure, as they share records."""
        return float(self.scores.std(ddof=1) / np.sqrt(len(self.scores)))


def importance_weighted_cv(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    X_target: Any = None,
    *,
    ratio: DensityRatio | ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weight_target: ArrayLike | None = None,
    scoring: str | Callable[..., float] | None = None,
    cv: Any = 5,
    weighted_fit: bool = True,
    random_state: int | None = 0,
) -> CrossValidation:
    """Cross-validate for another population: held-out records count by their weight (Sugiyama et al. 2007).

    The mean over the source of w(x) loss(x, y) is the mean over the target of loss(x, y), so that models can be
    compared for the target without a response from there. The ratio reads no response and is fitted once, on all
    records.

    Parameters
    ----------
    estimator, X, y, X_target, ratio, sample_weight, weight_target
        As in :func:`importance_weighted_fit`.
    scoring : name of a scikit-learn scorer, or metric(y, predicted, sample_weight=...), optional
        Default "r2" for regressors, "accuracy" for classifiers. One that takes no sample_weight is refused.
    cv : int or a scikit-learn splitter, default 5
        Folds that test every record once; a number means shuffled ones, stratified for classifiers.
    weighted_fit : bool, default True
        Whether the models are fitted with the weights too; they are always scored with them.
    random_state : int, default 0
        For shuffling.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 1))
    >>> y = X[:, 0] ** 2 + rng.normal(size=1000) / 10
    >>> found = importance_weighted_cv(LinearRegression(), X, y, rng.normal(1.0, 0.7, size=(500, 1)))
    >>> bool(found.mean > found.source_scores.mean())  # curved, but nearly a line where the target is
    True
    """
    weights = _combine_weights(X, X_target, ratio, sample_weight, weight_target)
    omega = read_weights(sample_weight, len(weights), "sample_weight")
    weights = weights / weights.mean()
    responses = np.asarray(y)
    if responses.shape != (len(weights),):
        raise InputError(f"y must have {len(weights)} values, one a record, but its shape is {responses.shape}.")
    splits = _split(cv, estimator, responses, random_state)
    score = _make_score(scoring or ("accuracy" if is_classifier(estimator) else "r2"))
    predicted = np.empty(len(weights), dtype=responses.dtype if is_classifier(estimator) else np.float64)
    on_target, on_source = [], []
    for train, test in splits:
        if not weights[test].any() or not weights[train].any():
            raise InputError("A fold has records of weight 0 only; use fewer folds, or another ratio.")
        model, rows = clone(estimator), take_rows(X, train)
        if not weighted_fit and sample_weight is None:
            model.fit(rows, responses[train])
        else:
            fit_weighted(model, rows, responses[train], (weights if weighted_fit else omega)[train])
        held_out = take_rows(X, test)
        predicted[test] = model.predict(held_out)
        on_target.append(score(model, held_out, responses[test], weights[test]))
        on_source.append(score(model, held_out, responses[test], omega[test]))
    return CrossValidation(np.array(on_target), np.array(on_source), predicted, weights)


def _split(cv: Any, estimator: Any, y: NDArray[Any], random_state: int | None) -> list[tuple[Any, Any]]:
    """Return the folds, having checked that they test every record once."""
    if isinstance(cv, Integral):
        folds = StratifiedKFold if is_classifier(estimator) else KFold
        if not 2 <= int(cv) <= len(y):
            raise InputError(f"cv={cv!r} must lie between 2 and the number of records, {len(y):,}.")
        cv = folds(int(cv), shuffle=True, random_state=random_state)
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(np.zeros(len(y)), y))
    tested = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(y))
    if (tested != 1).any():
        raise InputError("cv must test every record exactly once, as KFold does.")
    return splits


def _make_score(scoring: str | Callable[..., float]) -> Callable[[Any, Any, Any, Floats], float]:
    """Return a function of model, records, responses and weights."""
    if isinstance(scoring, str):
        try:
            scorer = get_scorer(scoring)
        except ValueError:
            raise InputError(f"scoring={scoring!r} is not the name of a scikit-learn scorer.") from None
        if "sample_weight" not in inspect.signature(scorer._score_func).parameters:  # noqa: SLF001
            raise InputError(f"scoring={scoring!r} takes no sample_weight, so that it would score on the source.")
        return lambda model, X, y, w: float(scorer(model, X, y, sample_weight=w))
    if hasattr(scoring, "_score_func"):  # made by make_scorer
        return lambda model, X, y, w: float(scoring(model, X, y, sample_weight=w))
    parameters = inspect.signature(scoring).parameters
    if "sample_weight" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise InputError("scoring must take sample_weight, or it would score on the source: metric(y, predicted, ...).")
    return lambda model, X, y, w: float(scoring(y, model.predict(X), sample_weight=w))


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return rows of a table, an array or a sparse matrix, in their own form."""
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals.stable.v2 as nw

        return nw.from_native(X, eager_only=True)[rows].to_native()
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]
