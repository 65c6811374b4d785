"""A training run: place the rows, do the rounds, find the calibration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from distboost.data.blocks import BinnedSet
from distboost.model.checkpoint import Checkpoint
from distboost.model.create import new_ensemble
from distboost.model.ensemble import Ensemble
from distboost.model.learned import History, Learned
from distboost.process import single_blas
from distboost.rows.messages import RowCounts, Rows
from distboost.training.events import Beginning, told
from distboost.training.loop import Schedule, Start, train
from distboost.training.resumption import Resumption, data_digest
from distboost.training.staging import Problem, Staging


@dataclass(frozen=True)
class CheckpointWriter:
    """Writes what was learned to a checkpoint.

    Attributes
    ----------
    checkpoint : Checkpoint
    header : callable
        header(learned) returns the header of the model.
    whole : bool
        Whether every write replaces all rounds, because later rounds change earlier ones.
    """

    checkpoint: Checkpoint
    header: Callable[[Learned], dict[str, Any]]
    whole: bool

    def write(self, learned: Learned) -> None:
        """Write the checkpoint."""
        header = {**self.header(learned), "rounds": len(learned.ensemble)}
        self.checkpoint.write(header, learned, self.whole)


class Done(NamedTuple):
    """The rounds of a run are done.

    Attributes
    ----------
    learned : Learned
    counts : list of RowCounts
        Of the rows learned from, and of each set of evaluation rows.
    seconds : float
        What the rounds took.
    workers_lost : int
    """

    learned: Learned
    counts: list[RowCounts]
    seconds: float
    workers_lost: int


@dataclass(frozen=True)
class Training:
    """A training run on binned rows, from the beginning or from the end of an earlier run.

    Attributes
    ----------
    staging : Staging
        Where it runs, on which data, within which memory.
    problem : Problem
        What is to be learned.
    sets : sequence of BinnedSet
        The rows to learn from, then the sets of evaluation rows that the schedule names.
    schedule : Schedule
    model : callable
        model(learned) makes the model that a callback asks for.
    resumption : Resumption or None
        The earlier run.
    keeper : CheckpointWriter or None
        What writes checkpoints.
    """

    staging: Staging
    problem: Problem
    sets: Sequence[BinnedSet]
    schedule: Schedule
    model: Callable[[Learned], Any]
    resumption: Resumption | None = None
    keeper: CheckpointWriter | None = None

    def on_parts(self, sets: Sequence[BinnedSet], **schedule: Any) -> Training:
        """Return a run from the beginning, on parts of the rows, of which nobody is told; with changes of the schedule."""
        return replace(
            self, sets=sets, schedule=replace(self.schedule, **schedule), resumption=None, keeper=None
        )

    def rounds(
        self,
        calibrated: Callable[[Rows, Learned], Learned] | None = None,
        beside: Callable[[RowCounts], None] | None = None,
    ) -> Done:
        """Do the rounds, and write the last checkpoint.

        `calibrated(rows, learned)` returns what was learned with a calibration by the evaluation rows. `beside(counts)` is called
        before the rounds, with the counts of the rows to learn from.
        """
        with self.placed() as rows:
            if beside is not None:
                beside(rows.counts[0])
            start = time.perf_counter()
            learned = self.run(rows)
            seconds, lost = time.perf_counter() - start, rows.workers_lost
            if self.keeper is not None:
                self.keeper.write(learned)
            if calibrated is not None and len(learned.ensemble):
                learned = calibrated(rows, learned)
            return Done(learned, list(rows.counts), seconds, lost)

    def placed(self) -> AbstractContextManager[Rows]:
        """Hold the rows where they are learned from."""
        return self.staging.placed(self.sets, self.problem)

    def run(self, rows: Rows) -> Learned:
        """Do the rounds on placed rows."""
        problem, schedule, resumption = self.problem, self.schedule, self.resumption
        profile, algorithm = problem.profile, problem.algorithm
        data = data_digest(profile, rows.counts[0], by_number=schedule.limits.draws_rows)
        if resumption is None:
            start = Start(new_ensemble(algorithm, profile.n_features, profile.categories))
        else:
            data, start = resumption.joined_digest(data), resumption.start()
            start.ensemble.categories = profile.categories
            if self.keeper is not None:
                self.keeper.checkpoint.resume_from(resumption.earlier)

        def keep(ensemble: Ensemble, history: History, best: Ensemble) -> None:
            if self.keeper is not None and self.keeper.checkpoint.is_due(len(ensemble)):
                rewritten = algorithm.corrective and schedule.patience is not None
                kept = Learned(profile.classes, ensemble, history, best if rewritten else None, data)
                self.keeper.write(kept)

        def look(ensemble: Ensemble, history: History) -> Any:
            return self.model(Learned(profile.classes, ensemble, history, data=data))

        names = ("train", *schedule.watch.sets)
        beginning = Beginning(
            algorithm.name,
            len(start.ensemble),
            schedule.n_rounds,
            profile.n_features,
            len(profile.classes),
            {name: count.n_rows for name, count in zip(names, rows.counts, strict=True)},
        )
        # The coordinator's linear algebra is small, and its last digits depend on the number of threads.
        with told(schedule.callbacks, beginning) as end, single_blas():
            history = train(
                algorithm, rows, profile.edges, start=start, schedule=schedule, keep=keep, model=look
            )
            end(history)
        return Learned(profile.classes, start.ensemble, history, data=data)
