"""One run of a cross-validation: learn from all folds but one, and judge by that one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from distboost.estimators.fitting import callbacks_of
from distboost.estimators.keeping import set_learned, snapshot
from distboost.estimators.parameters import CommonParameters, algorithm_of, check_compression, settings_of
from distboost.evaluation.sums import PROBABILITIES, RANKING
from distboost.io.phases import SILENT
from distboost.io.progress import bar
from distboost.model.learned import Learned
from distboost.probabilities.second_training import SecondTraining
from distboost.selection.ground import Fold, Ground
from distboost.selection.judging import judged
from distboost.training.resumption import Resumption
from distboost.training.staging import Staging
from distboost.training.training import Training

HELD_OUT = "held out"  # the name of the rows to judge by, as evaluation rows


@dataclass(frozen=True)
class Trial:
    """What came of one run.

    Attributes
    ----------
    metrics : dict of str to float
    fit_time, score_time : float
        Seconds.
    model : CommonParameters
        The fitted estimator.
    """

    metrics: dict[str, float]
    fit_time: float
    score_time: float
    model: CommonParameters


@contextmanager
def trials_shown(title: str, total: int, verbose: int) -> Iterator[Callable[[str], None]]:
    """Show how many of the runs are done, if `verbose` is not 0. Yield a function to call after each, with its results."""
    if not verbose:
        yield lambda _: None
        return
    numbers = count(1)
    with bar(title, total) as draw:
        draw(0)
        yield lambda beside: draw(next(numbers), beside)


def tried(
    model: CommonParameters,
    ground: Ground,
    number: int,
    groups: Mapping[str, str],
    *,
    watched: bool = False,
    earlier: Learned | None = None,
) -> Trial:
    """Fit a model to the rows outside of a fold, and judge it by the rows in the fold.

    Parameters
    ----------
    model : CommonParameters
        An estimator with `n_features_in_`. It is fitted.
    ground : Ground
    number : int
        The number of the fold.
    groups : mapping of str to str
        The group of each metric.
    watched : bool
        Whether the held-out rows are evaluated after each round.
    earlier : Learned or None
        Earlier rounds of the same run, which goes on.
    """
    start = time.perf_counter()
    keep_values = algorithm_of(model, len(ground.profile.classes)).needs_values
    fold = ground.fold(number, model, keep_values)
    probable = not {PROBABILITIES, RANKING}.isdisjoint(groups.values())
    set_learned(model, _learned(model, ground, fold, watched=watched, probable=probable, earlier=earlier))
    fitted = time.perf_counter()
    metrics = judged(
        model, fold.judge, fold.profile, weighted=ground.store.weighted, groups=groups, work=ground.runtime
    )
    return Trial(metrics, fitted - start, time.perf_counter() - fitted, model)


def _learned(
    model: CommonParameters,
    ground: Ground,
    fold: Fold,
    *,
    watched: bool,
    probable: bool,
    earlier: Learned | None,
) -> Learned:
    """Train, and calibrate if probabilities are wanted."""
    resumption = None if earlier is None else Resumption(earlier)
    n_classes = len(fold.profile.classes)
    check_compression(model, n_classes)
    staging = Staging(settings_of(model), ground.runtime, ground.store)
    sets, names = ([fold.learn, fold.judge], (HELD_OUT,)) if watched else ([fold.learn], ())
    with ExitStack() as stack:
        callbacks = callbacks_of(model, stack)
        schedule = staging.settings.schedule(n_classes, names, callbacks, SILENT, resumption)
        problem = staging.problem(fold.profile)
        training = Training(staging, problem, sets, schedule, partial(snapshot, model), resumption)
        learned, counts, *_ = training.rounds()
        if probable and model.calibration is not None and len(learned.ensemble):
            with SecondTraining(training) as second:
                learned = second.calibrated(learned, counts[0])
    return learned
