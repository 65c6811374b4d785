"""What all boosting classifiers share: how they are fitted, asked and kept."""

from __future__ import annotations

import copy
import hashlib
import os
import warnings
from abc import ABC
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, Options, RealNotInt, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from distboost.algorithms.base import LEARNING_RATE, SEPARATED, Algorithm, parameter
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.missing import warn_all, warn_of_missing
from distboost.data.row_weights import class_weights
from distboost.data.sources import as_source, is_dask, is_lazy, open_zarr
from distboost.data.store.store import BinnedStore
from distboost.errors import DataError, LimitError
from distboost.model.checkpoint import Checkpoint, is_checkpoint, opened, rounds_at
from distboost.model.create import new_ensemble
from distboost.model.files import (
    check_keepable,
    check_same_data,
    check_same_task,
    data_digest,
    deciding_parameters,
    header_of,
    load_into,
    save_learned,
)
from distboost.model.history import History
from distboost.model.learned import Learned
from distboost.prediction import lazy
from distboost.runtime.base import Runtime
from distboost.runtime.choose import open_runtime
from distboost.threads import Threads, single_blas
from distboost.training.loop import train
from distboost.training.memory_plan import parse_limit
from distboost.training.progress import progress_bar
from distboost.training.staging import Staging
from distboost.trees.grower import GrowthLimits

POSITIVE = Interval(Integral, 1, None, closed="left")
_FRACTION = Interval(Real, 0, 1, closed="right")
MOST_IMPORTANCES = 2**24  # numbers in one array, whatever a file says


