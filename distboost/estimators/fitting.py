"""Fit an estimator: check its data, choose where it runs, and train."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from typing import Any

from distboost.algorithms.base import Algorithm
from distboost.data.dataset import Dataset, RawDataset
from distboost.data.edges import load_merge
from distboost.data.profile import Profile
from distboost.data.row_weights import class_weights
from distboost.errors import ArgumentError, DataError
from distboost.estimators.ending import warn_of_end
from distboost.estimators.held_out import NAME as VALIDATION
from distboost.estimators.held_out import check_judged, held_out
from distboost.estimators.keeping import check_keepable, digest_of, header_of, set_learned, snapshot
from distboost.estimators.names import columns_named
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    calibration_method,
    check_compression,
    growth_limits,
    n_threads,
    seed_of,
)
from distboost.estimators.second_training import calibrated_by_second_training
from distboost.estimators.validation import Given, evaluation_data, finite_rows, training_data
from distboost.io.phases import SILENT, Phases
from distboost.model.calibration import check_method
from distboost.model.checkpoint import Checkpoint
from distboost.model.history import Watch
from distboost.runtime.base import Runtime
from distboost.runtime.choose import open_runtime
from distboost.runtime.peak import peak_bytes
from distboost.splits.tree_histograms import load_search
from distboost.threads import Threads, useful_threads
from distboost.training.calibration import calibrated
from distboost.training.events import Fitted, phases_of, tell_fitted, tell_start
from distboost.training.loop import Callback, Schedule
from distboost.training.memory_plan import parse_limit
from distboost.training.metrics import metric_name, row_metrics
from distboost.training.progress import progress_shown
from distboost.training.record import PlannedMemory, TrainingRecord
from distboost.training.resumption import Resumption
from distboost.training.run import Keeper, run
from distboost.training.staging import Staging


def fit_to(
    estimator: CommonParameters,
    given: Given,
    resumption: Resumption | None = None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Train the estimator, from the beginning or from the end of an earlier training."""
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
        staging = staging_of(estimator, data, [found.data for found in evaluations], runtime)
        least = staging.first_plan(lambda n_classes: algorithm_of(estimator, n_classes))
        profile = _adopted(staging.profile(least), resumption)
        algorithm = _checked_algorithm(estimator, profile)
        weights = class_weights(estimator.class_weight, profile)
        sets, estimator.memory_plan_ = stack.enter_context(staging.sets(profile, algorithm, weights))
        names = tuple(found.name for found in evaluations)
        if estimator.validation_fraction is not None:
            sets = held_out(sets[0], estimator.validation_fraction, len(profile.classes), runtime)
            names = (VALIDATION,)
        schedule = schedule_of(estimator, len(profile.classes), names, resumption, callbacks, phases)
        keeper = None
        if checkpoint is not None:
            keeper = Keeper(checkpoint, lambda learned: header_of(estimator, learned), algorithm.corrective)
        with staging.placed(sets, profile, algorithm, weights) as rows:
            first_round = time.perf_counter()
            learned = run(
                algorithm, rows, profile, schedule, resumption, keeper, partial(snapshot, estimator)
            )
            round_seconds, lost = time.perf_counter() - first_round, rows.workers_lost
            if keeper is not None:
                keeper.write(learned)
            counts = rows.counts[0]
            n_rows = {name: one.n_rows for name, one in zip(("train", *names), rows.counts, strict=True)}
            calibrates = estimator.calibration is not None and len(learned.ensemble) > 0
            if calibrates and names:
                learned = calibrated(calibration_method(estimator), algorithm, rows, learned, profile)
        del rows  # and its histograms: the second training needs the memory
        set_learned(estimator, learned)  # it is not lost if the second training fails
        if calibrates and not names and (resumption is None or not resumption.on_other_rows):
            learned = calibrated_by_second_training(estimator, staging, sets[0], profile, learned, counts)
        set_learned(estimator, learned)
        if keeper is not None and learned.calibration is not None:
            keeper.write(learned)
        workers = tuple(runtime.worker_peaks())
    n_new = learned.n_rounds - (0 if resumption is None else resumption.earlier.n_rounds)
    took = time.perf_counter() - began, n_new, round_seconds, peak_bytes(), workers, lost, n_rows
    _record(estimator, TrainingRecord(estimator.runtime_, *took))
    warn_of_end(learned.history.outcome, learned.n_rounds, schedule.n_rounds)


def _adopted(profile: Profile, resumption: Resumption | None) -> Profile:
    """Return the profile of the rows, with the bins of the earlier training if one is resumed."""
    if resumption is None:
        return profile
    resumption.check_task(profile)
    return resumption.adopted(profile)


