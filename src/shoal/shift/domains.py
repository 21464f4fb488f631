"""Where is a record from? A classifier of domains, read as the likelihood of a record in each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from shoal.coding import Floats
from shoal.errors import InputError
from shoal.shift.weighting import find_weight_argument

SURE = 1e-5  # a classifier of another make is never believed to be surer than this
MANY_FEATURES = 300  # above this, Newton's method takes longer than a quasi-Newton one


class DomainClassifier:
    """Learn log p(x | domain), up to a term that all domains share, from the mass of every domain at points.

    classifier: "linear" or "quadratic" for logistic regression, or a scikit-learn classifier with predict_proba.
    Domains are given equal mass, whatever their size, by sample weights. A classifier that takes none is shown every
    record as often as it occurs, and the sizes of the domains are divided out of its odds.

    With calibrate=True the log-odds of a classifier of another make are corrected by a logistic regression on
    predictions for points it has not seen (n_folds of them, equal records in one fold).
    """

    def __init__(self, classifier: Any, *, ridge: float, calibrate: bool, n_folds: int) -> None:
        self.classifier = check_classifier(classifier)
        self.ridge, self.calibrate, self.n_folds = ridge, calibrate, n_folds

    def fit(self, points: Floats, masses: Floats) -> DomainClassifier:
        """Learn from points, shape (m, p), and the mass of every domain there, shape (m, n_domains)."""
        features = self._features(points)
        self.centre_, self.scale_ = _measure(features, masses)
        features = self._standardise(features)
        self.correction_ = None
        if isinstance(self.classifier, str):
            self.model_, self.prior_ = self._fit_logistic(features, masses), np.zeros(masses.shape[1])
            return self
        if self.calibrate:
            held_out = np.empty(masses.shape)
            fold = np.arange(len(points)) % self.n_folds  # points are sorted: every fold covers the whole space
            for f in range(self.n_folds):
                model, prior = self._fit_classifier(features[fold != f], masses[fold != f])
                held_out[fold == f] = _read_logs(model, features[fold == f]) - prior
            self.correction_ = self._fit_logistic(held_out, masses)
        self.model_, self.prior_ = self._fit_classifier(features, masses)
        return self

    def log_likelihoods(self, points: Floats) -> Floats:
        """Return log p(x | domain) up to a term of x alone, shape (n, n_domains)."""
        features = self._standardise(self._features(points))
        if isinstance(self.classifier, str):
            return _decide(self.model_, features)
        logs = _read_logs(self.model_, features) - self.prior_
        return logs if self.correction_ is None else _decide(self.correction_, logs)

    def _features(self, points: Floats) -> Floats:
        if self.classifier != "quadratic":
            return points
        i, j = np.triu_indices(points.shape[1])
        return np.hstack([points, points[:, i] * points[:, j]])

    def _standardise(self, features: Floats) -> Floats:
        used = self.scale_ > 0
        return (features[:, used] - self.centre_[used]) / self.scale_[used]

    def _fit_logistic(self, features: Floats, masses: Floats) -> Any:
        """Minimise the mean log loss plus ridge / 2 |coefficients|^2, every domain having equal mass."""
        balanced = masses / masses.sum(axis=0) / masses.shape[1]
        point, domain = np.nonzero(balanced)
        solver = "newton-cholesky" if features.shape[1] <= MANY_FEATURES else "lbfgs"
        model = LogisticRegression(C=1 / (self.ridge * len(point)), solver=solver, tol=1e-8, max_iter=1000)
        weight = balanced[point, domain] * len(point)
        return model.fit(_or_constant(features)[point], domain, sample_weight=weight)

    def _fit_classifier(self, features: Floats, masses: Floats) -> tuple[Any, Floats]:
        """Return a fitted classifier and the log share of every domain in what it was shown."""
        totals = masses.sum(axis=0)
        point, domain = np.nonzero(masses)
        model = clone(self.classifier)
        argument = find_weight_argument(model)
        if argument is not None:
            weight = masses[point, domain] / totals[domain] * len(point) / len(totals)
            return model.fit(_or_constant(features)[point], domain, **{argument: weight}), np.zeros(len(totals))
        counts = masses[point, domain]
        if (counts != np.rint(counts)).any():
            raise InputError(
                f"classifier={type(self.classifier).__name__} takes no sample_weight, but records have weights; choose "
                "one whose fit takes sample_weight, or leave the weights out."
            )
        rows = np.repeat(np.arange(len(point)), counts.astype(np.int64))
        return model.fit(_or_constant(features)[point[rows]], domain[rows]), np.log(totals / totals.sum())


def check_classifier(classifier: Any) -> Any:
    """Return the classifier, refusing what is none."""
    if isinstance(classifier, str):
        if classifier not in ("linear", "quadratic"):
            raise InputError(f"classifier={classifier!r} is not known; say 'linear', 'quadratic' or pass a classifier.")
    elif not isinstance(classifier, BaseEstimator) or not hasattr(classifier, "predict_proba"):
        raise InputError(
            f"classifier must be 'linear', 'quadratic' or a scikit-learn classifier with predict_proba, but it is "
            f"{type(classifier).__name__}."
        )
    return classifier


def _or_constant(features: Floats) -> Floats:
    return features if features.shape[1] else np.zeros((len(features), 1))


def _measure(features: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of every feature, domains having equal mass; 0 for a constant one."""
    share = (masses / masses.sum(axis=0)).mean(axis=1)
    centre = share @ features
    scale = np.sqrt(share @ (features - centre) ** 2)
    return centre, np.where(scale > 1e-12 * (1 + np.abs(centre)), scale, 0.0)


def _decide(model: Any, features: Floats) -> Floats:
    """Return the scores of a logistic regression, one column a domain: log-odds, never through probabilities."""
    scores = model.decision_function(_or_constant(features))
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores


def _read_logs(model: Any, features: Floats) -> Floats:
    """Return the log probabilities of a classifier; those of a logistic regression are not rounded to 0 or 1."""
    last = model[-1] if isinstance(model, Pipeline) else model
    if isinstance(last, LogisticRegression):
        return _decide(model, features)
    return np.log(np.clip(model.predict_proba(_or_constant(features)), SURE, 1.0))
