"""What a training run has learned, and the arrays that files store of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from distboost.model.calibration import Calibration
from distboost.model.ensemble import Ensemble
from distboost.model.history import History

# Names of arrays in files, in addition to those of the ensemble and of the histories.
NOTE = "note "  # followed by the note's name
BEST = "best values"


class Learned(NamedTuple):
    """What a training run has learned so far.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The sorted labels.
    ensemble : Ensemble
    history : History
        The history of all rounds done. It may have more rounds than the ensemble, if early stopping dropped the last ones.
    best : Ensemble or None
        The ensemble as it was after the best round, if later rounds have changed it.
    data : str or None
        The digest of the training rows. None: it is not known, as in files of earlier versions.
    parameters : mapping or None
        The estimator's parameters that determine the model, as JSON values.
    calibration : Calibration or None
        How the scores become probabilities; None: as the algorithm's paper implies.
    """

    classes: np.ndarray
    ensemble: Ensemble
    history: History
    best: Ensemble | None = None
    data: str | None = None
    parameters: Mapping[str, Any] | None = None
    calibration: Calibration | None = None

    @property
    def n_rounds(self) -> int:
        """The number of rounds done, including those that early stopping dropped."""
        return len(self.history.train_loss)

    def arrays(self, first: int, last: int) -> dict[str, np.ndarray]:
        """Return the arrays of rounds first .. last - 1."""
        arrays = dict(self.ensemble.part(first, last).arrays())
        for name, values in self.history.series().items():
            if values:
                arrays[name] = np.array(values[first:last])
        for name, values in self.history.notes.items():
            arrays[NOTE + name] = np.array(values[first:last], np.float64)
        if self.best is not None:
            arrays[BEST] = self.best.arrays()["values"]
        return arrays
