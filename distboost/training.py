"""The loop over rounds: the same for every algorithm and every runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.model import Ensemble
from distboost.rows import Losses, Rows
from distboost.weak.tree import GrowthLimits, TreeGrower


class Progress(NamedTuple):
    """What a callback is told after each round.

    Attributes
    ----------
    round : int
        Rounds done, from 1.
    n_rounds : int
        Rounds asked for.
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


Callback = Callable[[Progress], object]

SEPARATED = "separated"


@dataclass
class History:
    """What each round gave, and how the training ended."""

    train_loss: list[float] = field(default_factory=list)
    train_error: list[float] = field(default_factory=list)
    eval_loss: list[float] = field(default_factory=list)
    eval_error: list[float] = field(default_factory=list)
    outcome: str = ""

    def add(self, algorithm: Algorithm, losses: list[Losses]) -> None:
        self.train_loss.append(algorithm.loss(losses[0]))
        self.train_error.append(losses[0].error)
        for evaluation in losses[1:]:
            self.eval_loss.append(algorithm.loss(evaluation))
            self.eval_error.append(evaluation.error)

    def best_round(self) -> int:
        """The first round of least evaluation error (of all rounds, if there are no evaluation rows); 0 before the first."""
        return int(np.argmin(self.eval_error)) + 1 if self.eval_error else len(self.train_loss)

    def progress(self, n_rounds: int) -> Progress:
        evaluation = (self.eval_loss[-1], self.eval_error[-1]) if self.eval_error else (None, None)
        return Progress(
            len(self.train_loss), n_rounds, self.train_loss[-1], self.train_error[-1], *evaluation
        )


def train(
    algorithm: Algorithm,
    rows: Rows,
    limits: GrowthLimits,
    ensemble: Ensemble,
    edges: list[np.ndarray],
    *,
    n_rounds: int,
    learning_rate: float,
    patience: int | None,
    callbacks: Sequence[Callback],
    keep: Callable[[Ensemble, History], None] = lambda ensemble, history: None,
    ended: str | None = None,
) -> History:
    """Adds rounds to the ensemble (after replaying those it has) until `n_rounds` or until there is a reason to stop.

    `keep` is called after each round with what has been learned; `ended` is the outcome of an ensemble that is not to be gone
    on from. The history's outcome names the reason: "rounds" (all were
    done), "early stopping" (`patience` rounds without a smaller evaluation error), "callback" (one returned True),
    "separated" (the last weak learner made no error: its step was cut off), or "no split" (no tree improves on a single leaf
    that changes nothing).
    """
    history = History()
    rows.begin(algorithm.weighting)
    for number in range(len(ensemble)):
        history.add(algorithm, rows.replay(*ensemble.binned(number, edges)))
    grow = TreeGrower(rows, limits, rows.n_classes)
    history.outcome = ended or "rounds"
    while len(ensemble) < n_rounds and history.outcome == "rounds":
        learner = algorithm.learn(rows, grow)
        if not np.any(learner.values) and limits.same_every_round:
            history.outcome = "no split"
            break
        values = learning_rate * learner.values
        losses = rows.update(learner.tree.binned, learner.tree.leaves, values)
        ensemble.append(learner.tree.binned, learner.tree.gain, values, edges)
        history.add(algorithm, losses)
        if learner.separates:
            history.outcome = SEPARATED
        keep(ensemble, history)
        progress = history.progress(n_rounds)
        stopped = any([callback(progress) is True for callback in callbacks])  # noqa: C419 (every callback is told)
        impatient = patience is not None and len(history.eval_error) - history.best_round() >= patience
        if history.outcome == "rounds":
            history.outcome = "callback" if stopped else "early stopping" if impatient else "rounds"
    if patience is not None:
        ensemble.truncate(history.best_round())
    return history
