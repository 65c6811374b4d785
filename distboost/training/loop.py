"""The loop over rounds: the same for every algorithm and every runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import NO_SPLIT, Algorithm, Round
from distboost.errors import LimitError
from distboost.io.phases import SILENT, Phases
from distboost.model.ensemble import Ensemble
from distboost.model.learned import NO_WATCH, History, Progress, Watch
from distboost.rows.messages import Losses, Rows, Step
from distboost.rows.row_metrics import RowMetric
from distboost.training.separation import AsPublished, Continued
from distboost.trees.grower import GrowthLimits, TreeGrower

# The logarithm of the largest loss allowed. A round may multiply weights by e^(10 LARGEST_RATIO); float64 overflows at e^709.
LARGEST_LOSS = 500.0

Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Schedule:
    """The length of a training run, and the size of its steps and trees.

    Attributes
    ----------
    limits : GrowthLimits
        The size of the trees.
    n_rounds : int
        Rounds in total, earlier ones included.
    learning_rate : float
        Factor of each step.
    patience : int or None
        Training stops after this many rounds without a better one. None: it never stops early.
    stops_when_separated : bool
        Whether training ends with a weak learner that makes no error.
    callbacks : sequence of callables
        Each is called with a `Progress` after each round; training stops if one returns True.
    watch : Watch
        The evaluation sets, and what tells the best round.
    metrics : tuple of RowMetric
        The metrics of evaluation sets besides loss and error.
    phases : Phases
        Who is told how many earlier rounds are replayed.
    """

    limits: GrowthLimits
    n_rounds: int
    learning_rate: float = 1.0
    patience: int | None = None
    stops_when_separated: bool = False
    callbacks: Sequence[Callback] = ()
    watch: Watch = NO_WATCH
    metrics: tuple[RowMetric, ...] = ()
    phases: Phases = SILENT


class Start(NamedTuple):
    """The initial state of the loop.

    Attributes
    ----------
    ensemble : Ensemble
        The ensemble of the earlier rounds, if any. The loop appends the new rounds to it.
    history : History or None
        The history of the earlier rounds.
    best : Ensemble or None
        The earlier ensemble as it was after its best round, if later rounds have changed that one.
    outcome : str or None
        How the earlier run ended, if it cannot continue.
    scores : ndarray of shape (n_rows, n_scores), float64, or None
        The ensemble's scores of the training rows, if it was trained on other rows. None: the loop replays its rounds.
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
    *,
    start: Start,
    schedule: Schedule,
    keep: Callable[[Ensemble, History, Ensemble], None] = _keep_nothing,
    model: Callable[[Ensemble, History], Any] | None = None,
) -> History:
    """Add rounds to the ensemble until all are done or there is a reason to stop.

    `keep` is called after each round with the ensemble, its history and the best ensemble so far. `model(ensemble, history)`
    makes the model that a callback asks for.

    The history's outcome names the reason: "rounds" (all rounds are done), "early stopping" (`patience` rounds without a
    better one), "callback" (a callback returned True), "no split" (no weak learner reduces the loss), or an
    outcome of the algorithm's own.
    """
    ensemble, limits, patience = start.ensemble, schedule.limits, schedule.patience
    rows.begin(algorithm.weighting, schedule.metrics)
    ensemble.scale_weights(rows.weight_scale)
    if start.scores is None:
        history = _replay(algorithm, rows, ensemble, edges=edges, earlier=start.history, schedule=schedule)
    else:
        rows.continue_from(start.scores, len(ensemble))
        history = _continued(start.history, algorithm, schedule.watch)
    grow = TreeGrower(rows, limits)
    learn = (AsPublished if schedule.stops_when_separated else Continued)(algorithm)
    # An earlier run may have been interrupted after its last round, before it recorded that this was the last.
    history.outcome = start.outcome or ("early stopping" if history.has_stalled(patience) else "rounds")
    best = ensemble.copy(history.best_round()) if start.best is None else start.best
    same = algorithm.same_every_round and limits.same_every_round
    while (number := len(ensemble) + 1) <= schedule.n_rounds and history.outcome == "rounds":
        found = learn(rows, grow)
        changes = found.changes_scores
        if not found.learners or (not changes and same):
            history.outcome = found.outcome or NO_SPLIT
            break
        if not changes:
            found = found._replace(outcome="")  # the next round may draw better rows and features
        steps = _add_round(ensemble, found, schedule.learning_rate, edges)
        if found.rewritten is None:
            ends = found.outcome or number == schedule.n_rounds
            statistic = None if ends else algorithm.statistic(rows.round + 1)
            losses = rows.update(steps, next_root=grow.next_root(statistic) if statistic else None)
        else:
            losses = rows.update(steps, from_zero=True, growth=found.growth)
        _check_growth(losses[0], number, schedule.learning_rate)
        algorithm.on_steps(steps)
        history.add(algorithm, losses, found.notes)
        history.outcome = found.outcome or "rounds"
        if patience is not None and history.best_round() == number:
            best = ensemble.copy()
        keep(ensemble, history, best)
        stopped = _call_back(schedule, ensemble, history, model)
        if history.outcome == "rounds":
            stalled = history.has_stalled(patience)
            history.outcome = "callback" if stopped else "early stopping" if stalled else "rounds"
    if patience is not None:
        ensemble.assign(best)
    return history


