"""What a training has learned, and the arrays that files keep of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from distboost.model.ensemble import Ensemble
from distboost.model.history import History

# Names of arrays in files, beside those of the ensemble.
HISTORIES = ("train_loss", "train_error", "eval_loss", "eval_error")
NOTE = "note "  # followed by the note's name
BEST = "best values"


class Learned(NamedTuple):
    """What a training has learned so far.

    Attributes
    ----------
    classes : ndarray
    ensemble : Ensemble
    history : History
        Of as many rounds, or more: early stopping keeps the best.
    best : Ensemble or None
        As it was after the best round, if later rounds have rewritten it.
    data : str or None
        The digest of the rows that it was learned from; None: not known, as of files of earlier versions.
    parameters : mapping or None
        The deciding parameters of the estimator that learned it, as JSON values.
    """

    classes: np.ndarray
    ensemble: Ensemble
    history: History
    best: Ensemble | None = None
    data: str | None = None
    parameters: Mapping[str, Any] | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds done, kept or not."""
        return len(self.history.train_loss)

    def arrays(self, first: int, last: int) -> dict[str, np.ndarray]:
        """What rounds first .. last - 1 have learned."""
        arrays = dict(self.ensemble.part(first, last).arrays())
        for name in HISTORIES:
            if getattr(self.history, name):
                arrays[name] = np.array(getattr(self.history, name)[first:last])
        for name, values in self.history.notes.items():
            arrays[NOTE + name] = np.array(values[first:last], np.float64)
        if self.best is not None:
            arrays[BEST] = self.best.arrays()["values"]
        return arrays
