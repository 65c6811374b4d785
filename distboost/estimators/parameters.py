"""The parameters that all boosting classifiers share, and what they mean for a training."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from distboost.algorithms.base import LEARNING_RATE, Algorithm, parameter
from distboost.algorithms.constraints import Interval, Options, RealNotInt, StrOptions
from distboost.model.files import as_json
from distboost.training.loop import Callback
from distboost.trees.grower import GrowthLimits

# These say where and how training runs: they do not change the model, and files do not keep them.
RUN_PARAMETERS = frozenset(
    {
        "missing_chunks",
        "memory_limit",
        "scratch",
        "checkpoint",
        "checkpoint_every",
        "worker_timeout",
        "n_jobs",
        "verbose",
        "callbacks",
    }
)

_POSITIVE = Interval(Integral, 1, None, closed="left")
_FRACTION = Interval(Real, 0, 1, closed="right")


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters(BaseEstimator):
    """The parameters that all boosting classifiers share.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds: weak learners. Early stopping may use fewer.
    learning_rate : float, default=1.0
        Shrinkage: each step is multiplied by it, by at most 10. Steps that overshoot further and further are an error.
    max_bins : int, default=255
        The most bins of a feature, missing values not counted. A feature with at most so many distinct values is binned exactly.
    min_samples_leaf : int, default=1
        The fewest rows (of weight above 0) on either side of a split.
    min_weight_fraction_leaf : float, default=0.0
        The least fraction of the total sample weight on either side of a split.
    subsample : float, default=1.0
        The fraction of rows each round learns from. Which rows depends on `random_state`, the round and the row's number alone.
    max_features : float or int, default=1.0
        The fraction, or the number, of features each round may split on.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes (1 if not given); "balanced": n_samples / (n_classes * rows of the class).
    early_stopping_rounds : int or None, default=None
        Stop after so many rounds without a smaller error on the `eval_set`, and keep the best round.
    score_dtype : {"float64", "float32"}, default="float64"
        Type of the scores kept per row while training.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
        What to do about chunks of a zarr array that were never written, in training and in prediction: zarr reads them as the
        fill value.
    memory_limit : int, str or None, default=None
        Bytes (or a text such as "2GB") that one process may take in all, libraries included. What does not fit is streamed from
        disk; a limit too small even for that is refused before a row is read. None: on a cluster, what Dask allows its workers
        before they spill; in this process, no limit. Prediction has no limit: it takes as much as the rows that are given, or of
        lazy ones as Dask's chunks.
    scratch : str, path or None, default=None
        Directory or URL for what does not fit in memory, shared by all workers. None: the system's directory for temporary files,
        and for scores the workers' own.
    checkpoint : str or None, default=None
        Folder or URL where what has been learned is kept while training, and at the end. `fit(..., resume=True)` goes on from it,
        and `distboost.load` reads it.
    checkpoint_every : int or str, default=10
        Rounds from one time to the next, or seconds as a text such as "30s".
    worker_timeout : float, default=30.0
        On a cluster: seconds without a sign of life after which a worker is given up, and its rows are read again by others.
    n_jobs : int or None, default=None
        Threads where training or prediction runs in this process; None or -1: one per core. On a cluster, and where prediction
        is lazy, Dask has its own number.
    random_state : int, RandomState instance or None, default=0
        The seed; None is 0: equal inputs always give equal models.
    verbose : int, default=0
        1: a progress bar.
    callbacks : list of callables or None, default=None
        Each is called with a `distboost.Progress` after each round; training stops if it returns True.
    """

    n_estimators: int = parameter(100, _POSITIVE)
    learning_rate: float = parameter(1.0, LEARNING_RATE)
    max_bins: int = parameter(255, Interval(Integral, 2, 255, closed="both"))
    min_samples_leaf: int = parameter(1, _POSITIVE)
    min_weight_fraction_leaf: float = parameter(0.0, Interval(Real, 0, 0.5, closed="both"))
    subsample: float = parameter(1.0, _FRACTION)
    max_features: float | int = parameter(1.0, Interval(RealNotInt, 0, 1, closed="right"), _POSITIVE)
    class_weight: dict[Any, float] | str | None = parameter(None, dict, StrOptions({"balanced"}), None)
    early_stopping_rounds: int | None = parameter(None, _POSITIVE, None)
    score_dtype: str = parameter("float64", StrOptions({"float64", "float32"}))
    missing_chunks: str = parameter("warn", StrOptions({"warn", "error", "ignore"}))
    memory_limit: int | str | None = parameter(None, _POSITIVE, str, None)
    scratch: str | os.PathLike[str] | None = parameter(None, str, os.PathLike, None)
    checkpoint: str | os.PathLike[str] | None = parameter(None, str, os.PathLike, None)
    checkpoint_every: int | str = parameter(10, _POSITIVE, str)
    worker_timeout: float = parameter(30.0, Interval(Real, 0, None, closed="neither"))
    n_jobs: int | None = parameter(None, _POSITIVE, Options(Integral, {-1}), None)
    random_state: int | np.random.RandomState | None = parameter(0, "random_state")
    verbose: int = parameter(0, "verbose")
    callbacks: Sequence[Callback] | None = parameter(None, list, tuple, None)

    # Where training runs: a `distributed.Client`; None: the current one, if any, else this process. It is no parameter (it
    # cannot be cloned), so it has no annotation: a dataclass would make a field of it.
    client = None  # type: Any

    algorithm: ClassVar[type[Algorithm]]
    algorithm_name: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, Any]]

    def validate(self) -> Self:
        """Check the parameters' values, as `fit` does first.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter has a value that it cannot have; the message says which values it can have.
        """
        self._validate_params()
        return self


def algorithm_of(estimator: CommonParameters, n_classes: int) -> Algorithm:
    """The estimator's algorithm, with its parameters, for a number of classes."""
    own = {name: getattr(estimator, name) for name in estimator.algorithm.parameters()}
    if "random_state" in own:
        own["random_state"] = seed_of(estimator)
    return estimator.algorithm(n_classes=n_classes, **own)


def growth_limits(estimator: CommonParameters) -> GrowthLimits:
    """The limits of the trees; estimators without a parameter for their size grow stumps."""
    return GrowthLimits(
        max_depth=getattr(estimator, "max_depth", 1),
        max_leaf_nodes=getattr(estimator, "max_leaf_nodes", None),
        min_samples_leaf=estimator.min_samples_leaf,
        min_weight_fraction_leaf=estimator.min_weight_fraction_leaf,
        subsample=estimator.subsample,
        max_features=estimator.max_features,
        seed=seed_of(estimator),
    )


def seed_of(estimator: CommonParameters) -> int:
    """The seed that `random_state` stands for: the same one at every call."""
    given = estimator.random_state
    if given is None:
        return 0
    if isinstance(given, Integral):
        return int(given)
    return int(copy.deepcopy(given).randint(2**31))  # type: ignore[union-attr]  # of a copy: the state stays as it is


def n_threads(estimator: CommonParameters) -> int | None:
    """Threads in this process; None: one per core."""
    return None if estimator.n_jobs in (None, -1) else estimator.n_jobs


def deciding_parameters(estimator: CommonParameters) -> dict[str, Any]:
    """The parameters that decide what is learned, as JSON values."""
    given: Mapping[str, Any] = estimator.get_params(deep=False)
    kept = {name: as_json(name, value) for name, value in given.items() if name not in RUN_PARAMETERS}
    return {**kept, "random_state": seed_of(estimator)}
