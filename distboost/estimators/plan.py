"""What a training of an estimator would take, before there are data."""

from __future__ import annotations

import numpy as np

from distboost.estimators.parameters import CommonParameters, algorithm_of, growth_limits
from distboost.estimators.parameters import n_threads as threads_of
from distboost.threads import available_cores
from distboost.training.memory_plan import MemoryPlan, Task, parse_limit, plan_memory


def plan(
    estimator: CommonParameters,
    n_rows: int,
    n_features: int,
    n_classes: int,
    *,
    n_workers: int | None = None,
    n_threads: int | None = None,
    weighted: bool = False,
) -> MemoryPlan:
    """The memory that a training would take, part by part, and the rows that its `memory_limit` lets stay in memory.

    Parameters
    ----------
    estimator : classifier
        With its parameters: `memory_limit`, the size of its trees, `max_bins`, ..
    n_rows, n_features, n_classes : int
        Of the training rows; add the rows of an evaluation set.
    n_workers : int or None, default=None
        Dask workers; None: in one process.
    n_threads : int or None, default=None
        Of that process, or of each worker; None: the estimator's `n_jobs`, or one.
    weighted : bool, default=False
        Whether there are sample or class weights.

    Returns
    -------
    MemoryPlan

    Raises
    ------
    distboost.errors.LimitError
        If `memory_limit` is too small to train at all; the message says what would do.

    Examples
    --------
    >>> import distboost
    >>> model = distboost.GDMCBoostClassifier(memory_limit="1GB")
    >>> plan = distboost.plan(model, n_rows=4_200_000, n_features=256, n_classes=5, n_threads=2)
    >>> plan.resident + plan.streamed, plan.n_bytes <= 10**9
    (4200000, True)
    """
    estimator.validate()
    task = Task(
        algorithm_of(estimator, n_classes),
        growth_limits(estimator),
        n_rows,
        n_features,
        estimator.max_bins,
        np.dtype(estimator.score_dtype).itemsize,
        weighted or estimator.class_weight is not None,
        n_rounds=estimator.n_estimators,
    )
    on_cluster = n_workers is not None
    threads = n_threads or (1 if on_cluster else threads_of(estimator) or available_cores())
    return plan_memory(
        task, parse_limit(estimator.memory_limit), n_workers or 1, threads, on_cluster=on_cluster
    )
