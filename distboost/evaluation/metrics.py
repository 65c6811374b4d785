"""Metrics, from sums over rows. Where the confusion matrix suffices, scikit-learn computes them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from distboost.errors import DataError
from distboost.evaluation.results import Confusion, Results, as_json
from distboost.evaluation.sums import (
    BY_ROUND,
    CALIBRATION_BINS,
    DECISIONS,
    MARGINS,
    MOST_K,
    PROBABILITIES,
    RANKING,
    UNCALIBRATED,
    WORST,
    Sums,
    histogram,
)
from distboost.rows.exact import real_numbers

CONFIDENCE = 0.95
MOST_DENSE_CELLS = 2**24  # a larger confusion matrix stays sparse


class ByRound(NamedTuple):
    """The log-loss and the error after some rounds, each (n_rounds,)."""

    rounds: np.ndarray
    log_loss: np.ndarray
    error: np.ndarray


class Totals:
    """The sums over all rows as real numbers, and what several metrics use of them."""

    def __init__(self, sums: Sums, classes: np.ndarray, weighted: bool):
        self.sums = sums
        self.found = Confusion.of(classes, sums, weighted)
        self.weight = float(self.found.counts.sum())
        if not self.weight:
            raise DataError("every row has weight 0.", remedy="Set a weight above 0 for some rows.")

    def real(self, name: str) -> np.ndarray:
        """Return the sums of this name, (n_cells,) float64."""
        return real_numbers(self.sums[name])

    @cached_property
    def cells(self) -> dict[str, np.ndarray]:
        """The confusion matrix as rows of scikit-learn's metrics: true class, predicted class, weight."""
        cells = self.found.counts.tocoo()
        return {"y_true": cells.row, "y_pred": cells.col, "sample_weight": cells.data}

    def averaged(self, number: int, average: str) -> float:
        """Return the average precision (0), recall (1) or F1 (2) over the classes that occur among labels or predictions."""
        return float(precision_recall_fscore_support(**self.cells, average=average, zero_division=0)[number])

    @cached_property
    def per_class(self) -> dict[str, np.ndarray]:
        """Precision, recall, f1 and rows of each class, (n_classes,) each."""
        return self.found.per_class()

    @property
    def n_effective(self) -> float:
        """The number of rows of equal weight whose mean is as certain (Kish)."""
        return self.weight**2 / float(self.real("squares")[0])

    def mean(self, name: str) -> float:
        """Return a mean loss."""
        return float(self.real(name)[0] / self.weight)

    def interval_of_mean(self, name: str) -> tuple[float, float]:
        """Return the normal approximation's confidence interval of a mean loss."""
        mean, (_, wwl, wwll) = self.mean(name), self.real(name)
        variance = wwll - 2 * mean * wwl + mean**2 * float(self.real("squares")[0])
        margin = _quantile() * math.sqrt(max(variance, 0.0)) / self.weight
        return max(mean - margin, 0.0), mean + margin

    def interval_of_accuracy(self) -> tuple[float, float]:
        """Return Wilson's confidence interval."""
        p, n, z2 = self.found.accuracy, self.n_effective, _quantile() ** 2
        centre = p + z2 / (2 * n)
        margin = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n**2)))
        return max((centre - margin) / (1 + z2 / n), 0.0), min((centre + margin) / (1 + z2 / n), 1.0)

    def calibration(self, name: str) -> dict[str, np.ndarray]:
        """Return the reliability diagram: the weight, mean confidence and accuracy of each bin of confidences."""
        weight, confident, right = self.real(name).reshape(3, CALIBRATION_BINS)
        with np.errstate(invalid="ignore"):
            return {"weight": weight, "confidence": confident / weight, "accuracy": right / weight}

    def ece(self, name: str) -> float:
        """Return the expected calibration error."""
        _, confident, right = self.real(name).reshape(3, CALIBRATION_BINS)
        return float(np.abs(right - confident).sum() / self.weight)

    def uncalibrated(self) -> dict[str, Any] | None:
        """Return the reliability diagram and calibration error without calibration; None if the model is not calibrated."""
        if "uncalibrated" not in self.sums:
            return None
        return {**self.calibration("uncalibrated"), "ece": self.ece("uncalibrated")}

    def top_k(self) -> dict[int, float]:
        """Return the fraction of rows whose class is among the k most probable, by k."""
        right = np.cumsum(self.real("ranks")) / self.weight
        return {k: min(float(right[k - 1]), 1.0) for k in range(2, min(len(self.found.classes), MOST_K) + 1)}

    @cached_property
    def auc(self) -> tuple[np.ndarray, np.ndarray]:
        """The area under each class's ROC curve and the largest error of it, (n_classes,); NaN without rows in or outside it.

        Pairs of rows in different bins are in the order of the bins. Those in one bin count half, so each is off by at most half.
        """
        n = len(self.found.classes)
        own = self.real("own").reshape(n, -1)
        others = real_numbers(self.sums["all"] - self.sums["own"]).reshape(n, -1)
        halves = own * others / 2
        below = np.cumsum(others, axis=1) - others
        pairs = own.sum(axis=1) * others.sum(axis=1)
        with np.errstate(invalid="ignore"):
            return (own * below + halves).sum(axis=1) / pairs, halves.sum(axis=1) / pairs

    def mean_auc(self, number: int) -> float:
        """Return the mean area (0) or its largest error (1) over the classes that have one."""
        values = self.auc[number]
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else math.nan

    def by_round(self, rounds: Iterable[int]) -> ByRound | None:
        """Return the losses after these rounds, if there are any: those that were asked for."""
        if BY_ROUND not in self.sums:
            return None
        return ByRound(np.array([*rounds]), *(self.real(BY_ROUND).reshape(2, -1) / self.weight))

    def confusion(self) -> Any:
        """Return the confusion matrix of the model's classes; a sparse one if it is large."""
        counts = self.found.counts[:-1]
        return counts.toarray() if math.prod(counts.shape) <= MOST_DENSE_CELLS else counts


