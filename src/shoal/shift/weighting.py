"""Whether an estimator takes sample weights, and under which name."""

from __future__ import annotations

import inspect
from typing import Any

import sklearn
from sklearn.pipeline import Pipeline

from shoal.errors import InputError

_INNER = ("estimator", "regressor", "classifier")  # where meta-estimators keep what they fit


def find_weight_argument(estimator: Any) -> str | None:
    """Return the argument of fit that takes record weights to the model, or None if they would not reach it.

    A pipeline hands "step__sample_weight" to its last step; a search, an ensemble or a transformed target hands what it
    gets to the estimators inside, all of which must take it. Where scikit-learn's metadata routing is switched on, it
    is always "sample_weight", and scikit-learn itself refuses an estimator that has not asked for it.
    """
    inner = _find_inner(estimator)
    if sklearn.get_config()["enable_metadata_routing"] and inner:
        return "sample_weight"
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        argument = find_weight_argument(last)
        return None if argument is None else f"{name}__{argument}"
    arguments = {find_weight_argument(inside) for inside in inner}
    if None in arguments or len(arguments) > 1:
        return None
    parameters = inspect.signature(estimator.fit).parameters if hasattr(estimator, "fit") else {}
    if "sample_weight" in parameters:
        return "sample_weight"
    passes_on = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return arguments.pop() if arguments and passes_on else None


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
    """Return the estimators that a pipeline ends in, or that a meta-estimator fits."""
    if isinstance(estimator, Pipeline):
        return [estimator.steps[-1][1]]
    several = getattr(estimator, "estimators", None)
    if several and all(isinstance(pair, tuple) for pair in several):
        return [inside for _, inside in several if inside != "drop"]
    found = (getattr(estimator, name, None) for name in _INNER)
    return [inside for inside in found if inside is not None and hasattr(inside, "fit")][:1]
