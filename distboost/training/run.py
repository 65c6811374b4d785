"""One training: the loop over rounds, its checkpoint, and what it learned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from distboost.algorithms.base import Algorithm
from distboost.data.profile import Profile
from distboost.model.checkpoint import Checkpoint
from distboost.model.create import new_ensemble
from distboost.model.ensemble import Ensemble
from distboost.model.history import History
from distboost.model.learned import Learned
from distboost.rows.interface import Rows
from distboost.threads import single_blas
from distboost.training.events import Beginning, told
from distboost.training.loop import Schedule, Start, train
from distboost.training.resumption import Resumption, data_digest


@dataclass(frozen=True)
class Keeper:
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


def run(
    algorithm: Algorithm,
    rows: Rows,
    profile: Profile,
    schedule: Schedule,
    resumption: Resumption | None,
    keeper: Keeper | None,
    model: Callable[[Learned], Any],
) -> Learned:
    """Train on staged rows, from the beginning or from the end of an earlier training.

    `model(learned)` makes the model that a callback asks for.
    """
    data = data_digest(profile, rows.counts[0], by_number=schedule.limits.draws_rows)
    if resumption is None:
        start = Start(new_ensemble(algorithm, profile.n_features, profile.categories))
    else:
        data, start = resumption.joined_digest(data), resumption.start()
        start.ensemble.categories = profile.categories
        if keeper is not None:
            keeper.checkpoint.resume_from(resumption.earlier)

    def keep(ensemble: Ensemble, history: History, best: Ensemble) -> None:
        if keeper is not None and keeper.checkpoint.is_due(len(ensemble)):
            rewritten = algorithm.corrective and schedule.patience is not None
            keeper.write(Learned(profile.classes, ensemble, history, best if rewritten else None, data))

    def look(ensemble: Ensemble, history: History) -> Any:
        return model(Learned(profile.classes, ensemble, history, data=data))

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
        history = train(algorithm, rows, profile.edges, start, schedule, keep, look)
        end(history)
    return Learned(profile.classes, start.ensemble, history, data=data)
