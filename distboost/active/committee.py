"""The committee of a query by committee: a classifier, trained on the rows taught so far."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError

from distboost.active.forest import FORESTS, with_categories
from distboost.active.ledger import Ledger
from distboost.active.pool import Pool
from distboost.active.seeds import read_seeds
from distboost.data.labels import SCALARS
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.fitting import learn_more
from distboost.estimators.parameters import adjusted, check_methods, deciding_parameters
from distboost.inputs.array import ArrayInput
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
                "instance of scikit-learn's ``ExtraTreesClassifier``, or of ``GAMBLEClassifier``, for example.",
                value=estimator,
            )
        return
    check_methods(estimator, "a committee", "Derive from the estimator without them.")
    if estimator.early_stopping_rounds is not None:
        raise DataError(
            f"the estimator has ``early_stopping_rounds={estimator.early_stopping_rounds}``, but a committee has no "
            "``eval_set``.",
            remedy="Set it to None.",
        )
    if estimator.validation_fraction is not None:
        raise DataError(
            f"the estimator has ``validation_fraction={estimator.validation_fraction}``, but a committee learns from all "
            "labels.",
            remedy="Set it to None.",
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
    """Trains a classifier when it is asked for and something was taught, corrected or withdrawn since the last training.

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
        self._estimator, self._home, self.pool, self._ledger = estimator, home, pool, ledger
        self._warm_start, self._calibrated, self._random_state = warm_start, calibrated, random_state
        self._taught: NearInput | None = None  # rows that were read, in the order taught
        self._rows: list[int] = []  # their numbers
        self._seeds: list[np.ndarray] = []
        self._committee: Any = None
        self._learned: Any = None  # what the committee was trained on: rows, labels, and the number of seeds
        self._runs: list[int] = []  # of a committee that grows, as in the log

    @property
    def can_train(self) -> bool:
        """Whether labels of at least two classes are known."""
        return len(set(self._labels())) > 1

    def _labels(self) -> list[Any]:
        return self._ledger.seed_labels + self._ledger.labels

    def committee(self, *, quiet: bool) -> Any:
        """Return the committee C_l = GAMBLE(S), or another estimator's (Huang 2009, algorithm 4, line 3).

        `quiet` hides the progress bar of the training.
        """
        ledger = self._ledger
        if not self.can_train:
            labels = self._labels()
            raise NotFittedError(
                f"the committee needs rows of at least 2 classes, but was taught {len(labels)} rows of "
                f"{len(set(labels))}. Teach it more."
            )
        if self._warm_start:
            return self._grown(quiet)
        taught = (ledger.rows, ledger.labels, len(ledger.seeds))
        if self._learned != taught:
            self._committee = self._fitted(len(ledger.rows), quiet)
            self._learned = taught
        return self._committee

    def held_out(self, folds: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the probabilities of the classes by classifiers that have not learned from a row's fold.

        Parameters
        ----------
        folds : ndarray of shape (n_taught,), int64
            -1: a row that all learn from.
        n : int
            They learn from the seeds and the first n rows taught only.

        Returns
        -------
        P : ndarray of shape (n_taught, n_classes), float64
            0 for classes that the other folds lack, and for rows of no fold.
        classes : ndarray of shape (n_classes,)
        """
        if not self.can_train:
            raise NotFittedError("labels of fewer than 2 classes were taught. Teach more.")
        n_seeds = len(self._ledger.seed_labels)
        X, y = self._working_set(len(folds)), np.array(self._labels())
        classes, of_all = np.unique(y), np.append(np.full(n_seeds, -1), folds)
        P = np.zeros((len(folds), len(classes)))
        for fold in np.unique(folds[folds >= 0]):
            learned = (of_all != fold) & (np.arange(len(y)) < n_seeds + n)
            if len(set(y[learned].tolist())) > 1:
                model, rows = self._fitted_to(X, y, learned)
                own = np.flatnonzero(folds == fold)
                columns = np.searchsorted(classes, model.classes_)
                P[np.ix_(own, columns)] = model.predict_proba(rows)[n_seeds + own]
        return P, classes

    def _fitted_to(self, X: NearInput, y: np.ndarray, learned: np.ndarray) -> tuple[Any, Any]:
        """Return a classifier that has learned from some of the rows, uncalibrated, and all rows as it takes them."""
        if not isinstance(self._estimator, BoostingClassifier):
            return self._classifier().fit(X.data[learned], y[learned]), X.data
        model: Any = clone(self._estimator)
        weights = _weights_of(set(y[learned].tolist()), model.class_weight)
        adjusted(model, calibration=None, checkpoint=None, class_weight=weights, verbose=0)
        model.client = IN_PROCESS
        return model.fit(X, y, sample_weight=learned.astype(float)), X

    def _classifier(self) -> Any:
        """Return the classifier of scikit-learn, with a seed, unfitted."""
        committee = clone(self._estimator)
        if committee.get_params().get("random_state", 0) is None:
            committee.set_params(random_state=self._random_state)
        if type(committee) in FORESTS and self.pool.categorical:
            return with_categories(committee, self.pool.categorical)
        return committee

    def _grown(self, quiet: bool) -> Any:
        """Return a committee that repeats the runs that the log has, whoever made them, and makes another if more was taught."""
        ledger = self._ledger
        while True:
            n, runs = len(ledger.rows), ledger.trained[:]
            if runs[-1:] != [n]:
                runs.append(n)
            if self._runs != runs[: len(self._runs)]:
                self._committee, self._runs = None, []
            for run in runs[len(self._runs) :]:
                self._committee = self._fitted(run, quiet)
                self._runs.append(run)
            if runs == ledger.trained or ledger.train(n):
                return self._committee

    def _fitted(self, n: int, quiet: bool) -> Any:
        """Return a committee trained on the seeds and the first n rows taught."""
        X, y = self._working_set(n), np.array(self._ledger.seed_labels + self._ledger.labels[:n])
        if isinstance(self._estimator, BoostingClassifier):
            return self._boosted(self._estimator, X, y, quiet)
        return self._classifier().fit(X.data, y)

    def _boosted(self, estimator: BoostingClassifier, X: NearInput, y: np.ndarray, quiet: bool) -> Any:
        """Return an ensemble trained on these rows: a new one, or the last one with more rounds.

        It gets more rounds only if it has all classes of these rows.
        """
        earlier, classes = self._committee if self._warm_start else None, set(y.tolist())
        more = earlier is not None and classes == set(earlier.classes_.tolist())
        committee: Any = copy(earlier) if more else clone(estimator)
        n_values = len(y) * self.pool.n_features
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
        """Return the seeds and the first n rows taught, in the order taught."""
        rows, seeds = self._ledger.rows, self._ledger.seeds
        if seeds and not self._seeds:
            self._taught, self._rows = None, []  # from here on they are numbers, as seeds are
        self._seeds += [read_seeds(seed, self.pool, self._home) for seed in seeds[len(self._seeds) :]]
        if rows:
            self._read(rows)
        if not seeds:
            assert self._taught is not None, "there are labels"
            return self._taught.first(n)
        taught = [self._taught.first(n).data] if rows and self._taught is not None else []
        dtype = taught[0].dtype if taught and taught[0].dtype.kind == "f" else np.float64
        X = np.concatenate([*(values.astype(dtype) for values in self._seeds), *taught])
        return ArrayInput(X, "X", self.pool.names)

    def _read(self, rows: list[int]) -> None:
        """Read those of the rows that were not read before; if some were withdrawn, those after them, too."""
        pairs = zip(rows, self._rows, strict=False)
        same = next(
            (place for place, (now, known) in enumerate(pairs) if now != known),
            min(len(rows), len(self._rows)),
        )
        if same < len(rows):
            coded = bool(self._seeds) or not isinstance(self._estimator, BoostingClassifier)
            with self.pool.runtime(self._home) as runtime:
                more = self.pool.take(np.array(rows[same:], np.int64), runtime, coded=coded)
            self._taught = more if self._taught is None or not same else self._taught.first(same).joined(more)
            self._rows = rows


def _weights_of(classes: set[Any], class_weight: Any) -> Any:
    """Return the class weights without classes that were not taught yet: `fit` would refuse those."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    return {label: weight for label, weight in class_weight.items() if label in classes}
