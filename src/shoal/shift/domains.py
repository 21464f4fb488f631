"""Where is a record from? A classifier of domains, read as the likelihood of a record in each of them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from shoal.coding import Codes, Floats
from shoal.errors import InputError
from shoal.shift.points import Points
from shoal.shift.weighting import find_weight_argument

SURE = 1e-5  # a classifier of another make is never believed to be surer than this
MOST_NUMBERS = 100_000_000  # in the design of a logistic regression: 0.8 GB
MANY_FEATURES = 300  # above this, Newton's method takes longer than a quasi-Newton one


class DomainClassifier:
    """Learn log p(x | domain), up to a term that all domains share, from weighted records of several domains.

    classifier: "linear" or "quadratic" for logistic regression, which sees the mass of every domain at every point; or
    a scikit-learn classifier with predict_proba, which sees the records one by one. Domains are given equal mass,
    whatever their size, by sample weights. A classifier that takes none is shown every record as often as it occurs,
    and the sizes of the domains are divided out of its odds.

    With calibrate=True the log-odds of a classifier of another make are corrected by a logistic regression on
    predictions for records that it has not seen (n_folds of them), and held_out_ is what these say of the records: a
    flexible classifier knows those it was shown by heart. products: pairs of columns, for "quadratic".
    """

    def __init__(
        self,
        classifier: Any,
        *,
        ridge: Any,
        calibrate: bool,
        n_folds: Any,
        products: tuple[Codes, Codes] | None = None,
    ) -> None:
        self.classifier = check_classifier(classifier)
        if not isinstance(ridge, Real) or not float(ridge) > 0:
            raise InputError(f"ridge={ridge!r} must be a number above 0.")
        if not isinstance(n_folds, Integral) or n_folds < 2:
            raise InputError(f"n_folds={n_folds!r} must be a whole number of at least 2.")
        self.ridge = float(ridge)
        self.calibrate = calibrate
        self.n_folds = int(n_folds)
        self.products: tuple[Codes, Codes] = products or (np.empty(0, np.int64), np.empty(0, np.int64))

    def fit(self, points: Points, weights: tuple[Floats, ...]) -> DomainClassifier:
        """Learn from the records of every domain and their weights."""
        masses = points.masses(weights)
        occurs = masses.sum(axis=1) > 0
        n_features = points.at.shape[1] + len(self.products[0])
        if n_features * len(points.at) > MOST_NUMBERS:
            raise InputError(
                f"classifier={self.classifier!r} needs {n_features:,} features for {len(points.at):,} different "
                "records, too many for the memory; use 'linear', pool levels, or compare fewer columns."
            )
        features = self._features(points.at)
        self.centre_, self.scale_ = _measure(features[occurs], masses[occurs])
        features = self._standardise(features)
        self.held_out_: Floats | None = None
        if isinstance(self.classifier, str):
            self.model_ = self._fit_logistic(features[occurs], masses[occurs])
            return self
        point, domain = np.concatenate(points.of_row), np.repeat(np.arange(len(weights)), [len(w) for w in weights])
        weight = np.concatenate(weights)
        order = np.lexsort((weight, domain, point))  # so that the order of rows cannot matter
        order = order[weight[order] > 0]
        records = features[point[order]], domain[order], weight[order]
        self.model_, self.prior_ = self._fit_classifier(*records)
        self.correction_ = None
        if self.calibrate:
            self.correction_, logs = self._fit_correction(*records)
            self.held_out_ = self.log_likelihoods(points.at)[point]
            self.held_out_[order] = logs
        return self

    def log_likelihoods(self, points: Floats) -> Floats:
        """Return log p(x | domain) up to a term of x alone, shape (n, n_domains)."""
        features = self._standardise(self._features(points))
        if isinstance(self.classifier, str):
            return _decide(self.model_, features)
        logs = _read_logs(self.model_, features) - self.prior_
        return logs if self.correction_ is None else _decide(self.correction_, logs)

    def judge_records(self, points: Points) -> Floats:
        """Return the same for the records it was fitted on, in order; where calibrated, by models that saw them not."""
        if self.held_out_ is not None:
            return self.held_out_
        return self.log_likelihoods(points.at)[np.concatenate(points.of_row)]

    def _features(self, points: Floats) -> Floats:
        i, j = self.products
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

    def _fit_classifier(self, features: Floats, domain: Codes, weight: Floats) -> tuple[Any, Floats]:
        """Return a fitted classifier and the log share of every domain in what it was shown."""
        totals = np.bincount(domain, weight)
        model = clone(self.classifier)
        argument = find_weight_argument(model)
        if argument is not None:
            balanced = weight / totals[domain] * len(domain) / len(totals)
            return model.fit(_or_constant(features), domain, **{argument: balanced}), np.zeros(len(totals))
        if (weight != np.rint(weight)).any():
            raise InputError(
                f"classifier={type(self.classifier).__name__} takes no sample_weight, but records have weights; choose "
                "one whose fit takes sample_weight, or leave the weights out."
            )
        rows = np.repeat(np.arange(len(domain)), weight.astype(np.int64))
        return model.fit(_or_constant(features)[rows], domain[rows]), np.log(totals / totals.sum())

    def _fit_correction(self, features: Floats, domain: Codes, weight: Floats) -> tuple[Any, Floats]:
        """Return a logistic regression from log probabilities of records held out to domains, and what it says."""
        sizes = np.bincount(domain)
        n_folds = min(self.n_folds, int(sizes.min()))
        if n_folds < 2:
            raise InputError("A sample of one record cannot be held out for calibration; say calibrate=False.")
        rng = np.random.default_rng(0)  # folds must not follow the order of the records, which are sorted
        fold = np.empty(len(domain), dtype=np.int64)
        for one, size in enumerate(sizes):
            fold[domain == one] = rng.permutation(np.arange(size) % n_folds)
        held_out = np.empty((len(domain), len(sizes)))
        for f in range(n_folds):
            train, test = fold != f, fold == f
            model, prior = self._fit_classifier(features[train], domain[train], weight[train])
            held_out[test] = _read_logs(model, features[test]) - prior
        masses = np.zeros((len(domain), len(sizes)))
        masses[np.arange(len(domain)), domain] = weight
        correction = self._fit_logistic(held_out, masses)
        return correction, _decide(correction, held_out)


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
