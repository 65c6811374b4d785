"""Fit an estimator: check its data, choose where it runs, and train."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

from distboost.algorithms.base import CONVERGED, NO_BETTER_THAN_CHANCE, NO_SPLIT, SEPARATED
from distboost.data.blocks import BinnedSet, Profile, TaskRunner
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.division import ByContent, by_content
from distboost.data.edges import load_merge
from distboost.errors import ArgumentError, DataError, TrainingEndedWarning
from distboost.estimators.keeping import check_keepable, digest_of, header_of, set_learned, snapshot
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    check_compression,
    n_threads,
    settings_of,
)
from distboost.estimators.validation import Given, columns_named, evaluation_data, finite_rows, training_data
from distboost.inputs.choose import adapter_of
from distboost.io.phases import SILENT, Phases
from distboost.model.checkpoint import Checkpoint
from distboost.model.learned import check_method
from distboost.probabilities.evaluation_rows import calibrated_by_evaluation_rows
from distboost.probabilities.second_training import SecondTraining
from distboost.runtime.base import Runtime, peak_bytes
from distboost.runtime.choose import open_runtime
from distboost.splits.tree_histograms import load_search
from distboost.threads import Threads, useful_threads
from distboost.training.events import Fitted, phases_of, progress_shown, tell_fitted, tell_start
from distboost.training.loop import Callback
from distboost.training.record import PlannedMemory, TrainingRecord
from distboost.training.resumption import Resumption
from distboost.training.staging import Problem, Staging
from distboost.training.training import CheckpointWriter, Training
from distboost.warn import warn_user

VALIDATION = "validation"


def check_judged(estimator: CommonParameters, has_eval_set: bool) -> None:
    """Raise DataError unless early stopping has rows to judge by, from one source."""
    fraction, rounds = estimator.validation_fraction, estimator.early_stopping_rounds
    if fraction is not None and has_eval_set:
        raise DataError(
            f"``validation_fraction={fraction}`` would leave out training rows, but there is an ``eval_set`` to judge by.",
            remedy="Pass ``validation_fraction=None``, or omit the ``eval_set``.",
        )
    if rounds is not None and fraction is None and not has_eval_set:
        raise DataError(
            f"``early_stopping_rounds={rounds}`` needs rows to judge by.",
            remedy="Pass ``eval_set=(X, y)``, or pass ``validation_fraction=0.1`` to leave out a tenth of the training rows.",
        )


def held_out(training: BinnedSet, fraction: float, n_classes: int, work: TaskRunner) -> list[BinnedSet]:
    """Return the rows to learn from, and those to judge by."""
    parts, _ = by_content(training, ByContent(1 - fraction, fraction), n_classes, work)
    if not parts.n_judge.any():
        raise DataError(
            f"``validation_fraction={fraction}`` leaves out none of {parts.n_rows} rows: there are too few, or too few that "
            "differ, and some rows of each class are kept.",
            remedy=f"Set a {'smaller' if fraction > 0.5 else 'larger'} fraction, or pass an eval_set.",
        )
    return [parts.learn, parts.judge]


# Ends that the caller asked for.
_WANTED = frozenset({"rounds", "early stopping", "callback"})

_REASONS = {
    SEPARATED: "a weak learner makes no error on the training rows. Pass ``on_separation='continue'`` to train all rounds, or "
    "allow only smaller trees",
    NO_SPLIT: "no split lowers the loss: rows of different classes have equal features, or the limits of the trees forbid every "
    "split. Check the features, ``min_samples_leaf`` and ``min_weight_fraction_leaf``, or train fewer rounds",
    CONVERGED: "no weak learner lowers the loss faster than the penalty allows. Set a smaller penalty (nu or penalty) or a "
    "larger C, or train fewer rounds",
    NO_BETTER_THAN_CHANCE: "the weak learner's error is too large to be of use. Allow larger trees (``max_depth``), or train "
    "``SAMMEClassifier``, which needs less of its weak learners",
}


def warn_of_end(outcome: str, rounds: int, wanted: int) -> None:
    """Warn the caller of `fit` if the training ended after `rounds` of the `wanted` rounds, unless the caller asked for it."""
    if rounds >= wanted or outcome in _WANTED:
        return
    reason = _REASONS.get(outcome, "the algorithm ended it")
    warn_user(
        f"training ended as {outcome!r} after {rounds} of {wanted} rounds: {reason}.",
        TrainingEndedWarning,
    )


# A second run goes beside the first if that takes no more memory, and has as many values: with fewer, both are mostly Python, in
# which only one thread runs at a time.
BESIDE_BYTES, BESIDE_VALUES = 2**30, 2**13


def fit_to(
    estimator: CommonParameters,
    given: Given,
    resumption: Resumption | None = None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Train the estimator, from the beginning or from the end of an earlier run."""
    began = time.perf_counter()
    check_judged(estimator, given.eval_set is not None)
    check_compression(estimator)
    data = training_data(estimator, given, resumed=resumption is not None)
    check_keepable(estimator)  # now, rather than after the training
    evaluations = evaluation_data(estimator, given.eval_set)
    with ExitStack() as stack:
        stack.enter_context(columns_named(estimator))
        callbacks = callbacks_of(estimator, stack)
        tell_start(estimator.callbacks or ())
        phases = phases_of(callbacks)
        n_entries = data.n_rows * data.n_features
        runtime = stack.enter_context(runtime_of(estimator, n_entries, _loads(estimator, data), phases))
        estimator.runtime_ = str(runtime)
        staging = Staging(settings_of(estimator), runtime, data, [found.data for found in evaluations])
        problem = staging.problem(_adopted(staging.profile(staging.first_plan()), resumption))
        _check(estimator, problem, staging.settings.calibration_method)
        n_classes = len(problem.profile.classes)
        sets, estimator.memory_plan_ = stack.enter_context(staging.sets(problem))
        names = tuple(found.name for found in evaluations)
        if estimator.validation_fraction is not None:
            sets = held_out(sets[0], estimator.validation_fraction, n_classes, runtime)
            names = (VALIDATION,)
        keeper = None
        if checkpoint is not None:
            keeper = CheckpointWriter(checkpoint, partial(header_of, estimator), problem.algorithm.corrective)
        schedule = staging.settings.schedule(n_classes, names, callbacks, phases, resumption)
        training = Training(
            staging, problem, sets, schedule, partial(snapshot, estimator), resumption, keeper
        )
        calibrates, calibrated = estimator.calibration is not None, None
        if calibrates and names:
            method = staging.settings.calibration_method
            calibrated = partial(calibrated_by_evaluation_rows, method, problem)
        second = None
        if calibrates and not names and not (resumption is not None and resumption.on_other_rows):
            second = stack.enter_context(SecondTraining(training, _may_run_beside(estimator, n_entries)))
        learned, counts, round_seconds, lost = training.rounds(calibrated, second.begin if second else None)
        set_learned(estimator, learned)  # it is not lost if the second training fails
        if second is not None and len(learned.ensemble):
            learned = second.calibrated(learned, counts[0])
            set_learned(estimator, learned)
        if keeper is not None and learned.calibration is not None:
            keeper.write(learned)
        workers = tuple(runtime.worker_peaks())
    n_new = learned.n_rounds - (0 if resumption is None else resumption.earlier.n_rounds)
    took = time.perf_counter() - began, n_new, round_seconds, peak_bytes(), workers, lost
    n_rows = {name: one.n_rows for name, one in zip(("train", *names), counts, strict=True)}
    _record(estimator, TrainingRecord(estimator.runtime_, *took, n_rows))
    warn_of_end(learned.history.outcome, learned.n_rounds, schedule.n_rounds)


