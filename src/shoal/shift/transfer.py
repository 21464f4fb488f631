"""Learning one task with the help of others: weights that make the records of all tasks stand for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from shoal.coding import Coding, Kinds
from shoal.encoding import is_missing
from shoal.errors import InputError, suggest
from shoal.schema import read_any
from shoal.shift.diagnostics import Diagnostics
from shoal.shift.domains import DomainClassifier
from shoal.shift.empirical import EmpiricalRatio
from shoal.shift.points import Points
from shoal.shift.ratio import Floats, SampleRatio, read_weights

_RESPONSE = "response"


class TransferWeights(BaseEstimator):
    """Weigh the records of m tasks so that, together, they stand for the test population of one task.

    w(x, y | t) = p(t | x, y) / p(t) * q(x | t) / p(x | t): the first factor makes use of the records of all tasks for
    task t (Bickel, Sawade and Scheffer 2009), the second is the covariate shift between training and test of that task.

    Parameters
    ----------
    classifier : "linear", "quadratic" or a scikit-learn classifier, default "quadratic"
        Tells tasks apart by columns and response. Where the response depends linearly on the columns, with normal
        errors and in every task differently, "quadratic" holds the true ratio.
    ratio : DensityRatio, optional
        For the second factor, default EmpiricalRatio(); fitted anew for every task that has a target.
    ridge, calibrate, n_folds, kinds
        As in :class:`LogisticRatio`; in kinds, the response is named "response".

    Attributes
    ----------
    tasks_ : array of shape (m,)
    weights_ : array of shape (n, m)
        A column for every task, of mean 1 over all records (in their sample weights, if any: multiply by them to
        train).
    diagnostics_ : dict from task to Diagnostics
    ratios_ : dict from task to the fitted ratio of its second factor

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> task = np.repeat(["a", "b"], [3000, 1000])
    >>> X = rng.normal(task == "b", 1.0)[:, None]
    >>> y = X[:, 0] + rng.normal(size=4000)
    >>> transfer = TransferWeights().fit(X, y, task)
    >>> transfer.weights_.shape, transfer.weights_.mean(axis=0).round(6).tolist()
    ((4000, 2), [1.0, 1.0])
    """

    def __init__(
        self,
        classifier: Any = "quadratic",
        *,
        ratio: Any = None,
        ridge: float = 1e-6,
        calibrate: bool = True,
        n_folds: int = 5,
        kinds: Kinds | None = None,
    ) -> None:
        self.classifier = classifier
        self.ratio = ratio
        self.ridge = ridge
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.kinds = kinds

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        task: ArrayLike,
        X_target: Mapping[Any, Any] | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        weight_target: Mapping[Any, ArrayLike] | None = None,
    ) -> Self:
        """Learn the weights of every task.

        Parameters
        ----------
        X : table or array of shape (n, d), the training records of all tasks
        y : array of shape (n,), numbers or classes
        task : array of shape (n,), which task a record is from
        X_target : mapping from a task to a table of its test population, optional
            A task without one has the same population in training and test: its second factor is 1.
        sample_weight : array of shape (n,), default 1
        weight_target : mapping from a task to the weights of its test records, default 1
        """
        frame = read_any(X, "X")
        if _RESPONSE in frame.columns:
            raise InputError(f"X has a column named {_RESPONSE!r}; rename it.")
        omega = read_weights(sample_weight, len(frame), "sample_weight")
        names, of_row = _read_tasks(task, len(frame), omega)
        for what, mapping in (("X_target", X_target), ("weight_target", weight_target)):
            if not isinstance(mapping, Mapping | None):
                raise InputError(f"{what} must map tasks to what they have, such as {{'a': ...}}.")
        if not isinstance(self.ratio, SampleRatio | None):
            raise InputError("ratio must be an EmpiricalRatio, LogisticRatio or NeighborRatio.")
        targets, target_weights = dict(X_target or {}), dict(weight_target or {})
        for what, given in (("X_target", targets), ("weight_target", target_weights)):
            for name in given:
                if name not in names.tolist():
                    raise InputError(f"{what} names the task {name!r}{suggest(name, names.tolist())}")
        logs = self._compare_tasks(frame, np.asarray(y), of_row, omega, len(names))
        self.ratios_ = {}
        kinds = {name: kind for name, kind in (self.kinds or {}).items() if name != _RESPONSE}
        self.tasks_ = names
        for t, name in enumerate(names.tolist()):
            if name not in targets:
                continue
            rows = np.flatnonzero(of_row == t)
            ratio = EmpiricalRatio(kinds=kinds) if self.ratio is None else clone(self.ratio)
            own = frame[rows].to_native()
            self.ratios_[name] = ratio.fit(
                own, targets[name], weight_source=omega[rows], weight_target=target_weights.get(name)
            )
            with np.errstate(divide="ignore"):
                logs[:, t] += np.log(ratio.predict(frame.to_native()))
        share = omega / omega.sum()
        scale = logsumexp(logs, axis=0, b=share[:, None])
        self.weights_ = np.exp(logs - scale)
        self.diagnostics_ = {name: self._diagnose(name, t, share) for t, name in enumerate(names.tolist())}
        return self

    def weights_of(self, task: Any) -> Floats:
        """Return the weights of all records for one task, shape (n,)."""
        check_is_fitted(self, "weights_")
        tasks = self.tasks_.tolist()
        if task not in tasks:
            raise InputError(f"task={task!r} is not known{suggest(task, tasks)}")
        return np.asarray(self.weights_[:, tasks.index(task)])

    def _compare_tasks(
        self, frame: nw.DataFrame[Any], y: NDArray[Any], of_row: NDArray[np.int64], omega: Floats, n_tasks: int
    ) -> Floats:
        """Return log p(t | x, y) - log p(t) of every record, shape (n, m)."""
        if y.shape != (len(frame),):
            raise InputError(f"y must have {len(frame)} values, one for every record, but its shape is {y.shape}.")
        if any(is_missing(value) for value in y.tolist()):
            raise InputError("y has missing values; every record needs a response.")
        try:
            response = nw.new_series(_RESPONSE, y.tolist(), backend=frame.implementation)
        except TypeError:
            raise InputError("y must be numbers or classes of one type.") from None
        together = frame.with_columns(response)
        coding = Coding({"X and y": together}, [omega], self.kinds)
        products = coding.find_products(together[:1]) if self.classifier == "quadratic" else None
        samples = [np.flatnonzero(of_row == t) for t in range(n_tasks)]
        design = coding.design(together)
        points = Points.of([design[rows] for rows in samples])
        classifier = DomainClassifier(
            self.classifier, ridge=self.ridge, calibrate=self.calibrate, n_folds=self.n_folds, products=products
        )
        logs = classifier.fit(points, tuple(omega[rows] for rows in samples)).judge_records(points)
        prior = np.bincount(of_row, omega) / omega.sum()
        found = np.empty((len(frame), n_tasks))
        found[np.concatenate(samples)] = logs - logsumexp(logs, axis=1, keepdims=True, b=prior)
        return found

    def _diagnose(self, name: Any, t: int, share: Floats) -> Diagnostics:
        ratio = self.ratios_.get(name)
        found = Diagnostics.of(
            share,
            self.weights_[:, t],
            clipped=0.0 if ratio is None else ratio.diagnostics_.clipped_mass,
            outside=(
                float(share[self.weights_[:, t] == 0].sum()),
                0.0 if ratio is None else ratio.diagnostics_.target_outside,
            ),
        )
        found.warn(f"TransferWeights, task {name!r}")
        return found


def _read_tasks(task: ArrayLike, n: int, omega: Floats) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the tasks, sorted, and the number of every record's task."""
    given = np.asarray(task)
    if given.shape != (n,):
        raise InputError(f"task must have {n} values, one for every record, but its shape is {given.shape}.")
    values = given.tolist()
    if any(is_missing(value) for value in values):
        raise InputError("task has missing values; every record needs a task.")
    names = sorted(set(values), key=lambda name: (str(type(name)), name))
    code = {name: t for t, name in enumerate(names)}
    of_row = np.array([code[value] for value in values])
    if len(names) < 2:
        raise InputError("task names one task only; transfer needs at least two.")
    mass = np.bincount(of_row, omega)
    if not mass.all():
        raise InputError("A task has records of weight 0 only.")
    return np.array(names, dtype=object), of_row
