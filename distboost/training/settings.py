"""What the parameters of an estimator say of its training runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.errors import DataError
from distboost.io.phases import Phases
from distboost.kernels.elementary import log_losses
from distboost.model.learned import ERROR, LOSS, TEMPERATURE, VECTOR, Watch
from distboost.rows.row_metrics import LARGEST
from distboost.training.loop import Callback, Schedule
from distboost.training.memory_parts import Task
from distboost.training.resumption import Resumption
from distboost.trees.grower import GrowthLimits

LOG_LOSS = "log_loss"
MetricFunction = Callable[[np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class LogLoss:
    """The logarithm of the probability of a row's class, times -1, as in scikit-learn's log_loss."""

    algorithm: Algorithm
    name: str = LOG_LOSS

    def values(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the log-loss of each row, (n,) float64."""
        eps = np.finfo(np.float64).eps
        own = _probabilities(self.algorithm, scores)[np.arange(len(labels)), labels]
        return log_losses(np.clip(own, eps, 1 - eps))


@dataclass(frozen=True)
class Custom:
    """What a function(labels, probabilities) of the caller returns for each row."""

    algorithm: Algorithm
    name: str
    function: MetricFunction

    def values(self, labels: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Return the function's values, (n,) float64; raise DataError unless they are finite numbers, one for each row."""
        found = np.asarray(self.function(labels, _probabilities(self.algorithm, scores)))
        if found.shape != labels.shape or found.dtype.kind not in "biuf":
            raise DataError(
                f"``eval_metric`` {self.name} returned values of shape {found.shape} and dtype {found.dtype} for "
                f"{len(labels)} rows.",
                remedy="Return one number for each row: their weighted mean is the metric.",
            )
        values = found.astype(np.float64)
        bad = ~(np.abs(values) < LARGEST)
        if bad.any():
            raise DataError(
                f"``eval_metric`` {self.name} returned {values[bad][0]} for a row.",
                remedy=f"Return finite numbers below {LARGEST:.0f} in size.",
            )
        return values


def _probabilities(algorithm: Algorithm, scores: np.ndarray) -> np.ndarray:
    return algorithm.probabilities(algorithm.decoded(scores.astype(np.float64)))


def row_metrics(wanted: str | MetricFunction, algorithm: Algorithm) -> tuple[LogLoss | Custom, ...]:
    """Return the metrics to compute besides the loss and the error, for a value of `eval_metric`."""
    if wanted == LOG_LOSS:
        return (LogLoss(algorithm),)
    return (Custom(algorithm, metric_name(wanted), wanted),) if callable(wanted) else ()


def metric_name(wanted: str | MetricFunction) -> str:
    """Return the name that histories give to the metric of a value of `eval_metric`."""
    if isinstance(wanted, str):
        return wanted
    name = str(getattr(wanted, "__name__", type(wanted).__name__))
    if name in (LOSS, ERROR, LOG_LOSS):
        raise DataError(
            f"``eval_metric`` is a function named {name!r}, which is also the name of a metric of distboost.",
            value=name,
            remedy=f"Rename the function, or pass the text {name!r}.",
        )
    return name


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the parameters of an estimator say of its training runs.

    Attributes
    ----------
    algorithm : callable
        algorithm(n_classes) makes the algorithm.
    limits : GrowthLimits
        The size of the trees.
    n_rounds : int
    learning_rate : float
        Factor of each step.
    patience : int or None
        A run stops early after this many rounds without a better one.
    min_delta : float
        By how much a round must be better than the best one.
    eval_metric : str or callable
        What tells the best round.
    stops_when_separated : bool
        Whether a weak learner without an error ends the run.
    class_weight : mapping, "balanced" or None
    calibration : str or None
    max_bins : int
        The most bins of a feature.
    seed : int
        Of the sample of rows whose quantiles become bin edges.
    score_dtype : str
        "float32" or "float64".
    memory_limit : int or None
        Bytes that one process may take.
    scratch : str or None
        Directory or URL for what does not fit in memory.
    n_threads : int or None
        Threads in this process; None: one per core.
    """

    algorithm: Callable[[int], Algorithm]
    limits: GrowthLimits
    n_rounds: int
    learning_rate: float
    patience: int | None
    min_delta: float
    eval_metric: str | MetricFunction
    stops_when_separated: bool
    class_weight: Any
    calibration: str | None
    max_bins: int
    seed: int
    score_dtype: str
    memory_limit: int | None
    scratch: str | None
    n_threads: int | None

    @property
    def calibration_method(self) -> str:
        """The method of calibration, if there is one."""
        return VECTOR if self.calibration == VECTOR else TEMPERATURE

    def task(self, algorithm: Algorithm, n_rows: int, n_features: int, weighted: bool, **known: Any) -> Task:
        """Return what determines the memory of a run; `known` are further fields of the Task."""
        return Task(
            algorithm=algorithm,
            limits=self.limits,
            n_rows=n_rows,
            n_features=n_features,
            max_bins=self.max_bins,
            score_bytes=np.dtype(self.score_dtype).itemsize,
            weighted=weighted or self.class_weight is not None,
            n_rounds=self.n_rounds,
            **known,
        )

    def schedule(
        self,
        n_classes: int,
        sets: tuple[str, ...],
        callbacks: Sequence[Callback],
        phases: Phases,
        resumption: Resumption | None,
    ) -> Schedule:
        """Return the schedule of a run in which evaluation rows of these names are measured after each round."""
        # Another algorithm than that of the run, whose state changes from round to round.
        metrics = row_metrics(self.eval_metric, self.algorithm(n_classes)) if sets else ()
        names = tuple(metric.name for metric in metrics)
        watch = Watch(sets, names, metric_name(self.eval_metric), self.min_delta)
        if resumption is not None:
            resumption.check_watch(watch)
        return Schedule(
            self.limits,
            self.n_rounds + (0 if resumption is None else resumption.rounds_before),
            self.learning_rate,
            self.patience,
            self.stops_when_separated,
            callbacks,
            watch if sets else Watch(),
            metrics,
            phases,
        )