def _call_back(
    schedule: Schedule, ensemble: Ensemble, history: History, model: Callable[[Ensemble, History], Any] | None
) -> bool:
    """Call all callbacks after a round; return whether one wants to stop."""
    if not schedule.callbacks:
        return False
    now, n_rounds = ensemble.copy(), history.n_rounds  # later rounds change neither

    def current() -> Any:
        if model is None:
            raise RuntimeError("this run has no estimator.")
        return model(now.copy(), history.until(n_rounds))

    return one_stops(schedule.callbacks, history.progress(schedule.n_rounds, current))


def one_stops(callbacks: Iterable[Callable[[Any], object]], now: Any) -> bool:
    """Call every callback with what there is now; return whether one of them returned True, of Python or of NumPy."""
    answers = [callback(now) for callback in callbacks]
    return any(isinstance(answer, bool | np.bool_) and bool(answer) for answer in answers)


def _check_growth(losses: Losses, round: int, learning_rate: float) -> None:
    """Raise LimitError before weights overflow. Steps that lower the loss never get near the limit."""
    largest = float(losses.log_weights.max())
    if largest > LARGEST_LOSS:
        raise LimitError(
            f"after round {round} the loss of the training rows is e^{largest:.0f}, above the limit e^{LARGEST_LOSS:.0f}: the "
            "steps overshoot and diverge.",
            remedy="Set smaller alphas or a smaller eta where these are the steps, else a smaller ``learning_rate`` than "
            f"{learning_rate}.",
        )


def _add_round(ensemble: Ensemble, found: Round, learning_rate: float, edges: list[np.ndarray]) -> list[Step]:
    """Append a round to the ensemble; return the steps to add to the scores (from zero, if the round rewrites earlier ones)."""
    weak, exact = zip(*found.learners, strict=True)
    values = [learning_rate * of_leaves for of_leaves in exact]
    ensemble.append(weak, values, edges)
    if found.rewritten is not None:
        ensemble.rewrite([*found.rewritten, *values])
        return ensemble.steps(range(len(ensemble)), edges)
    partitioned = len(found.learners) == 1
    return [learner.step(v, partitioned) for learner, v in zip(weak, values, strict=True)]


def _continued(earlier: History | None, algorithm: Algorithm, watch: Watch) -> History:
    """Return the history of a training run on other rows, with the losses that the earlier rows had."""
    history = History.of(algorithm.notes, watch)
    if earlier is not None:
        history.train_loss, history.train_error = [*earlier.train_loss], [*earlier.train_error]
        history.notes = {name: [*values] for name, values in earlier.notes.items()}
    return history


def _replay(
    algorithm: Algorithm,
    rows: Rows,
    ensemble: Ensemble,
    *,
    edges: list[np.ndarray],
    earlier: History | None,
    schedule: Schedule,
) -> History:
    """Replay the ensemble on the rows; return the history of its rounds."""
    history, n_rounds = History.of(algorithm.notes, schedule.watch), len(ensemble)
    with schedule.phases.begin("replay", n_rounds, "rounds") as advance:
        for number in range(n_rounds):
            steps = ensemble.steps([number], edges)
            losses = rows.replay(steps, algorithm.corrective)
            if not algorithm.corrective:
                algorithm.on_steps(steps)
            notes = {name: earlier.notes[name][number] for name in algorithm.notes} if earlier else {}
            history.add(algorithm, losses, notes)
            advance(1)
    if algorithm.corrective:
        algorithm.on_steps(ensemble.steps(range(len(ensemble)), edges))
    # Only the latest coefficients of a corrective algorithm are stored: the losses of the replay are those of partial sums.
    if algorithm.corrective and earlier is not None:
        history.take_losses(earlier)
    algorithm.restore_notes(history.notes)
    return history
