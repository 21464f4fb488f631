"""Models of cost: skewed, with many zeros, and to be right on the whole. All of them take record weights."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression, TweedieRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from shoal.coding import Coding, Floats, Kinds
from shoal.errors import InputError, suggest
from shoal.schema import read_any
from shoal.shift.weighting import need_weight_argument

COST_MODELS = ("additive", "log", "two-part", "gamma", "tweedie", "multiplicative")


class TableCoder(TransformerMixin, BaseEstimator):
    """Turn a table into the columns of an additive model: dummies for levels, or numbers.

    Parameters
    ----------
    coding : "dummy" or "numeric", default "dummy"
        "dummy": every level of a column has a coefficient of its own; columns with more than 32 distinct numbers are
        cut into n_bins quantile bins. "numeric": columns with an order are standardised numbers, one coefficient each,
        and only nominal ones have dummies. A level that was not there in fitting counts as the average person.
    n_bins : int, default 10
    kinds : mapping, optional
        Kinds of columns, as in :func:`shoal.anonymize`.

    Examples
    --------
    >>> TableCoder().fit([[1.0], [2.0], [2.0]]).transform([[1.0], [2.0], [5.0]]).round(3).ravel().tolist()
    [0.667, -0.333, 0.0]
    """

    def __init__(
        self, coding: Literal["dummy", "numeric"] = "dummy", *, n_bins: int = 10, kinds: Kinds | None = None
    ) -> None:
        self.coding = coding
        self.n_bins = n_bins
        self.kinds = kinds

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  as scikit-learn wants it
        """Learn the levels and scales of every column."""
        if self.coding not in ("dummy", "numeric"):
            raise InputError(f"coding={self.coding!r} is not known; say 'dummy' or 'numeric'.")
        frame = read_any(X, "X")
        self._coding = Coding({"X": frame}, [np.ones(len(frame))], self.kinds, self.n_bins)
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        return self

    def transform(self, X: Any) -> Floats:
        """Return the columns of the model, shape (n, p)."""
        check_is_fitted(self, "n_features_in_")
        design = self._coding.design(read_any(X, "X", self.n_features_in_), dummies=self.coding == "dummy")
        return design if design.shape[1] else np.zeros((len(design), 1))  # a constant table has no effect


class SmearedLogRegressor(RegressorMixin, BaseEstimator):
    """Fit the log of the response, and predict its mean: Duan's smearing estimate.

    E[y | x] = exp(f(x)) * mean of exp(residuals), in the records' weights. Without it predictions of skewed costs are
    far too low. Right where the residuals' distribution does not depend on x.

    Parameters
    ----------
    regressor : scikit-learn regressor, default LinearRegression()
    offset : float, default 0
        Added before the log, taken off after it. 0 needs responses above 0. An offset lets zeros in, but where there
        are many of them smearing goes wrong by far: use a two-part model.

    Attributes
    ----------
    regressor_ : the fitted regressor of log(y + offset)
    smearing_ : float

    Examples
    --------
    >>> SmearedLogRegressor().fit([[0.0], [0.0]], [1.0, 3.0]).predict([[0.0]]).round(6).tolist()
    [2.0]
    """

    def __init__(self, regressor: Any = None, *, offset: float = 0.0) -> None:
        self.regressor = regressor
        self.offset = offset

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the regressor on log responses."""
        X, y = validate_data(self, X, y, y_numeric=True)
        weight = _check_sample_weight(sample_weight, X)
        if weight.any():  # a record without weight must not spoil the mean of the residuals
            X, y, weight = X[weight > 0], y[weight > 0], weight[weight > 0]
        if not (y + self.offset > 0).all():
            raise InputError(f"Responses must be above {0.0 - self.offset:g} to take logs; use a two-part model.")
        logs = np.log(y + self.offset)
        model = LinearRegression() if self.regressor is None else clone(self.regressor)
        self.regressor_ = model.fit(X, logs, **{need_weight_argument(model): weight})
        self.smearing_ = float(np.average(np.exp(logs - self.regressor_.predict(X)), weights=weight))
        return self

    def predict(self, X: Any) -> Floats:
        """Return the expected response."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        return np.exp(self.regressor_.predict(X)) * self.smearing_ - self.offset


class TwoPartRegressor(RegressorMixin, BaseEstimator):
    """Predict whether there is any cost, and how much if there is: E[y | x] = P(y > 0 | x) E[y | y > 0, x].

    Parameters
    ----------
    classifier : scikit-learn classifier with predict_proba, default logistic regression with hardly any penalty
    regressor : scikit-learn regressor of the responses above 0, default SmearedLogRegressor()

    Attributes
    ----------
    classifier_, regressor_ : the fitted parts; None where all responses are above 0, or none is

    Examples
    --------
    >>> TwoPartRegressor().fit([[0.0]] * 4, [0.0, 0.0, 1.0, 3.0]).predict([[0.0]]).round(3).tolist()
    [1.0]
    """

    def __init__(self, classifier: Any = None, regressor: Any = None) -> None:
        self.classifier = classifier
        self.regressor = regressor

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit both parts."""
        X, y = validate_data(self, X, y, y_numeric=True)
        weight = _check_sample_weight(sample_weight, X)
        if (y < 0).any():
            raise InputError("Responses must not be negative in a two-part model.")
        spends = y > 0
        paid = spends & (weight > 0)  # a part without any weight has nothing to be fitted to
        self.classifier_ = self.regressor_ = None
        if paid.any() and weight[~spends].any():
            usual = LogisticRegression(C=1e6, solver="newton-cholesky", tol=1e-8, max_iter=1000)
            classifier = usual if self.classifier is None else self.classifier
            self.classifier_ = _fit(clone(classifier), X, spends, weight)
        if paid.any():
            regressor = SmearedLogRegressor() if self.regressor is None else self.regressor
            self.regressor_ = _fit(clone(regressor), X[paid], y[paid], weight[paid])
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Return the expected response."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        if self.regressor_ is None:
            return np.zeros(X.shape[0])
        amount = np.asarray(self.regressor_.predict(X))
        return amount if self.classifier_ is None else amount * self.classifier_.predict_proba(X)[:, 1]


