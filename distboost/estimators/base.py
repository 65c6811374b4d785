"""The base class of all boosting classifiers."""

from __future__ import annotations

import hashlib
import os
from abc import ABC
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from distboost.errors import LimitError
from distboost.estimators import predicting
from distboost.estimators.fitting import fit_to
from distboost.estimators.keeping import file_content, header_of
from distboost.estimators.parameters import CommonParameters, algorithm_of
from distboost.estimators.predicting import Answer
from distboost.estimators.resuming import warn_of_rounds, what_to_resume
from distboost.estimators.validation import Given
from distboost.io.files import write_file
from distboost.model.checkpoint import opened
from distboost.model.learned import Learned
from distboost.training.resumption import Resumption

MOST_IMPORTANCES = 2**24  # numbers in one array, whatever a file says


class BoostingClassifier(ClassifierMixin, CommonParameters, ABC):
    """The base class of all boosting classifiers: `CommonParameters` documents the parameters that they share."""

    learned_: Learned  # what training learned: the package's own interface to a fitted estimator

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None, resume: bool = False
    ) -> Self:
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
        self.validate()
        with opened(self.checkpoint, self.checkpoint_every) as checkpoint:
            if checkpoint is not None and not resume:
                warn_of_rounds(checkpoint.url)
            resumption = Resumption(what_to_resume(self)) if resume else None
            fit_to(self, Given(X, y, sample_weight, eval_set), resumption, checkpoint)
        return self

    def scores(self, X: Any) -> Any:
        """The ensemble's output F, whose largest entry is the prediction.

        Parameters
        ----------
        X : as for `fit`

        Returns
        -------
        F : ndarray of shape (n_samples, n_classes), float64
            A lazy dask array if X is a dask or zarr array or the path or URL of one.
        """
        n_classes = len(self._learned().classes)
        return predicting.predict(self, X, Answer(_unchanged, (n_classes,), np.float64))

    def decision_function(self, X: Any) -> Any:
        """The scores in scikit-learn's shapes: (n_samples, n_classes), for two classes F_1 - F_0 of shape (n_samples,)."""
        if len(self._learned().classes) == 2:
            return predicting.predict(self, X, Answer(_difference, (), np.float64))
        return self.scores(X)

    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, (n_samples, n_classes): those of which the scores are the population minimiser."""
        n_classes = len(self._learned().classes)
        probabilities = algorithm_of(self, n_classes).probabilities
        return predicting.predict(self, X, Answer(probabilities, (n_classes,), np.float64))

    def predict(self, X: Any) -> Any:
        """The class of largest score, (n_samples,); the first of equal ones."""
        classes = self._learned().classes
        return predicting.predict(self, X, Answer(lambda F: _largest(classes, F), (), classes.dtype))

    def staged_scores(self, X: Any) -> Iterator[np.ndarray]:
        """The scores after each round, (n_samples, n_classes); all of X is loaded."""
        self._learned()
        return predicting.staged_scores(self, X)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The predictions after each round, (n_samples,); all of X is loaded."""
        classes = self._learned().classes
        return (_largest(classes, F) for F in self.staged_scores(X))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Total gain of the splits on each feature, as fractions of the sum, shape (n_features,).

        Of at most 2^24 features: a model file may name any number of them.
        """
        ensemble = self._learned().ensemble
        if self.n_features_in_ > MOST_IMPORTANCES:
            raise LimitError(
                f"the model has {self.n_features_in_} features, and feature_importances_ has a number for each; the limit is "
                f"{MOST_IMPORTANCES}. 'distboost inspect' shows the most important ones."
            )
        importances: np.ndarray = np.zeros(self.n_features_in_)
        features, gains = ensemble.gains()
        importances[features] = gains
        total = float(importances.sum())
        if total > 0:
            importances /= total
        return importances

    def save(self, url: str | os.PathLike[str]) -> None:
        """Writes the fitted model to a path or URL; `distboost.load` reads it. Equal models are equal files."""
        learned = self._learned()
        write_file(os.fspath(url), header_of(self, learned), learned.arrays(0, learned.n_rounds))

    def digest(self) -> str:
        """The SHA-256 of the file that `save` writes, in hexadecimal digits."""
        self._learned()
        return hashlib.sha256(file_content(self)).hexdigest()

    def _learned(self) -> Learned:
        """What was learned; raises NotFittedError if nothing was."""
        check_is_fitted(self, "classes_")
        return self.learned_

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "client"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _unchanged(F: np.ndarray) -> np.ndarray:
    return F


def _difference(F: np.ndarray) -> np.ndarray:
    difference: np.ndarray = F[:, 1] - F[:, 0]
    return difference


def _largest(classes: np.ndarray, F: np.ndarray) -> np.ndarray:
    labels: np.ndarray = classes[np.argmax(F, axis=1)]
    return labels
