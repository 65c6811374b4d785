"""Fit an estimator: check its data, choose where it runs, and train."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from distboost.data.dataset import Dataset, RawDataset
from distboost.data.edges import load_merge
from distboost.data.row_weights import class_weights
from distboost.errors import DataError
from distboost.estimators.ending import warn_of_end
from distboost.estimators.keeping import check_keepable, header_of, set_learned
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    check_compression,
    growth_limits,
    n_threads,
    seed_of,
)
from distboost.estimators.validation import Given, checked_rows, evaluation_data, training_data
from distboost.model.checkpoint import Checkpoint
from distboost.runtime.base import Runtime
from distboost.runtime.choose import open_runtime
from distboost.splits.tree_histograms import load_search
from distboost.threads import Threads
from distboost.training.loop import Schedule
from distboost.training.memory_plan import parse_limit
from distboost.training.progress import progress_bar
from distboost.training.resumption import Resumption
from distboost.training.run import Keeper, run
from distboost.training.staging import Staging


def fit_to(
    estimator: CommonParameters,
    given: Given,
    resumption: Resumption | None = None,
    checkpoint: Checkpoint | None = None,
) -> None:
    """Train the estimator, from the beginning or from the end of an earlier training. Warnings name the caller's caller."""
    if estimator.early_stopping_rounds is not None and given.eval_set is None:
        raise DataError(
            f"early_stopping_rounds={estimator.early_stopping_rounds} needs an eval_set. Call fit(..., eval_set=(X, y))."
        )
    check_compression(estimator)
    data = training_data(estimator, given)
    check_keepable(estimator)  # now, rather than after the training
    evaluation = evaluation_data(estimator, given.eval_set)
    with ExitStack() as stack:
        runtime = stack.enter_context(
            open_runtime(
                estimator.client,
                n_threads(estimator),
                estimator.worker_timeout,
                estimator.wait_for_workers,
                _loads(estimator, data),
            )
        )
        staging = _staging(estimator, data, evaluation, runtime)
        least = staging.first_plan(lambda n_classes: algorithm_of(estimator, n_classes))
        profile = staging.profile(least)
        if resumption is not None:
            resumption.check_task(profile)
        algorithm = algorithm_of(estimator, len(profile.classes))
        algorithm.check()
        check_compression(estimator, len(profile.classes))
        weights = class_weights(estimator.class_weight, profile)
        rows, estimator.memory_plan_ = stack.enter_context(staging.rows(profile, algorithm, weights))
        schedule = _schedule(estimator, resumption, stack)
        keeper = None
        if checkpoint is not None:
            keeper = Keeper(checkpoint, lambda learned: header_of(estimator, learned), algorithm.corrective)
        learned = run(algorithm, rows, profile, schedule, resumption, keeper)
        set_learned(estimator, learned)
        if keeper is not None:
            keeper.write(learned)
    warn_of_end(learned.history.outcome, learned.n_rounds, schedule.n_rounds)


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
        scores = learned.ensemble.scores(checked_rows(estimator, X, threads), threads)
    fit_to(estimator, Given(X, y), Resumption(learned, scores))


def _loads(estimator: CommonParameters, data: Dataset) -> list[Callable[[], None]]:
    """Functions that load the kernels which the coordinator of a training needs first."""

    def load_gain() -> None:
        gain = algorithm_of(estimator, 2).gain
        if gain is not None:
            load_search(gain)

    return [load_merge, load_gain] if isinstance(data, RawDataset) else [load_gain]


def _staging(
    estimator: CommonParameters, data: Dataset, evaluation: RawDataset | None, runtime: Runtime
) -> Staging:
    return Staging(
        runtime,
        data,
        evaluation,
        growth_limits(estimator),
        estimator.max_bins,
        seed_of(estimator),
        estimator.score_dtype,
        data.weighted or estimator.class_weight is not None,
        parse_limit(estimator.memory_limit),
        None if estimator.scratch is None else os.fspath(estimator.scratch),
        estimator.n_estimators,
    )


def _schedule(estimator: CommonParameters, resumption: Resumption | None, stack: ExitStack) -> Schedule:
    callbacks = list(estimator.callbacks or ())
    if estimator.verbose:
        callbacks.append(stack.enter_context(progress_bar(type(estimator).__name__)))
    return Schedule(
        growth_limits(estimator),
        estimator.n_estimators + (0 if resumption is None else resumption.rounds_before),
        estimator.learning_rate,
        estimator.early_stopping_rounds,
        estimator.on_separation == "stop",
        callbacks,
    )
