"""The base class of all boosting classifiers."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from distboost.estimators import evaluating, predicting
from distboost.estimators.calibrating import Calibrated
from distboost.estimators.fitting import fit_to
from distboost.estimators.inspecting import importances, to_dataframe
from distboost.estimators.keeping import digest_of, header_of
from distboost.estimators.resuming import warn_of_rounds, what_to_resume
from distboost.estimators.validation import Given
from distboost.io.files import write_file
from distboost.io.options import storage_options
from distboost.model.checkpoint import open_checkpoint
from distboost.model.learned import Learned
from distboost.prediction.predictor import Answer
from distboost.training.resumption import Resumption


class BoostingClassifier(ClassifierMixin, Calibrated, ABC):
    """The base class of all boosting classifiers: `CommonParameters` documents the parameters that they share."""

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None, resume: bool = False
    ) -> Self:
        """Train the model.

        Parameters
        ----------
        X : array-like, data frame or sparse matrix of shape (n_samples, n_features), zarr.Array, path or URL, or dask collection
            Features: arrays, data frames and sparse matrices of NumPy, SciPy, pandas, polars, pyarrow, xarray, Dask, AnnData and
            zarr. NaN stands for missing values, and `feature_names_in_` keeps their names. With the path or URL of a binned
            store (`distboost.bin`), omit y.
        y : array-like of shape (n_samples,), zarr.Array, path or URL of one, or dask array
            Labels: integers, booleans, text, bytes, or NumPy dates or durations.
        sample_weight : array-like of shape (n_samples,), zarr.Array, path or URL, dask array, or None, default=None
            Weights >= 0. A row of weight 2 counts as two rows. A row of weight 0 is ignored, but its values must be valid.
        eval_set : (X, y), (X, y, sample_weight), a list or a mapping of these, or None, default=None
            Evaluation rows. Their loss and error, and the `eval_metric`, are computed exactly, over all rows, after each round. A
            mapping names several sets, as `eval_history_` does: {"test": (X, y), "valid": (X2, y2)}. The sets of a list are named
            "eval_0", "eval_1", and so on. The last set decides on early stopping. Class weights do not count.
        resume : bool, default=False
            True: continue, up to `n_estimators` rounds, from what this estimator has learned, or else from its checkpoint. The
            data must be the same, and so must all parameters that affect the model. The result equals that of an uninterrupted
            training. False: an existing checkpoint is replaced, with a warning.

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If the data cannot be used. The message names the place.
        TypeError
            If some columns have texts as names and others do not.
        distboost.errors.CheckpointError
            If a checkpoint cannot be written. The previous one is intact.
        """
        self.validate()
        with (
            storage_options(self.storage_options),
            open_checkpoint(self.checkpoint, self.checkpoint_every) as checkpoint,
        ):
            if checkpoint is not None and not resume:
                warn_of_rounds(checkpoint.url)
            resumption = Resumption(what_to_resume(self)) if resume else None
            fit_to(self, Given(X, y, sample_weight, eval_set), resumption, checkpoint)
        return self

    def scores(self, X: Any) -> Any:
        """Return the scores F of the ensemble. The class with the largest score is the prediction.

        Parameters
        ----------
        X : as for `fit`
            Other names of features than those of the training are an error; a warning if only one of the two has names.

        Returns
        -------
        F : ndarray of shape (n_samples, n_classes), float64
            A lazy dask array if X is a dask array, a zarr array, or the path or URL of one. On a cluster, compute it in the
            process that has connected to it, not in one that was forked from that.
        """
        self._learned()
        return predicting.predict(self, X, predicting.scores_answer(self))

    def decision_function(self, X: Any) -> Any:
        """Return the scores, (n_samples, n_classes) float64; with two classes, F_1 - F_0, (n_samples,) float64."""
        if len(self._learned().classes) == 2:
            return predicting.predict(self, X, Answer(_difference, (), np.float64))
        return self.scores(X)

    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities, (n_samples, n_classes) float64: calibrated, or else as the algorithm's loss implies."""
        self._learned()
        return predicting.predict(self, X, predicting.probabilities_answer(self))

    def predict(self, X: Any) -> Any:
        """Return the class with the largest score, (n_samples,); if several are equal, the first of them."""
        self._learned()
        return predicting.predict(self, X, predicting.class_answer(self))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on labelled rows, given as for `fit`; those that are not in memory are read block by block."""
        self._learned()
        rows, labels = evaluating.adapters(self, X, y)
        if sample_weight is None and evaluating.suit_sklearn(self, rows, labels):
            return float(super().score(rows, y))
        return evaluating.confusion(self, rows, labels, sample_weight).accuracy

    def staged_scores(self, X: Any) -> Iterator[Any]:
        """Yield the scores after each round, (n_samples, n_classes) float64.

        They are lazy dask arrays if X is a dask array, a zarr array, or the path or URL of one. Each then computes all rounds up
        to its own. Rows in memory (`np.asarray(X)`) take each round once.
        """
        self._learned()
        return predicting.staged(self, X, predicting.scores_answer(self))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Yield the predictions after each round, (n_samples,): lazy dask arrays where `staged_scores` yields these."""
        self._learned()
        return predicting.staged(self, X, predicting.class_answer(self))

    @property
    def feature_importances_(self) -> np.ndarray:
        """The total gain of the splits on each feature as a fraction of the sum, (n_features,) float64.

        This raises LimitError for models of more than 2^24 features: a model file may give any number of them.
        """
        return importances(self._learned().ensemble, self.n_features_in_)

    def to_dataframe(self) -> Any:
        """Return the trees as a pandas DataFrame with a row for each node, its columns as in XGBoost's `trees_to_dataframe`.

        Returns
        -------
        table : pandas.DataFrame
            "Tree", "Node" (inner nodes of a tree come before its leaves; 0 is the root) and "ID", the text "tree-node";
            "Feature": the name of the feature, or "Leaf"; "Split": rows go left if their value is at most this; "Yes", "No" and
            "Missing": the ID of the left child, of the right one, and of the one for missing values; "Gain": how much the split
            improved the algorithm's criterion; "Cover" and "Weight": the number and the weight of the training rows (those that
            were drawn for the tree) in the node, NaN in models of early files; "Category": the categories that go left;
            "Value x": what a leaf adds to the score of class x. If all weights are whole numbers up to 256, a row of weight 2
            counts as two rows.

        Raises
        ------
        distboost.errors.DataError, distboost.errors.MissingPackageError
            If the weak learners are similarities; if pandas is not installed.
        """
        self._learned()
        return to_dataframe(self)

    def save(self, url: str | os.PathLike[str]) -> None:
        """Write the fitted model to a path or URL, for `distboost.load`. Equal models give equal files."""
        learned = self._learned()
        with storage_options(self.storage_options):
            write_file(url, header_of(self, learned), learned.arrays(0, learned.n_rounds))

    def digest(self) -> str:
        """Return the SHA-256 of the file that `save` writes, in hexadecimal digits."""
        self._learned()
        return digest_of(self)

    def _learned(self) -> Learned:
        """Return what was learned; raise NotFittedError if the estimator is not fitted."""
        check_is_fitted(self, "classes_")
        return self.learned_

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy that trains where this one does: searches of scikit-learn clone estimators."""
        copy: Self = super().__sklearn_clone__()
        if self.client is not None:
            copy.client = self.client
        return copy

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "client"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags


def _difference(F: np.ndarray) -> np.ndarray:
    difference: np.ndarray = F[:, 1] - F[:, 0]
    return difference