def _checked_algorithm(estimator: CommonParameters, profile: Profile) -> Algorithm:
    """Return the algorithm for these classes; raise an error if it cannot train on the data as the parameters say."""
    n_classes = len(profile.classes)
    algorithm = algorithm_of(estimator, n_classes)
    algorithm.check()
    _check_learner(estimator, algorithm, profile)
    check_compression(estimator, n_classes)
    check_method(calibration_method(estimator), n_classes)
    return algorithm


def _record(estimator: CommonParameters, record: TrainingRecord) -> None:
    """Keep what the training took, and tell the callbacks that the model is done."""
    estimator.training_record_ = record
    planned = PlannedMemory.of(estimator.memory_plan_)
    tell_fitted(estimator.callbacks or (), lambda: Fitted(digest_of(estimator), record, planned))


def _check_learner(estimator: CommonParameters, algorithm: Algorithm, profile: Profile) -> None:
    """Raise DataError if there are categories, but no trees to split them."""
    if algorithm.needs_values and profile.categories:
        raise DataError(
            f"feature {min(profile.categories)} has categories, but the similarities of {type(estimator).__name__} are distances "
            "between numbers. Set categorical_features=None, or learn trees: weak_learner='tree'."
        )


def learn_more(estimator: CommonParameters, X: Any, y: Any) -> None:
    """Train `n_estimators` more rounds on rows X (n, n_features) in memory, which may differ from those of earlier rounds.

    The scores of the earlier rounds are computed from raw values, since other rows have other bin edges.
    """
    learned = estimator.learned_
    if not algorithm_of(estimator, len(learned.classes)).scores_suffice:
        raise DataError(
            f"{type(estimator).__name__} cannot continue on other rows: its rounds depend on more than the scores of the earlier "
            "ones. Train from the beginning: warm_start=False."
        )
    with Threads(n_threads(estimator)) as threads:
        scores = learned.ensemble.scores(finite_rows(estimator, X, threads), threads)
    fit_to(estimator, Given(X, y), Resumption(learned, scores))


def _loads(estimator: CommonParameters, data: Dataset) -> list[Callable[[], None]]:
    """Functions that load the kernels which the coordinator of a training needs first."""

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
        estimator.wait_for_workers,
        loads,
        type(estimator).__name__,
        phases,
    )


def callbacks_of(estimator: CommonParameters, stack: ExitStack) -> list[Callback]:
    """Return the callbacks of a training, its display included, which closes with the `stack`."""
    callbacks = list(estimator.callbacks or ())
    for callback in callbacks:
        if not callable(callback):
            raise ArgumentError(
                f"callbacks has {callback!r:.100}, which cannot be called. Give functions of a distboost.Progress."
            )
    if estimator.verbose:
        callbacks.append(stack.enter_context(progress_shown(type(estimator).__name__)))
    return callbacks


def staging_of(
    estimator: CommonParameters, data: Dataset, evaluations: Sequence[Dataset], runtime: Runtime
) -> Staging:
    """Return the staging of these rows, within the limits that the estimator gives."""
    return Staging(
        runtime,
        data,
        evaluations,
        growth_limits(estimator),
        estimator.max_bins,
        seed_of(estimator),
        estimator.score_dtype,
        any(rows.weighted for rows in (data, *evaluations)) or estimator.class_weight is not None,
        parse_limit(estimator.memory_limit),
        None if estimator.scratch is None else os.fspath(estimator.scratch),
        estimator.n_estimators,
    )


def schedule_of(
    estimator: CommonParameters,
    n_classes: int,
    sets: tuple[str, ...],
    resumption: Resumption | None,
    callbacks: Sequence[Callback],
    phases: Phases = SILENT,
) -> Schedule:
    """Return the length of a training that is evaluated on these `sets`."""
    name = metric_name(estimator.eval_metric)
    # Another algorithm than that of the training, whose state changes from round to round.
    metrics = row_metrics(estimator.eval_metric, algorithm_of(estimator, n_classes)) if sets else ()
    watch = Watch(sets, tuple(metric.name for metric in metrics), name, float(estimator.min_delta))
    if resumption is not None:
        resumption.check_watch(watch)
    return Schedule(
        growth_limits(estimator),
        estimator.n_estimators + (0 if resumption is None else resumption.rounds_before),
        estimator.learning_rate,
        estimator.early_stopping_rounds,
        estimator.on_separation == "stop",
        callbacks,
        watch if sets else Watch(),
        metrics,
        phases,
    )