def _quantile() -> float:
    return float(ndtri((1 + CONFIDENCE) / 2))


def _averages(average: str) -> dict[str, Callable[[Totals], Any]]:
    names = ("precision", "recall", "f1")
    return {f"{name}_{average}": partial(_averaged, n, average) for n, name in enumerate(names)}


def _averaged(number: int, average: str, totals: Totals) -> float:
    return totals.averaged(number, average)


# The metrics that follow from each group of sums.
METRICS: dict[str, dict[str, Callable[[Totals], Any]]] = {
    DECISIONS: {
        "n_rows": lambda t: int(t.real("rows")[0]),
        "weight": lambda t: t.weight,
        "accuracy": lambda t: float(accuracy_score(**t.cells)),
        "accuracy_interval": Totals.interval_of_accuracy,
        "majority_baseline": lambda t: float(t.per_class["rows"].max() / t.weight),
        "balanced_accuracy": lambda t: float(t.per_class["recall"][t.per_class["rows"] > 0].mean()),
        **_averages("macro"),
        **_averages("weighted"),
        "per_class": lambda t: t.per_class,
        "confusion": Totals.confusion,
    },
    PROBABILITIES: {
        "log_loss": lambda t: t.mean("log_loss"),
        "log_loss_interval": lambda t: t.interval_of_mean("log_loss"),
        "brier": lambda t: t.mean("brier"),
        "brier_interval": lambda t: t.interval_of_mean("brier"),
        "ece": lambda t: t.ece("calibration"),
        "calibration": lambda t: t.calibration("calibration"),
        "top_k_accuracy": Totals.top_k,
    },
    RANKING: {
        "auc_ovr": lambda t: t.mean_auc(0),
        "auc_ovr_error": lambda t: t.mean_auc(1),
        "auc_per_class": lambda t: t.auc[0],
        "auc_per_class_error": lambda t: t.auc[1],
    },
    UNCALIBRATED: {"uncalibrated": Totals.uncalibrated},
    MARGINS: {"margins": lambda t: histogram(t.sums["margins"])},
    WORST: {"worst_rows": lambda t: t.sums["worst"].by_name(t.found.classes)},
}


def chosen(names: Iterable[str] | None, expected: Iterable[str] | None = None) -> dict[str, str]:
    """Return the group of each metric with these names, or of all.

    For an unknown name, raise a ValueError that lists the names that are `expected`; None: all.
    """
    groups = {name: group for group, metrics in METRICS.items() for name in metrics}
    if names is None:
        return groups
    if not isinstance(names, Iterable):
        raise DataError.expected("``metrics``", names, "a list of names, such as ['accuracy', 'log_loss']")
    names = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in names if name not in groups]
    if unknown:
        raise DataError(
            f"``metrics`` has {unknown[0]!r}, expected some of {', '.join(map(repr, expected or groups))}.",
            value=unknown[0],
        )
    return {name: groups[name] for name in names}


class Evaluation(Results):
    """The metrics of a model on some rows, by name. As text it is a table.

    Parameters
    ----------
    values : mapping of str to object
        The metrics.
    found : Confusion
        The sums that they follow from.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes of the model, in the order of the arrays per class.
    found : Confusion
        The confusion matrix as tables and reports need it.
    by_round : ByRound or None
        What a report draws; None unless it was asked for.
    """

    def __init__(self, values: Mapping[str, Any], found: Confusion, by_round: ByRound | None = None):
        super().__init__(values)
        self.classes, self.found, self.by_round = found.classes, found, by_round

    @classmethod
    def of(cls, totals: Totals, groups: Mapping[str, str], rounds: Iterable[int] = ()) -> Evaluation:
        """Compute the chosen metrics, in their order, and the losses after these rounds."""
        values = {name: METRICS[group][name](totals) for name, group in groups.items()}
        return cls(values, totals.found, totals.by_round(rounds))

    def _shown(self) -> dict[str, str]:
        return {name: text for name, value in self.items() if (text := _text(value))}

    def to_json(self) -> str:
        """Return the metrics as JSON, with the classes; numbers that are not defined are null."""
        return as_json({"classes": self.classes, **self})


def _text(value: Any) -> str:
    """A number, an interval or a few numbers as text; empty for arrays."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        return " to ".join(map(_text, value))
    if isinstance(value, dict) and all(isinstance(one, float) for one in value.values()):
        return ", ".join(f"{key}: {_text(one)}" for key, one in value.items())
    return str(value) if isinstance(value, int) else ""