@dataclass(kw_only=True, eq=False, repr=False)
class BoostingClassifier(ClassifierMixin, BaseEstimator, ABC):
    """What all boosting classifiers share.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds: weak learners. Early stopping may use fewer.
    learning_rate : float, default=1.0
        Shrinkage: each step is multiplied by it, by at most 10. Steps that overshoot further and further are an error.
    max_bins : int, default=255
        The most bins of a feature, missing values not counted. A feature with at most so many distinct values is binned exactly.
    min_samples_leaf : int, default=1
        The fewest rows (of weight above 0) on either side of a split.
    min_weight_fraction_leaf : float, default=0.0
        The least fraction of the total sample weight on either side of a split.
    subsample : float, default=1.0
        The fraction of rows each round learns from. Which rows depends on `random_state`, the round and the row's number alone.
    max_features : float or int, default=1.0
        The fraction, or the number, of features each round may split on.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes (1 if not given); "balanced": n_samples / (n_classes * rows of the class).
    early_stopping_rounds : int or None, default=None
        Stop after so many rounds without a smaller error on the `eval_set`, and keep the best round.
    score_dtype : {"float64", "float32"}, default="float64"
        Type of the scores kept per row while training.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
        What to do about chunks of a zarr array that were never written, in training and in prediction: zarr reads them as the
        fill value.
    memory_limit : int, str or None, default=None
        Bytes (or a text such as "2GB") that one process may take in all, libraries included. What does not fit is streamed from
        disk; a limit too small even for that is refused before a row is read. None: on a cluster, what Dask allows its workers
        before they spill; in this process, no limit. Prediction has no limit: it takes as much as the rows that are given, or of
        lazy ones as Dask's chunks.
    scratch : str, path or None, default=None
        Directory or URL for what does not fit in memory, shared by all workers. None: the system's directory for temporary files,
        and for scores the workers' own.
    checkpoint : str or None, default=None
        Folder or URL where what has been learned is kept while training, and at the end. `fit(..., resume=True)` goes on from it,
        and `distboost.load` reads it.
    checkpoint_every : int or str, default=10
        Rounds from one time to the next, or seconds as a text such as "30s".
    worker_timeout : float, default=30.0
        On a cluster: seconds without a sign of life after which a worker is given up, and its rows are read again by others.
    n_jobs : int or None, default=None
        Threads where training or prediction runs in this process; None or -1: one per core. On a cluster, and where prediction
        is lazy, Dask has its own number.
    random_state : int, RandomState instance or None, default=0
        The seed; None is 0: equal inputs always give equal models.
    verbose : int, default=0
        1: a progress bar.
    callbacks : list of callables or None, default=None
        Each is called with a `distboost.Progress` after each round; training stops if it returns True.
    """

    n_estimators: int = parameter(100, POSITIVE)
    learning_rate: float = parameter(1.0, LEARNING_RATE)
    max_bins: int = parameter(255, Interval(Integral, 2, 255, closed="both"))
    min_samples_leaf: int = parameter(1, POSITIVE)
    min_weight_fraction_leaf: float = parameter(0.0, Interval(Real, 0, 0.5, closed="both"))
    subsample: float = parameter(1.0, _FRACTION)
    max_features: float | int = parameter(1.0, Interval(RealNotInt, 0, 1, closed="right"), POSITIVE)
    class_weight: dict | str | None = parameter(None, dict, StrOptions({"balanced"}), None)
    early_stopping_rounds: int | None = parameter(None, POSITIVE, None)
    score_dtype: str = parameter("float64", StrOptions({"float64", "float32"}))
    missing_chunks: str = parameter("warn", StrOptions({"warn", "error", "ignore"}))
    memory_limit: int | str | None = parameter(None, POSITIVE, str, None)
    scratch: str | os.PathLike | None = parameter(None, str, os.PathLike, None)
    checkpoint: str | os.PathLike | None = parameter(None, str, os.PathLike, None)
    checkpoint_every: int | str = parameter(10, POSITIVE, str)
    worker_timeout: float = parameter(30.0, Interval(Real, 0, None, closed="neither"))
    n_jobs: int | None = parameter(None, POSITIVE, Options(Integral, {-1}), None)
    random_state: Any = parameter(0, "random_state")
    verbose: int = parameter(0, "verbose")
    callbacks: Any = parameter(None, list, tuple, None)

    # Where training runs, if not found otherwise: a `distributed.Client`. Not a parameter: a live client can't be cloned.
    client = None  # type: Any  # no annotation: a dataclass would make a parameter of it

    algorithm: ClassVar[type[Algorithm]]
    algorithm_name: ClassVar[str]

    _parameter_constraints: ClassVar[dict]
    # Parameters that say where and how training runs: they do not change the model and are not saved with it.
    _RUN_PARAMETERS: ClassVar[frozenset] = frozenset(
        {
            "missing_chunks",
            "memory_limit",
            "scratch",
            "checkpoint",
            "checkpoint_every",
            "worker_timeout",
            "n_jobs",
            "verbose",
            "callbacks",
        }
    )

    def _algorithm(self, n_classes: int) -> Algorithm:
        """The algorithm with this estimator's parameters."""
        own = {name: getattr(self, name) for name in self.algorithm.parameters()}
        if "random_state" in own:
            own["random_state"] = self._seed()
        return self.algorithm(n_classes=n_classes, **own)

    # Fitting.

    def fit(self, X, y=None, sample_weight=None, eval_set=None, resume=False):
        """Trains the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), zarr.Array, path or URL of one, or dask array
            May hold NaN for missing values. The path or URL of a binned store (see `distboost.bin`) needs no y.
        y : array-like of shape (n_samples,), zarr.Array, path or URL of one, or dask array
            Labels: whole numbers, flags, text, bytes, or dates or durations of NumPy.
        sample_weight : array-like of shape (n_samples,), zarr.Array, path or URL, dask array, or None, default=None
            Weights >= 0. A row of weight 2 counts as the row twice, a row of weight 0 is not there
            (though its values must be valid).
        eval_set : (X, y) or None, default=None
            Rows on which loss and error are measured after each round, exactly and over all of them.
        resume : bool, default=False
            Go on, up to `n_estimators` rounds, from what this estimator has learned, or else from its checkpoint, on the same
            data and with the same parameters (those that say how training runs may be others). The model is that of the
            uninterrupted training. False: a checkpoint that is there is replaced, with a warning.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If the data cannot be used; the message says where.
        distboost.errors.CheckpointError
            If a checkpoint cannot be written; the one before is whole.
        """
        self._validate_params()
        with opened(self.checkpoint, self.checkpoint_every) as checkpoint:
            if checkpoint is not None and not resume:
                _warn_of_rounds(checkpoint.url)
            return self._fit(X, y, sample_weight, eval_set, self._earlier() if resume else None, checkpoint)

    def _fit(
        self,
        X,
        y,
        sample_weight,
        eval_set,
        earlier: Learned | None,
        checkpoint: Checkpoint | None,
        scores: np.ndarray | None = None,
    ) -> BoostingClassifier:
        if self.early_stopping_rounds is not None and eval_set is None:
            raise DataError(
                f"early_stopping_rounds={self.early_stopping_rounds} needs an eval_set to measure. "
                "Call fit(..., eval_set=(X, y))."
            )
        data = self._dataset(X, y, sample_weight)
        check_keepable(self)  # now, rather than after the training
        evaluation = None if eval_set is None else self._evaluation_dataset(eval_set)
        with open_runtime(self.client, _threads(self.n_jobs), self.worker_timeout) as runtime:
            staging = self._staging(data, evaluation, runtime)
            least = staging.first_plan(self._algorithm)
            profile = staging.profile(least)
            if earlier is not None:
                check_same_task(earlier, profile)
            algorithm = self._algorithm(len(profile.classes))
            algorithm.check()
            weights = class_weights(self.class_weight, profile)
            with staging.rows(profile, algorithm, weights) as (rows, self.memory_plan_):
                self._train(rows, profile, algorithm, earlier, checkpoint, scores)
        return self

    def _learn_more(self, X, y) -> BoostingClassifier:
        """Learns `n_estimators` rounds more from these rows, (n, n_features) in memory, which need not be those of earlier ones.

        What earlier rounds give to these rows is computed from their values: bins of other rows would decide otherwise.
        """
        self._fitted()
        algorithm = self._algorithm(self.n_classes_)
        if not algorithm.scores_suffice:
            raise DataError(
                f"{type(self).__name__} cannot learn more from other rows: its rounds need to know more of the earlier ones "
                "than the scores. Train it anew: warm_start=False."
            )
        with Threads(_threads(self.n_jobs)) as threads:
            scores = self._ensemble.scores(self._checked(X), threads)
        return self._fit(X, y, None, None, self._learned, None, scores)

    def _dataset(self, X, y, sample_weight) -> Dataset:
        if y is None and is_lazy(X) and BinnedStore.is_at(X):
            store = BinnedStore.open(X)
            if sample_weight is not None:
                raise DataError(
                    f"sample_weight cannot be given beside the binned store {store.url!r}, which has weights of its own. Bin the "
                    "data with them: distboost.bin(X, y, out, sample_weight=...), or distboost bin --sample-weight."
                )
            self._set_features(None, store.n_features)
            return store
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None. "
                "Give one label per row; only a binned store as X has its own."
            )
        if is_lazy(X):
            data = RawDataset.of(X, y, sample_weight)
            self._set_features(None, data.n_features)
        else:
            X, y, sample_weight = self._validated(X, y, sample_weight)
            data = RawDataset.of(X, y, sample_weight)
        warn_all(data.missing_chunks(self.missing_chunks), stacklevel=5)
        return data

    def _validated(self, X, y, sample_weight):
        """In-memory input as scikit-learn checks it. Values are checked later, where the row numbers are known."""
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite=False, order="C")
        if not is_lazy(y):
            y = column_or_1d(y, warn=True)
        if sample_weight is not None and not is_lazy(sample_weight):
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return X, y, sample_weight

    def _set_features(self, names, n_features: int) -> None:
        self.n_features_in_ = n_features
        if names is None and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _evaluation_dataset(self, eval_set) -> RawDataset:
        alone = is_lazy(eval_set)  # a path, say
        pairs = [(eval_set, None)] if alone else [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
        if len(pairs) != 1 or len(pairs[0]) != 2:
            raise DataError(f"eval_set holds {len(pairs)} items; expected one pair (X, y).")
        X, y = pairs[0]
        if y is None:
            if is_lazy(X):
                as_source(X, "eval_set X")  # which says if it is a binned store
            raise DataError("eval_set has no labels: give one pair (X, y).")
        if not is_lazy(X):
            X = validate_data(
                self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False, order="C"
            )
        if not is_lazy(y):
            y = column_or_1d(y, warn=True)
        data = RawDataset.of(X, y, None, prefix="eval_set ")
        if data.n_features != self.n_features_in_:
            raise DataError(
                f"{data.place} has {data.n_features} features, but the training rows have {self.n_features_in_}."
            )
        if data.n_rows == 0:
            raise DataError(
                f"{data.place} has 0 rows: at least 1 is needed. Leave eval_set out, or give it rows."
            )
        warn_all(data.missing_chunks(self.missing_chunks), stacklevel=5)
        return data

    def _staging(self, data: Dataset, evaluation: RawDataset | None, runtime: Runtime) -> Staging:
        return Staging(
            runtime,
            data,
            evaluation,
            self._limits(),
            self.max_bins,
            self._seed(),
            self.score_dtype,
            data.weighted or self.class_weight is not None,
            parse_limit(self.memory_limit),
            None if self.scratch is None else os.fspath(self.scratch),
        )

    def _limits(self) -> GrowthLimits:
        return GrowthLimits(
            max_depth=getattr(self, "max_depth", 1),
            max_leaf_nodes=getattr(self, "max_leaf_nodes", None),
            min_samples_leaf=self.min_samples_leaf,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            subsample=self.subsample,
            max_features=self.max_features,
            seed=self._seed(),
        )

    def _train(
        self,
        rows,
        profile,
        algorithm: Algorithm,
        earlier: Learned | None,
        checkpoint: Checkpoint | None,
        scores: np.ndarray | None,
    ) -> None:
        data = data_digest(profile, rows.counts[0], by_number=self.subsample < 1)
        if earlier is None:
            ensemble = new_ensemble(algorithm, profile.n_features)
        else:
            if scores is None:
                check_same_data(earlier, data)
            else:  # of other rows, by design
                data = hashlib.sha256(f"{earlier.data} {data}".encode()).hexdigest()
            ensemble = earlier.ensemble.copy()  # until all went well, the model stays what it was
            if checkpoint is not None:
                checkpoint.go_on_from(earlier)

        def keep(ensemble, history: History, best) -> None:
            if checkpoint is not None and checkpoint.is_due(len(ensemble)):
                rewritten = algorithm.corrective and self.early_stopping_rounds is not None
                learned = Learned(profile.classes, ensemble, history, best if rewritten else None, data)
                self._write_checkpoint(checkpoint, learned)

        with ExitStack() as stack:
            # The coordinator's linear algebra is small, and its last digits depend on the number of threads.
            stack.enter_context(single_blas())
            callbacks = list(self.callbacks or ())
            if self.verbose:
                callbacks.append(stack.enter_context(progress_bar(type(self).__name__)))
            history = train(
                algorithm,
                rows,
                self._limits(),
                ensemble,
                profile.edges,
                n_rounds=self.n_estimators + (0 if scores is None else len(ensemble)),
                learning_rate=self.learning_rate,
                patience=self.early_stopping_rounds,
                callbacks=callbacks,
                earlier=None if earlier is None else earlier.history,
                best=None if earlier is None else earlier.best,
                ended=SEPARATED if scores is None and _is_separated(earlier) else None,
                keep=keep,
                scores=scores,
            )
        learned = Learned(profile.classes, ensemble, history, data=data)
        self._set_learned(learned)
        if checkpoint is not None:
            self._write_checkpoint(checkpoint, learned)

    def _write_checkpoint(self, checkpoint: Checkpoint, learned: Learned) -> None:
        header = {**header_of(self, learned), "rounds": len(learned.ensemble)}
        checkpoint.write(header, learned, whole=self.algorithm.corrective)

    def _earlier(self) -> Learned:
        """What there is to go on from."""
        if hasattr(self, "_learned"):
            kept, place = self, "the fitted model"
        elif self.checkpoint is None:
            raise NotFittedError(
                f"resume=True goes on from a fitted model or from a checkpoint, but this {type(self).__name__} is not fitted and "
                "has none. Call fit without it first."
            )
        elif not is_checkpoint(os.fspath(self.checkpoint)):
            raise NotFittedError(
                f"resume=True goes on from a checkpoint, but none was completed in {os.fspath(self.checkpoint)}. Call fit "
                "without it first."
            )
        else:
            kept = load_into(os.fspath(self.checkpoint), {self.algorithm_name: type(self)}.__getitem__)
            place = f"the checkpoint {os.fspath(self.checkpoint)}"
        changed = self._changed_since(kept)
        if changed is not None:
            name, theirs, mine = changed
            raise DataError(
                f"{place} was made with {name}={theirs!r}, not {mine!r}. Set it to that, or train anew, without resume=True."
            )
        return kept._learned

    def _changed_since(self, kept: BoostingClassifier) -> tuple[str, Any, Any] | None:
        """The first deciding parameter with another value than what was kept was learned with: its name, that value, and ours."""
        mine, theirs = deciding_parameters(self), kept._learned_with
        if "n_estimators" not in self._algorithm(kept.n_classes_).fixed_parameters:
            del mine["n_estimators"]
        differing = (name for name, value in mine.items() if value != theirs[name])
        return next(((name, theirs[name], mine[name]) for name in differing), None)

    def _set_learned(self, learned: Learned) -> None:
        self._learned, self._learned_with = learned, deciding_parameters(self)
        self.classes_, ensemble, history = learned.classes, learned.ensemble, learned.history
        self._ensemble = ensemble
        for name, values in history.notes.items():
            setattr(self, f"{name}_", np.array(values, np.float64))
        self.n_classes_ = len(self.classes_)
        self.train_loss_ = np.array(history.train_loss)
        self.train_error_ = np.array(history.train_error)
        self.n_iter_ = len(self.train_loss_)
        self.best_iteration_ = len(ensemble)
        self.outcome_ = history.outcome
        for name in ("eval_loss", "eval_error"):
            if getattr(history, name):
                setattr(self, f"{name}_", np.array(getattr(history, name)))
            elif hasattr(self, f"{name}_"):
                delattr(self, f"{name}_")

    def _seed(self) -> int:
        if self.random_state is None:
            return 0
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        # From a copy: every call, and every save, is told the same seed.
        return int(copy.deepcopy(self.random_state).randint(2**31))

    # Asking.

    def scores(self, X):
        """The ensemble's output F, whose largest entry is the prediction.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        F : ndarray of shape (n_samples, n_classes), float64
            A lazy dask array if X is a dask or zarr array or the path or URL of one.
        """
        return self._apply(X, lambda F: F, (len(self._fitted().classes_),), np.float64)

    def decision_function(self, X):
        """The scores in scikit-learn's shapes: (n_samples, n_classes), for two classes F_1 - F_0 of shape (n_samples,)."""
        if len(self._fitted().classes_) == 2:
            return self._apply(X, _binary_decision, (), np.float64)
        return self.scores(X)

    def predict_proba(self, X):
        """Class probabilities, (n_samples, n_classes): those of which the scores are the population minimiser."""
        n_classes = len(self._fitted().classes_)
        return self._apply(X, self._algorithm(n_classes).probabilities, (n_classes,), np.float64)

    def predict(self, X):
        """The class of largest score, (n_samples,); the first of equal ones."""
        return self._apply(X, self._labels, (), self._fitted().classes_.dtype)

    def staged_scores(self, X) -> Iterator[np.ndarray]:
        """The scores after each round; X is loaded."""
        self._fitted()
        X = self._checked(lazy.loaded(self._opened(X, 4)) if is_lazy(X) else X)
        algorithm = self._algorithm(self.n_classes_)
        G = np.zeros((len(X), self._ensemble.n_scores))
        with Threads(_threads(self.n_jobs)) as threads:
            for t in range(len(self._ensemble)):
                yield algorithm.decoded(self._ensemble.scores(X, threads, t, G, t + 1).copy())

    def staged_predict(self, X) -> Iterator[np.ndarray]:
        """The predictions after each round; X is loaded."""
        return (self._labels(F) for F in self.staged_scores(X))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Total gain of the splits on each feature, as fractions of the sum, shape (n_features,).

        Of at most 2^24 features: a model file may tell of any number of them.
        """
        if self._fitted().n_features_in_ > MOST_IMPORTANCES:
            raise LimitError(
                f"the model has {self.n_features_in_} features, and feature_importances_ has a number for each; the limit is "
                f"{MOST_IMPORTANCES}. 'distboost inspect' shows the most important ones."
            )
        gains = np.zeros(self.n_features_in_)
        features, gains_of_them = self._ensemble.gains()
        gains[features] = gains_of_them
        total = gains.sum()
        return gains / total if total > 0 else gains

    def _fitted(self):
        check_is_fitted(self, "classes_")
        return self

    def _labels(self, F: np.ndarray) -> np.ndarray:
        return self.classes_[np.argmax(F, axis=1)]

    def _checked(self, X) -> np.ndarray:
        X = validate_data(
            self, X, reset=False, dtype=[np.float64, np.float32], ensure_all_finite=False, order="C"
        )
        assert_all_finite(X, allow_nan=True, input_name="X", estimator_name=type(self).__name__)
        return X

    def _opened(self, X, stacklevel: int):
        """A lazy X, of whose missing chunks the caller so many calls up is told, as `missing_chunks` says."""
        if is_dask(X):
            return X
        X = open_zarr(X, "X") if isinstance(X, (str, os.PathLike)) else X
        warn_of_missing(as_source(X, "X"), self.missing_chunks, stacklevel)
        return X

    def _apply(self, X, finish, shape: tuple[int, ...], dtype):
        """finish(F) of the rows of X, now or lazily."""
        decoded = self._algorithm(len(self._fitted().classes_)).decoded
        if is_lazy(X):
            return lazy.map_rows(
                self._opened(X, 5),
                self._finished_scores,
                self.n_features_in_,
                lambda G: finish(decoded(G)),
                shape,
                dtype,
            )
        with Threads(_threads(self.n_jobs)) as threads:
            return finish(decoded(self._ensemble.scores(self._checked(X), threads)))

    def _finished_scores(self, X: np.ndarray, finish) -> np.ndarray:
        """One chunk: Dask runs several at once, so each takes one thread."""
        assert_all_finite(X, allow_nan=True, input_name="X")
        return finish(self._ensemble.scores(X, Threads(1)))

    # Keeping.

    def save(self, url: str) -> None:
        """Writes the fitted model to a path or URL; `distboost.load` reads it. Equal models are equal files."""
        save_learned(self, self._fitted()._learned, os.fspath(url))

    def __getstate__(self):
        return {key: value for key, value in super().__getstate__().items() if key != "client"}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _is_separated(earlier: Learned | None) -> bool:
    """Whether the last round that was kept is one after which there is no step to make."""
    return (
        earlier is not None
        and earlier.history.outcome == SEPARATED
        and earlier.n_rounds == len(earlier.ensemble)
    )


def _warn_of_rounds(checkpoint: str) -> None:
    """Warns the caller of `fit` if it is to replace rounds of an earlier training."""
    rounds = rounds_at(checkpoint)
    if rounds:
        warnings.warn(
            f"the checkpoint {checkpoint} holds {rounds} rounds of an earlier training, which the first write of this one will "
            "replace. To go on from them, fit with resume=True; to keep them, give another place: checkpoint=...",
            UserWarning,
            stacklevel=3,
        )


def _threads(n_jobs: int | None) -> int | None:
    return None if n_jobs in (None, -1) else n_jobs


def _binary_decision(F: np.ndarray) -> np.ndarray:
    return F[:, 1] - F[:, 0]
