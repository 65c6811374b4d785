"""Metrics of evaluation rows besides the loss and the error: the log-loss, and functions that a caller gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.errors import DataError
from distboost.kernels.elementary import log_losses
from distboost.model.history import ERROR, LOSS
from distboost.rows.row_metrics import LARGEST

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
