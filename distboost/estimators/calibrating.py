"""Fit the probabilities of a fitted estimator to labelled rows of any source, on any runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from distboost.errors import DataError
from distboost.estimators.evaluating import judged
from distboost.estimators.parameters import CommonParameters
from distboost.estimators.validation import Given, judged_data
from distboost.evaluation.sums import TEMPERATURES
from distboost.evaluation.temperature import fit_temperature
from distboost.model.calibration import TEMPERATURE, Calibration
from distboost.model.learned import Learned


class Calibrated(CommonParameters):
    """An estimator whose probabilities can be fitted to labelled rows."""

    learned_: Learned  # what training learned: the package's own interface to a fitted estimator
    calibration_: Calibration | None

    def calibrate(
        self, X: Any, y: Any, sample_weight: Any = None, method: Literal["temperature"] = "temperature"
    ) -> Self:
        """Fit the probabilities to labelled rows, which should not be those of the training.

        From then on, `predict_proba` returns softmax(F / T). The temperature T minimises the log-loss of these rows, which are
        read up to four times, block by block, on the runtime that `fit` would use. T is the same, to the last bit, whatever the
        blocks, threads and workers are. Scores and predictions do not change. Training again removes the calibration.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`. Each label must be one of the model's classes. A row of weight 2 counts as two rows.
        method : {"temperature"}, default="temperature"

        Returns
        -------
        self

        Raises
        ------
        distboost.errors.DataError
            If a label is none of the model's classes, or if all rows have weight 0.

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
        if method != TEMPERATURE:
            raise ValueError(f"method is {method!r}, expected {TEMPERATURE!r}.")
        if y is None:
            raise DataError("calibrate got no labels: y is None. Give one label per row.")
        data = judged_data(self, Given(X, y, sample_weight), 4)

        def sums(temperatures: Sequence[float]) -> csr_array:
            return judged(self, data, set(), True, self.client, self.verbose, temperatures)[TEMPERATURES]

        calibration = fit_temperature(sums)
        data.check_unchanged()  # between the passes
        self.learned_ = self.learned_._replace(calibration=calibration)
        self.calibration_ = calibration
        return self
