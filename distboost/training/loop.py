"""The loop over rounds: the same for every algorithm and every runtime."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import NO_SPLIT, Algorithm, Round
from distboost.errors import LimitError
from distboost.model.ensemble import Ensemble
from distboost.model.history import History, Progress
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses, Step
from distboost.trees.grower import GrowthLimits, TreeGrower

# The logarithm of the largest loss: a round may multiply weights by e^(10 LARGEST_RATIO), and numbers hold e^709.
LARGEST_LOSS = 500.0

Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Schedule:
    """How long a training goes on, and how large its steps and trees are.

    Attributes
    ----------
    limits : GrowthLimits
        Of the trees.
    n_rounds : int
        Rounds in all, earlier ones included.
    learning_rate : float
        Multiplies each step.
    patience : int or None
        Rounds without a smaller evaluation error after which training stops; None: any number.
    callbacks : sequence of callables
        Each is called with a `Progress` after each round; training stops if one returns True.
    """

    limits: GrowthLimits
    n_rounds: int
    learning_rate: float = 1.0
    patience: int | None = None
    callbacks: Sequence[Callback] = ()


class Start(NamedTuple):
    """Where a training begins.

    Attributes
    ----------
    ensemble : Ensemble
        Gets the new rounds; it may have earlier ones.
    history : History or None
        Of the earlier rounds.
    best : Ensemble or None
        The earlier ensemble as it was after its best round, if later rounds have rewritten it.
    outcome : str or None
        How the earlier training ended, if it cannot go on.
    scores : ndarray of shape (n_rows, n_scores), float64, or None
        The ensemble's scores of the training rows, if it learned from other rows; None: its rounds are replayed.
    """

    ensemble: Ensemble
    history: History | None = None
    best: Ensemble | None = None
    outcome: str | None = None
    scores: np.ndarray | None = None


def _keep_nothing(ensemble: Ensemble, history: History, best: Ensemble) -> None:
    pass


def train(
    algorithm: Algorithm,
    rows: Rows,
    edges: list[np.ndarray],
    start: Start,
    schedule: Schedule,
    keep: Callable[[Ensemble, History, Ensemble], None] = _keep_nothing,
) -> History:
    """Adds rounds to the ensemble until all are done or there is a reason to stop.

    `keep` is called after each round with the ensemble, its history and the best ensemble so far.

    The history's outcome names the reason: "rounds" (all were done), "early stopping" (`patience` rounds without a smaller
    evaluation error), "callback" (one returned True), "no split" (no weak learner improves on one that changes nothing), or one
    of the algorithm's own.
    """
    ensemble, limits, patience = start.ensemble, schedule.limits, schedule.patience
    rows.begin(algorithm.weighting)
    if start.scores is None:
        history = _replayed(algorithm, rows, ensemble, edges, start.history)
    else:
        rows.continue_from(start.scores, len(ensemble))
        history = copy.deepcopy(start.history) or History()
    grow = TreeGrower(rows, limits)
    # An earlier training may have been stopped after its last round, before it noticed that it was the last.
    history.outcome = start.outcome or ("early stopping" if history.has_stalled(patience) else "rounds")
    best = ensemble.copy(history.best_round()) if start.best is None else start.best
    while len(ensemble) < schedule.n_rounds and history.outcome == "rounds":
        found = algorithm.learn(rows, grow)
        changes = any(np.any(learner.values) for learner in found.learners)
        same = algorithm.same_every_round and limits.same_every_round
        if not found.learners or (not changes and same):
            history.outcome = found.outcome or NO_SPLIT
            break
        if not changes:
            found = found._replace(outcome="")  # there may be more to gain from other rows and features
        steps = _take(ensemble, found, schedule.learning_rate, edges)
        if found.rewritten is None:
            ends = found.outcome or len(ensemble) == schedule.n_rounds
            statistic = None if ends else algorithm.statistic(rows.round + 1)
            losses = rows.update(steps, next_root=grow.next_root(statistic) if statistic else None)
        else:
            losses = rows.update(steps, from_zero=True, growth=found.growth)
        _check_growth(losses[0], len(ensemble), schedule.learning_rate)
        algorithm.on_steps(steps)
        history.add(algorithm, losses, found.notes)
        history.outcome = found.outcome or "rounds"
        if patience is not None and history.best_round() == len(ensemble):
            best = ensemble.copy()
        keep(ensemble, history, best)
        progress = history.progress(schedule.n_rounds)
        # A list: every callback is called, whatever an earlier one returns.
        stopped = any([callback(progress) is True for callback in schedule.callbacks])  # noqa: C419
        if history.outcome == "rounds":
            stalled = history.has_stalled(patience)
            history.outcome = "callback" if stopped else "early stopping" if stalled else "rounds"
    if patience is not None:
        ensemble.become(best)
    return history


def _check_growth(losses: Losses, round: int, learning_rate: float) -> None:
    """Raises LimitError while weights can still be computed with; steps of the size that lowers the loss never come there."""
    largest = float(losses.log_weights.max())
    if largest > LARGEST_LOSS:
        raise LimitError(
            f"after round {round} the loss of the training rows is e^{largest:.0f}, more than e^{LARGEST_LOSS:.0f}, about "
            f"what numbers hold: the steps overshoot further and further. learning_rate is {learning_rate}: give a smaller one."
        )


def _take(ensemble: Ensemble, found: Round, learning_rate: float, edges: list[np.ndarray]) -> list[Step]:
    """Adds a round to the ensemble; what is to be added to the scores (to 0, if the round rewrites earlier ones)."""
    values = [learning_rate * learner.values for learner in found.learners]
    ensemble.append([learner.weak for learner in found.learners], values, edges)
    if found.rewritten is not None:
        ensemble.rewrite([*found.rewritten, *values])
        return ensemble.steps(range(len(ensemble)), edges)
    parted = len(found.learners) == 1
    return [learner.weak.step(v, parted) for learner, v in zip(found.learners, values, strict=True)]


def _replayed(
    algorithm: Algorithm, rows: Rows, ensemble: Ensemble, edges: list[np.ndarray], earlier: History | None
) -> History:
    """Brings the rows to where the ensemble is."""
    history = History(notes={name: [] for name in algorithm.notes})
    for number in range(len(ensemble)):
        steps = ensemble.steps([number], edges)
        losses = rows.replay(steps, algorithm.corrective)
        if not algorithm.corrective:
            algorithm.on_steps(steps)
        notes = {name: earlier.notes[name][number] for name in algorithm.notes} if earlier else {}
        history.add(algorithm, losses, notes)
    if algorithm.corrective:
        algorithm.on_steps(ensemble.steps(range(len(ensemble)), edges))
    # Of a corrective algorithm's earlier rounds only the coefficients they have now are known: these are partial sums.
    if algorithm.corrective and earlier is not None:
        for name in ("train_loss", "train_error", "eval_loss", "eval_error"):
            known = getattr(earlier, name)[: len(ensemble)]
            if len(known) == len(getattr(history, name)):  # of the same sets of rows
                setattr(history, name, known)
    algorithm.restore_notes(history.notes)
    return history
