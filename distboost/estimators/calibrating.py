"""Fit the probabilities of a fitted estimator to labelled rows of any source, on any runtime."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from distboost.errors import DataError
from distboost.estimators.evaluating import judged
from distboost.estimators.parameters import CommonParameters
from distboost.estimators.validation import Given, judged_data
from distboost.evaluation.sums import SCORES
from distboost.model.learned import METHODS, TEMPERATURE, VECTOR, Calibration, Learned
from distboost.probabilities.methods import ScoreSums, fit_calibration, sums_of_scores


class Calibrated(CommonParameters):
    """An estimator whose probabilities can be fitted to labelled rows."""

    learned_: Learned  # what training learned: the package's own interface to a fitted estimator
    calibration_: Calibration | None

    def calibrate(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        method: Literal["temperature", "vector"] = "temperature",
    ) -> Self:
        """Fit the probabilities to labelled rows, which should not be those of the training.

        From then on, `predict_proba` returns softmax(F / T). The temperature T minimises the log-loss of these rows, which are
        read up to four times, block by block, on the runtime that `fit` would use. T is the same, to the last bit, whatever the
        blocks, threads and workers are. Scores and predictions do not change. Training again removes the calibration.

        With the method "vector", `predict_proba` returns softmax(a * (F - mean F) / T + b), with a scale and a shift for each
        class, which a penalty holds near 1 and 0. The rows are read again: mostly three times, at most ten times. It pays if
        there are hundreds of rows of each class, and the model is surer of some classes than of others. The class of the largest
        probability may then differ from `predict`, which follows the scores.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Each label must be one of the model's classes. A row of weight 2 counts as two rows.
        method : {"temperature", "vector"}, default="temperature"

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If a label is none of the model's classes, or if all rows have weight 0.
        distboost.errors.LimitError
            If the model has more than 1000 classes, with the method "vector".

        Examples
        --------
        >>> import distboost
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = distboost.GDMCBoostClassifier(n_estimators=5).fit(X[::2], y[::2])
        >>> model = model.calibrate(X[1::2], y[1::2])
        >>> model.calibration_.method
        'temperature'
        """
        check_is_fitted(self, "classes_")
        if method not in METHODS:
            raise DataError.expected("method", method, f"{TEMPERATURE!r} or {VECTOR!r}")
        if y is None:
            raise DataError("calibrate got no labels: ``y`` is None.", remedy="Pass one label per row.")
        data = judged_data(self, Given(X, y, sample_weight))

        def sums(wanted: ScoreSums) -> np.ndarray:
            found: np.ndarray = judged(
                self,
                data,
                set(),
                strict=True,
                client=self.client,
                verbose=self.verbose,
                of_scores=partial(sums_of_scores, wanted),
            )[SCORES]
            return found

        calibration = fit_calibration(method, sums, len(self.learned_.classes))
        data.check_unchanged()  # between the passes
        self.learned_ = self.learned_._replace(calibration=calibration)
        self.calibration_ = calibration
        return self