def _may_run_beside(estimator: CommonParameters, n_entries: int) -> bool:
    """Whether a second run, which takes as much memory again, runs beside the first one if there are cores."""
    has_room = estimator.memory_limit is None and estimator.memory_plan_.n_bytes <= BESIDE_BYTES
    return has_room and n_entries >= BESIDE_VALUES


def _adopted(profile: Profile, resumption: Resumption | None) -> Profile:
    """Return the profile of the rows, with the bins of the earlier run if one is resumed."""
    if resumption is None:
        return profile
    resumption.check_task(profile)
    return resumption.adopted(profile)


def _check(estimator: CommonParameters, problem: Problem, method: str) -> None:
    """Raise an error if the estimator cannot learn from these data as its parameters say."""
    categories, n_classes = problem.profile.categories, len(problem.profile.classes)
    if problem.algorithm.needs_values and categories:
        raise DataError(
            f"feature {min(categories)} has categories, but the similarities of ``{type(estimator).__name__}`` are distances "
            "between numbers.",
            remedy="Pass ``categorical_features=None``, or learn trees: ``weak_learner='tree'``.",
        )
    check_compression(estimator, n_classes)
    check_method(method, n_classes)


def _record(estimator: CommonParameters, record: TrainingRecord) -> None:
    """Keep what the training took, and tell the callbacks that the model is done."""
    estimator.training_record_ = record
    planned = PlannedMemory.of(estimator.memory_plan_)
    tell_fitted(estimator.callbacks or (), lambda: Fitted(digest_of(estimator), record, planned))


