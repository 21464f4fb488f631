"""Whether an estimator takes sample weights, and under which name."""

from __future__ import annotations

import inspect
from typing import Any

import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from shoal.errors import InputError

_PASS_ON = (GridSearchCV, RandomizedSearchCV, TransformedTargetRegressor)
_ENSEMBLES = (VotingClassifier, VotingRegressor, StackingClassifier, StackingRegressor)
_INNER = ("estimator", "regressor", "classifier")  # where meta-estimators keep what they fit


def find_weight_argument(estimator: Any) -> str | None:
    """Return the argument of fit that takes record weights to the model, or None if they would not reach it.

    A pipeline hands "step__sample_weight" to its last step; a search or a transformed target hands what it gets to the
    estimator inside; an ensemble hands sample_weight to every one of its own. All of them must take it. Where
    scikit-learn's metadata routing is switched on it is "sample_weight" throughout, and scikit-learn itself refuses an
    estimator that has not asked for it.
    """
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return _through(find_weight_argument(last), f"{name}__")
    inner = [find_weight_argument(inside) for inside in _find_inner(estimator)]
    if None in inner:
        return None
    if isinstance(estimator, _PASS_ON):
        return _through(inner[0] if inner else "sample_weight", "")
    if any(argument != "sample_weight" for argument in inner):
        return None
    if isinstance(estimator, _ENSEMBLES):
        return "sample_weight"
    parameters = inspect.signature(estimator.fit).parameters if hasattr(estimator, "fit") else {}
    return "sample_weight" if "sample_weight" in parameters else None


def _through(inner: str | None, prefix: str) -> str | None:
    """Return the argument of an estimator whose inner one takes `inner`."""
    routed = sklearn.get_config()["enable_metadata_routing"]
    return None if inner is None else "sample_weight" if routed else prefix + inner


def need_weight_argument(estimator: Any) -> str:
    """Return the argument of fit that takes record weights, refusing an estimator that takes none."""
    argument = find_weight_argument(estimator)
    if argument is None:
        last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        raise InputError(
            f"{type(last).__name__} cannot be fitted with sample weights, so it cannot be fitted for another "
            "population; choose an estimator whose fit takes sample_weight, such as a linear model, a GLM or trees."
        )
    return argument


def _find_inner(estimator: Any) -> list[Any]:
    """Return the estimators that a meta-estimator fits."""
    several = getattr(estimator, "estimators", None)
    if several and all(isinstance(pair, tuple) for pair in several):
        last = getattr(estimator, "final_estimator", None)
        return [inside for _, inside in several if inside != "drop"] + ([] if last is None else [last])
    found = (getattr(estimator, name, None) for name in _INNER)
    return [inside for inside in found if inside is not None and hasattr(inside, "fit")][:1]
