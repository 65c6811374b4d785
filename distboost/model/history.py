"""The losses, errors and notes of each round of a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.rows.messages import Losses


class Progress(NamedTuple):
    """The argument of callbacks, after each round.

    Attributes
    ----------
    round : int
        Rounds done, from 1.
    n_rounds : int
        Rounds requested.
    train_loss : float
        The algorithm's own loss on the training rows.
    train_error : float
        Fraction of the training rows misclassified.
    eval_loss, eval_error : float or None
        The same on the evaluation rows, if there are any.
    """

    round: int
    n_rounds: int
    train_loss: float
    train_error: float
    eval_loss: float | None = None
    eval_error: float | None = None


@dataclass
class History:
    """The losses, errors and notes of each round, and how the training ended."""

    train_loss: list[float] = field(default_factory=list)
    train_error: list[float] = field(default_factory=list)
    eval_loss: list[float] = field(default_factory=list)
    eval_error: list[float] = field(default_factory=list)
    notes: dict[str, list[float]] = field(default_factory=dict)
    outcome: str = ""

    def add(self, algorithm: Algorithm, losses: list[Losses], notes: Mapping[str, float]) -> None:
        """Add a round. `losses` holds those of the training rows and, if there are any, of the evaluation rows."""
        for name, value in notes.items():
            self.notes.setdefault(name, []).append(value)
        self.train_loss.append(algorithm.loss_of(losses[0]))
        self.train_error.append(losses[0].error)
        for evaluation in losses[1:]:
            self.eval_loss.append(algorithm.loss_of(evaluation))
            self.eval_error.append(evaluation.error)

    def best_round(self) -> int:
        """Return the first round with the least evaluation error; the last round without evaluation rows; 0 before the first."""
        return int(np.argmin(self.eval_error)) + 1 if self.eval_error else len(self.train_loss)

    def has_stalled(self, patience: int | None) -> bool:
        """Whether at least `patience` rounds have passed since the best one."""
        return patience is not None and len(self.eval_error) - self.best_round() >= patience

    def progress(self, n_rounds: int) -> Progress:
        """Return what callbacks are given after the last round."""
        evaluation = (self.eval_loss[-1], self.eval_error[-1]) if self.eval_error else (None, None)
        return Progress(
            len(self.train_loss), n_rounds, self.train_loss[-1], self.train_error[-1], *evaluation
        )
