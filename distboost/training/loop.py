"""The loop over rounds: the same for every algorithm and every runtime."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np

from distboost.algorithms.base import NO_SPLIT, Algorithm, Round
from distboost.errors import LimitError
from distboost.model.ensemble import Ensemble
from distboost.model.history import History, Progress
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses, Step
from distboost.trees.grower import GrowthLimits, TreeGrower

LARGEST_LOSS = (
    500.0  # its logarithm: a round may multiply weights by e^(10 LARGEST_RATIO), and numbers hold e^709
)


Callback = Callable[[Progress], object]


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
    keep: Callable[[Ensemble, History, Ensemble], None] = lambda ensemble, history, best: None,
    earlier: History | None = None,
    best: Ensemble | None = None,
    ended: str | None = None,
    scores: np.ndarray | None = None,
) -> History:
    """Adds rounds to the ensemble (after replaying those it has) until `n_rounds` or until there is a reason to stop.

    `keep` is called after each round with what has been learned and what was best; `earlier` is the history of an ensemble that
    has rounds, `best` what was best of one whose rounds were rewritten since, and `ended` the outcome of one that is not to be
    gone on from. `scores` are the ensemble's of these rows, where it has learned from others.

    The history's outcome names the reason: "rounds" (all were done), "early stopping" (`patience` rounds without a smaller
    evaluation error), "callback" (one returned True), "no split" (no weak learner improves on one that changes nothing), or one
    of the algorithm's own.
    """
    rows.begin(algorithm.weighting)
    if scores is None:
        history = _replayed(algorithm, rows, ensemble, edges, earlier)
    else:
        rows.continue_from(scores, len(ensemble))
        history = copy.deepcopy(earlier) or History()
    grow = TreeGrower(rows, limits)
    # A training that was stopped after a round, but before it was told so, ends here.
    history.outcome = ended or ("early stopping" if history.has_stalled(patience) else "rounds")
    best = ensemble.copy(history.best_round()) if best is None else best
    while len(ensemble) < n_rounds and history.outcome == "rounds":
        found = algorithm.learn(rows, grow)
        changes = any(np.any(learner.values) for learner in found.learners)
        same = algorithm.same_every_round and limits.same_every_round
        if not found.learners or (not changes and same):
            history.outcome = found.outcome or NO_SPLIT
            break
        if not changes:
            found = found._replace(outcome="")  # there may be more to gain from other rows and features
        steps = _take(ensemble, found, learning_rate, edges)
        if found.rewritten is None:
            ends = found.outcome or len(ensemble) == n_rounds
            statistic = None if ends else algorithm.statistic(rows.round + 1)
            losses = rows.update(steps, next_root=grow.next_root(statistic) if statistic else None)
        else:
            losses = rows.update(steps, from_zero=True, growth=found.growth)
        _check_growth(losses[0], len(ensemble), learning_rate)
        algorithm.on_steps(steps)
        history.add(algorithm, losses, found.notes)
        history.outcome = found.outcome or "rounds"
        if patience is not None and history.best_round() == len(ensemble):
            best = ensemble.copy()
        keep(ensemble, history, best)
        progress = history.progress(n_rounds)
        stopped = any([callback(progress) is True for callback in callbacks])  # noqa: C419 (every callback is told)
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
