"""Learning curves: the error against the number of labels, as numbers and as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Point(NamedTuple):
    """The committee after a training.

    Attributes
    ----------
    n_labelled : int
        Rows it was trained on.
    error : float or None
        On the evaluation rows, as a fraction.
    seconds : float
        That the training took.
    """

    n_labelled: int
    error: float | None
    seconds: float


@dataclass
class LearningCurve:
    """What `QueryByCommittee.run` measured.

    Attributes
    ----------
    strategy : str
    points : list of Point
        After each training.
    outcome : str
        Why it ended; empty while it runs.
    """

    strategy: str
    points: list[Point] = field(default_factory=list)
    outcome: str = ""

    @property
    def n_labelled(self) -> np.ndarray:
        """Rows taught, (n_points,)."""
        return np.array([point.n_labelled for point in self.points], np.int64)

    @property
    def error(self) -> np.ndarray:
        """Errors on the evaluation rows as fractions, (n_points,); NaN where none were given."""
        return np.array([math.nan if point.error is None else point.error for point in self.points])

    @property
    def seconds(self) -> np.ndarray:
        """That each training took, (n_points,)."""
        return np.array([point.seconds for point in self.points])

    def labels_to(self, error: float) -> int | None:
        """The least number of labels with which the error was at most this; None if it never was."""
        reached = np.flatnonzero(self.error <= error)
        return int(self.n_labelled[reached[0]]) if len(reached) else None

    def error_at(self, n_labels: np.ndarray) -> np.ndarray:
        """The error of the last committee with at most so many labels, as `n_labels`; NaN before the first and after the last."""
        place = np.searchsorted(self.n_labelled, n_labels, side="right") - 1
        known = (place >= 0) & (n_labels <= self.n_labelled.max(initial=-1))
        return np.where(known, np.append(self.error, math.nan)[place], math.nan)
