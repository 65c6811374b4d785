"""Learning curves: the error against the number of labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


class Point(NamedTuple):
    """A point of a learning curve: the committee after one run.

    Attributes
    ----------
    n_labelled : int
        Rows that the committee was trained on.
    error : float or None
        Error on the evaluation rows, a fraction; None without such rows.
    seconds : float
        Duration of the training.
    """

    n_labelled: int
    error: float | None
    seconds: float


@dataclass
class LearningCurve:
    """The result of `QueryByCommittee.run`.

    Attributes
    ----------
    strategy : str
    points : list of Point
        One point per run.
    outcome : str
        Why the loop stopped; empty while it runs.
    settings : dict of str to any
        Of curves that `learning_curves` returns: all that decided which rows were asked for, as a log has it.
    """

    strategy: str
    points: list[Point] = field(default_factory=list)
    outcome: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def n_labelled(self) -> np.ndarray:
        """Number of rows taught, (n_points,), int64."""
        return np.array([point.n_labelled for point in self.points], np.int64)

    @property
    def error(self) -> np.ndarray:
        """Errors on the evaluation rows as fractions, (n_points,), float64; NaN without such rows."""
        return np.array([math.nan if point.error is None else point.error for point in self.points])

    @property
    def seconds(self) -> np.ndarray:
        """Duration of each run in seconds, (n_points,), float64."""
        return np.array([point.seconds for point in self.points])

    def labels_to(self, error: float) -> int | None:
        """Return the smallest number of labels with which the error was at most `error`; None if it never was."""
        reached = np.flatnonzero(self.error <= error)
        return int(self.n_labelled[reached[0]]) if len(reached) else None

    def error_at(self, n_labels: np.ndarray) -> np.ndarray:
        """Return the error of the last committee with at most `n_labels` labels; NaN before the first and after the last.

        `n_labels` is an array (n,) of integers, and so is the shape of the result.
        """
        place = np.searchsorted(self.n_labelled, n_labels, side="right") - 1
        known = (place >= 0) & (n_labels <= self.n_labelled.max(initial=-1))
        return np.where(known, np.append(self.error, math.nan)[place], math.nan)
