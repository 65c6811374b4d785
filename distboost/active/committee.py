"""The committee of a query by committee: a classifier, trained on the rows taught so far."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError

from distboost.active.ledger import Ledger
from distboost.active.pool import Pool
from distboost.data.labels import SCALARS
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.fitting import learn_more
from distboost.estimators.parameters import deciding_parameters
from distboost.estimators.subclasses import adjusted, check_methods
from distboost.inputs.base import NearInput
from distboost.runtime.choose import IN_PROCESS

EXTRA_TREES = "extra-trees"  # the name of scikit-learn's randomised trees in logs

# Limits on the number of values (rows times features) of the taught rows. Up to the first, one thread trains: more threads would
# wait for each other. Up to the second, this process trains: a cluster would only add its round trips.
ONE_THREAD_VALUES, IN_PROCESS_VALUES = 2**18, 2**23

_RUN_PARAMETERS = {"n_jobs", "verbose"}  # of scikit-learn's classifiers


def default_committee() -> Any:
    """Return the committee that needs the fewest labels: extremely randomised trees."""
    return ExtraTreesClassifier(n_estimators=100)


def check_committee(estimator: Any) -> None:
    """Raise DataError unless the estimator can be trained on the labels taught so far alone."""
    if not isinstance(estimator, BoostingClassifier):
        missing = [name for name in ("fit", "predict_proba", "get_params") if not hasattr(estimator, name)]
        if isinstance(estimator, type) or missing:
            raise DataError(
                f"the estimator is {estimator!r:.100}, expected a classifier with {' and '.join(missing) or 'parameters'}: an "
                "instance of scikit-learn's ``ExtraTreesClassifier``, or of ``GAMBLEClassifier``, for example."
            )
        return
    check_methods(estimator, "a committee", "Derive from the estimator without them.")
    if estimator.early_stopping_rounds is not None:
        raise DataError(
            f"the estimator has ``early_stopping_rounds={estimator.early_stopping_rounds}``, but a committee has no "
            "``eval_set``. Set it to None."
        )
    if estimator.validation_fraction is not None:
        raise DataError(
            f"the estimator has ``validation_fraction={estimator.validation_fraction}``, but a committee learns from all labels. "
            "Set it to None."
        )


def description_of(estimator: Any) -> dict[str, Any]:
    """Return what decides what a classifier learns: the name of its algorithm and its parameters, as JSON values.

    Parameters that JSON does not have are texts.
    """
    if isinstance(estimator, BoostingClassifier):
        return {"algorithm": estimator.algorithm_name, "parameters": deciding_parameters(estimator)}
    kind = type(estimator)
    known = kind is ExtraTreesClassifier
    parameters = {
        name: value if value is None or type(value) in SCALARS else repr(value)
        for name, value in estimator.get_params().items()
        if name not in _RUN_PARAMETERS and not (known and name == "random_state" and value is None)
    }
    return {
        "algorithm": EXTRA_TREES if known else f"{kind.__module__}.{kind.__qualname__}",
        "parameters": parameters,
    }


class CommitteeTrainer:
    """Trains a classifier when it is asked for and rows were taught since the last training.

    Parameters
    ----------
    estimator : classifier
        The committee is a clone of this estimator, which itself is never fitted.
    home : BoostingClassifier
        Its parameters say where rows are read.
    pool : Pool
    ledger : Ledger
        The record of the rows taught. It also records each run of a committee that grows.
    warm_start : bool
        Whether the committee keeps its rounds and learns more of them.
    calibrated : bool
        Whether an ensemble is calibrated as its parameters say.
    random_state : int
        The seed of a classifier of scikit-learn that has none.
    """

    def __init__(
        self,
        estimator: Any,
        home: BoostingClassifier,
        pool: Pool,
        ledger: Ledger,
        *,
        warm_start: bool = False,
        calibrated: bool = False,
        random_state: int = 0,
    ):
        self._estimator, self._home, self._pool, self._ledger = estimator, home, pool, ledger
        self._warm_start, self._calibrated, self._random_state = warm_start, calibrated, random_state
        self._taught: NearInput | None = None  # the rows taught, as far as they were read
        self._committee: Any = None
        self._n_trained = 0  # taught rows that the committee was trained on

    @property
    def can_train(self) -> bool:
        """Whether labels of at least two classes were taught."""
        return len(set(self._ledger.labels)) > 1

    def committee(self, *, quiet: bool) -> Any:
        """Return the committee C_l = GAMBLE(S), or another estimator's (Huang 2009, algorithm 4, line 3).

        `quiet` hides the progress bar of the training.
        """
        n = len(self._ledger.rows)
        if not self.can_train:
            raise NotFittedError(
                f"the committee needs rows of at least 2 classes, but was taught {n} rows of "
                f"{len(set(self._ledger.labels))}. Teach it more."
            )
        if self._warm_start:
            # Another process may have trained the committee and ended: this one repeats its runs, as the log has them.
            for earlier in self._ledger.trained:
                self._train(earlier, quiet)
        if self._n_trained < n:
            self._train(n, quiet)
            if self._warm_start:
                self._ledger.train()
        return self._committee

    def held_out(self, folds: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of the classes by ensembles that have not learned from a row's fold.

        Parameters
        ----------
        folds : ndarray of shape (n_taught,), int64
        n : int
            They learn from the first n rows taught only.

        Returns
        -------
        P : ndarray of shape (n_taught, n_classes), float64
            0 for classes that the other folds lack.
        classes : ndarray of shape (n_classes,)
        """
        X, y = self._working_set(len(folds)), np.array(self._ledger.labels)[: len(folds)]
        classes = np.unique(y)
        P = np.zeros((len(y), len(classes)))
        for fold in np.unique(folds):
            weights = ((folds != fold) & (np.arange(len(y)) < n)).astype(float)
            if len(np.unique(y[weights > 0])) > 1:
                model = adjusted(
                    clone(self._home), calibration=None, checkpoint=None, class_weight=None, verbose=0
                )
                model.client = IN_PROCESS
                model.fit(X, y, sample_weight=weights)
                own = folds == fold
                P[np.ix_(own, np.searchsorted(classes, model.classes_))] = model.predict_proba(X)[own]
        return P, classes

    def _train(self, n: int, quiet: bool) -> None:
        """Train on the first n rows taught, unless the committee was."""
        if self._n_trained < n:
            self._committee = self._fitted(n, quiet)
            self._n_trained = n

    def _fitted(self, n: int, quiet: bool) -> Any:
        """Return a committee trained on the first n rows taught."""
        X, y = self._working_set(n), np.array(self._ledger.labels)[:n]
        if isinstance(self._estimator, BoostingClassifier):
            return self._boosted(self._estimator, X, y, quiet)
        committee = clone(self._estimator)
        if committee.get_params().get("random_state", 0) is None:
            committee.set_params(random_state=self._random_state)
        return committee.fit(X.data, y)

    def _boosted(self, estimator: BoostingClassifier, X: NearInput, y: np.ndarray, quiet: bool) -> Any:
        """Return an ensemble trained on these rows: a new one, or the last one with more rounds.

        It gets more rounds only if it has all classes of these rows.
        """
        earlier, classes = self._committee if self._warm_start else None, set(y.tolist())
        more = earlier is not None and classes == set(earlier.classes_.tolist())
        committee: Any = copy(earlier) if more else clone(estimator)
        n_values = len(y) * self._pool.n_features
        committee.client = IN_PROCESS if n_values <= IN_PROCESS_VALUES else estimator.client
        adjusted(
            committee,
            calibration=estimator.calibration if self._calibrated else None,
            checkpoint=None,
            class_weight=_weights_of(classes, estimator.class_weight),
            n_estimators=estimator.n_estimators,
            n_jobs=1 if n_values <= ONE_THREAD_VALUES else estimator.n_jobs,
            verbose=0 if quiet else estimator.verbose,
        )
        if more:
            learn_more(committee, X, y)
            adjusted(committee, n_estimators=len(committee.learned_.ensemble))
        else:
            committee.fit(X, y)
        committee.client = estimator.client
        return adjusted(committee, n_jobs=estimator.n_jobs, verbose=estimator.verbose)

    def _working_set(self, n: int) -> NearInput:
        """Return the first n rows taught, in the order taught."""
        known = 0 if self._taught is None else self._taught.n_rows
        if self._taught is None or known < len(self._ledger.rows):
            rows = np.array(self._ledger.rows[known:], np.int64)
            with self._pool.runtime(self._home) as runtime:
                more = self._pool.take(
                    rows, runtime, coded=not isinstance(self._estimator, BoostingClassifier)
                )
            self._taught = more if self._taught is None else self._taught.joined(more)
        return self._taught.first(n)


def _weights_of(classes: set[Any], class_weight: Any) -> Any:
    """Return the class weights without classes that were not taught yet: `fit` would refuse those."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    return {label: weight for label, weight in class_weight.items() if label in classes}