def learn_more(estimator: CommonParameters, X: Any, y: Any) -> None:
    """Train `n_estimators` more rounds on rows X (n, n_features) in memory, which may differ from those of earlier rounds.

    The scores of the earlier rounds are computed from raw values, since other rows have other bin edges.
    """
    learned = estimator.learned_
    if not algorithm_of(estimator, len(learned.classes)).scores_suffice:
        raise DataError(
            f"``{type(estimator).__name__}`` cannot continue on other rows: its rounds depend on more than the scores of the "
            "earlier ones.",
            remedy="Train from the beginning: warm_start=False.",
        )
    rows = adapter_of(X, "X")
    with Threads(n_threads(estimator)) as threads:
        coded = rows.coded_for(learned.ensemble.categories)
        scores = learned.ensemble.scores(finite_rows(estimator, coded, threads), threads)
    fit_to(estimator, Given(rows, y), Resumption(learned, scores))


def _loads(estimator: CommonParameters, data: Dataset) -> list[Callable[[], None]]:
    """Functions that load the kernels which the coordinator of a training run needs first."""

    def load_gain() -> None:
        gain = algorithm_of(estimator, 2).gain
        if gain is not None:
            load_search(gain)

    return [load_merge, load_gain] if isinstance(data, RawDataset) else [load_gain]


def runtime_of(
    estimator: CommonParameters,
    n_entries: int,
    loads: list[Callable[[], None]],
    phases: Phases = SILENT,
) -> AbstractContextManager[Runtime]:
    """Open the runtime where the estimator trains on data of `n_entries`, rows times features.

    `loads` and `phases` are as for `open_runtime`.
    """
    return open_runtime(
        estimator.client,
        useful_threads(n_threads(estimator), n_entries),
        estimator.worker_timeout,
        wait_for_workers=estimator.wait_for_workers,
        loads=loads,
        holder=type(estimator).__name__,
        phases=phases,
    )


def callbacks_of(estimator: CommonParameters, stack: ExitStack) -> list[Callback]:
    """Return the callbacks of a training run, its display included, which closes with the `stack`."""
    callbacks = list(estimator.callbacks or ())
    for callback in callbacks:
        if not callable(callback):
            raise ArgumentError(
                f"callbacks has {callback!r:.100}, which is not callable.",
                remedy="Pass functions that take a distboost.Progress.",
                where="callbacks",
                value=callback,
            )
    if estimator.verbose:
        callbacks.append(stack.enter_context(progress_shown(type(estimator).__name__)))
    return callbacks
