"""Plan the memory of a training run, before there are data."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from distboost.algorithms.constraints import Interval, validate_parameters
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    check_compression,
    check_own,
    settings_of,
)
from distboost.estimators.parameters import n_threads as threads_of
from distboost.io.storage import local_path
from distboost.threads import useful_threads
from distboost.training.memory_plan import MemoryPlan, plan_memory

_COUNT = Interval(Integral, 1, None, closed="left")
_ALLOWED: Mapping[str, Any] = {
    "n_rows": [_COUNT],
    "n_features": [_COUNT],
    "n_classes": [Interval(Integral, 2, None, closed="left")],
    "n_workers": [_COUNT, None],
    "n_threads": [_COUNT, None],
}


def plan(
    estimator: CommonParameters,
    n_rows: int,
    n_features: int,
    n_classes: int,
    *,
    n_workers: int | None = None,
    n_threads: int | None = None,
    weighted: bool = False,
    remote: bool | None = None,
) -> MemoryPlan:
    """Plan how much memory each part of a training run needs, and how many rows stay in memory within the `memory_limit`.

    Parameters
    ----------
    estimator : classifier
        The estimator with its parameters: `memory_limit`, the size of its trees, `max_bins`, ..
    n_rows : int
        The number of training rows, plus those of an evaluation set.
    n_features, n_classes : int
    n_workers : int or None, default=None
        The number of Dask workers. None: train in one process.
    n_threads : int or None, default=None
        The number of threads of that process, or of each worker. None: the estimator's `n_jobs`, or one.
    weighted : bool, default=False
        Whether there are sample or class weights.
    remote : bool or None, default=None
        Whether rows that stream are read from a URL. None: whether the estimator's `scratch` is one, for rows that are not binned
        yet; those of a binned store are read where it is.

    Returns
    -------
    MemoryPlan

    Raises
    ------
    ValueError
        If a number is invalid. The message names the valid ones.
    distboost.errors.LimitError
        If `memory_limit` is too small for any run. The message names a sufficient limit.

    Examples
    --------
    >>> import distboost
    >>> model = distboost.GDMCBoostClassifier(memory_limit="1GB")
    >>> plan = distboost.plan(model, n_rows=4_200_000, n_features=256, n_classes=5, n_threads=2)
    >>> plan.resident + plan.streamed, plan.n_bytes <= 10**9
    (4200000, True)
    """
    check_own(estimator)
    estimator.validate()
    given = {
        "n_rows": n_rows, "n_features": n_features, "n_classes": n_classes, "n_workers": n_workers, "n_threads": n_threads,
    }  # fmt: skip
    validate_parameters(_ALLOWED, given, "plan")
    check_compression(estimator, n_classes)
    settings = settings_of(estimator)
    if remote is None:
        remote = local_path(settings.scratch or "") is None
    task = settings.task(algorithm_of(estimator, n_classes), n_rows, n_features, weighted, is_remote=remote)
    on_cluster = n_workers is not None
    alone = 1 if on_cluster else useful_threads(threads_of(estimator), n_rows * n_features)
    threads = n_threads or alone
    limit = settings.memory_limit
    return plan_memory(task, limit, n_workers or 1, threads, on_cluster=on_cluster, leader_limit=limit)
