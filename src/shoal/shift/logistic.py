"""The ratio as the odds of a classifier that tells target from source."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from shoal.coding import Coding, Kinds
from shoal.shift.domains import DomainClassifier
from shoal.shift.points import Points
from shoal.shift.ratio import Floats, SampleRatio


class LogisticRatio(SampleRatio):
    """Weigh by the odds with which a classifier takes a record for one of the target, sizes divided out.

    log w(x) = log P(target | x) / P(source | x) + log n_source / n_target (Bickel, Brueckner and Scheffer 2009), in log
    space throughout.

    Parameters
    ----------
    classifier : "linear", "quadratic" or a scikit-learn classifier, default "linear"
        "linear" is logistic regression on standardised numbers and dummies of nominal columns; "quadratic" adds squares
        and products. Any other classifier with predict_proba is given the same columns, and the records one by one:
        whether a record of weight 2 is to it as two records is its own affair.
    ridge : float, default 1e-6
        Penalty of "linear" and "quadratic" per unit of mean log loss: keeps the weights finite where the samples can be
        told apart without error.
    calibrate : bool, default True
        Correct the log-odds of another classifier on records it has not seen, and weigh the source by what is said of
        each record by a classifier that has not seen it. "linear" and "quadratic" need none of this.
    n_folds : int, default 5
        For calibration.
    kinds : mapping, optional
        Kinds of columns, as in :func:`shoal.anonymize`.
    max_weight : float, optional
        Cap the weights; those capped keep mean 1.

    Attributes
    ----------
    weights_ : array of shape (n_source,)
        Target over source, mean 1 over the source (in its record weights, if any: multiply by them to train).
    diagnostics_ : Diagnostics
        Outside the common support is what the classifier scores beyond every record of the other sample: what it cannot
        tell apart, it cannot see to be outside.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> source, target = rng.normal(0, 1, (5000, 1)), rng.normal(0.5, 1, (2000, 1))
    >>> ratio = LogisticRatio().fit(source, target)
    >>> bool(ratio.predict([[1.0]])[0] > 1 > ratio.predict([[-1.0]])[0])
    True
    """

    def __init__(
        self,
        classifier: Any = "linear",
        *,
        ridge: float = 1e-6,
        calibrate: bool = True,
        n_folds: int = 5,
        kinds: Kinds | None = None,
        max_weight: float | None = None,
    ) -> None:
        self.classifier = classifier
        self.ridge = ridge
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.kinds = kinds
        self.max_weight = max_weight

    def _read(
        self, source: nw.DataFrame[Any], target: nw.DataFrame[Any], weight_source: Floats, weight_target: Floats
    ) -> None:
        tables = {"X_source": source, "X_target": target}
        self._coding = Coding(tables, (weight_source, weight_target), self.kinds)
        self._products = self._coding.find_products(source[:1]) if self.classifier == "quadratic" else None
        self._points = Points.of([self._code(source), self._code(target)])
        self._solve(weight_source, weight_target)

    def _code(self, frame: nw.DataFrame[Any]) -> Floats:
        return self._coding.design(frame)

    def _solve(self, weight_source: Floats, weight_target: Floats) -> None:
        weights = weight_source, weight_target
        model = DomainClassifier(
            self.classifier,
            ridge=self.ridge,
            calibrate=self.calibrate,
            n_folds=self.n_folds,
            products=self._products,
        )
        self._model = model.fit(self._points, weights)
        judged = self._model.judge_records(self._points)
        logs = judged[:, 1] - judged[:, 0]
        ours, theirs = logs[: len(weight_source)], logs[len(weight_source) :]
        p, q = weight_source / weight_source.sum(), weight_target / weight_target.sum()
        self._source_logs = ours
        self._outside = float(p[ours < theirs[q > 0].min()].sum()), float(q[theirs > ours[p > 0].max()].sum())

    def _log_ratio(self, coded: Floats) -> Floats:
        logs = self._model.log_likelihoods(coded)
        return np.asarray(logs[:, 1] - logs[:, 0])