def _fit(model: Any, X: Any, y: NDArray[Any], weight: Floats) -> Any:
    return model.fit(X, y, **{need_weight_argument(model): weight})


def make_cost_model(
    name: str = "additive",
    coding: Literal["dummy", "numeric"] = "dummy",
    *,
    kinds: Kinds | None = None,
    n_bins: int = 10,
) -> Pipeline:
    """Return a model of cost for tables of any kind, as a scikit-learn pipeline that takes sample weights.

    Parameters
    ----------
    name : str
        "additive"        a sum of effects, by least squares: the paper's model
        "log"             a sum of effects on log cost, with smearing; for costs above 0
        "two-part"        any cost or none (logistic), and how much (log, with smearing)
        "gamma"           two-part, the amount by a gamma GLM with log link
        "tweedie"         compound Poisson and gamma GLM (power 1.5, log link): zeros and amounts in one
        "multiplicative"  a product of effects by quasi-Poisson: the totals of every level are met exactly
    coding : "dummy" or "numeric", default "dummy"
        An effect for every level, or one slope for every column with an order.
    kinds, n_bins
        As in :class:`TableCoder`.

    Examples
    --------
    >>> import shoal
    >>> people = shoal.datasets.load_cohort(n=500)
    >>> model = make_cost_model("two-part").fit(people[["sex", "age_group"]], people["cost"])
    >>> model.predict(people[["sex", "age_group"]]).shape
    (500,)
    """
    glm = {"solver": "newton-cholesky", "alpha": 1e-7, "max_iter": 1000, "link": "log"}
    models = {
        "additive": LinearRegression(),
        "log": SmearedLogRegressor(),
        "two-part": TwoPartRegressor(),
        "gamma": TwoPartRegressor(regressor=TweedieRegressor(power=2, **glm)),
        "tweedie": TweedieRegressor(power=1.5, **glm),
        "multiplicative": TweedieRegressor(power=1, **glm),
    }
    if name not in models:
        raise InputError(f"name={name!r} is not a cost model{suggest(name, COST_MODELS)}")
    return make_pipeline(TableCoder(coding, n_bins=n_bins, kinds=kinds), models[name])
