"""What a training run has learned: the ensemble, its calibration, and the losses, errors and notes of each round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.errors import DataError, LimitError, ModelFormatError
from distboost.kernels.elementary import softmax
from distboost.model.ensemble import Ensemble
from distboost.rows.messages import Losses

TEMPERATURE, VECTOR = "temperature", "vector"
METHODS = (TEMPERATURE, VECTOR)

# Of the method "vector": its fit sums as many numbers as twice the classes, squared.
MOST_CLASSES = 1000


@dataclass(frozen=True)
class Calibration:
    """Class probabilities as a function of the scores F.

    "temperature": softmax(F / temperature). "vector": softmax(scales * (F - mean F) / temperature + shifts), where the mean is
    that of the row.

    Attributes
    ----------
    method : {"temperature", "vector"}
    temperature : float
        Above 0. The larger it is, the closer are the probabilities to each other.
    scales, shifts : tuple of float, or None
        Of the method "vector": one for each class. With scales of 1 and shifts of 0, it is the temperature alone.
    """

    method: str
    temperature: float
    scales: tuple[float, ...] | None = None
    shifts: tuple[float, ...] | None = None

    def __str__(self) -> str:
        found = f"{self.method} {self.temperature:.6g}"
        if self.scales is None or self.shifts is None:
            return found
        scales, shifts = (f"{min(v):.3g} to {max(v):.3g}" for v in (self.scales, self.shifts))
        return f"{found}, scales {scales}, shifts {shifts}"

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, K) float64, of scores F, (n, K) float64."""
        if self.scales is None or self.shifts is None:
            Z = F / self.temperature
        else:
            Z = centred(F) * (np.array(self.scales) / self.temperature) + np.array(self.shifts)
        return softmax(Z)

    def header(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        header: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        if self.scales is not None and self.shifts is not None:
            header |= {"scales": [*self.scales], "shifts": [*self.shifts]}
        return header

    @classmethod
    def of_header(cls, given: Mapping[str, Any] | None, n_classes: int) -> Calibration | None:
        """Return the calibration in a header; None if it has none."""
        if given is None:
            return None
        method, temperature = given["method"], given["temperature"]
        if method not in METHODS:
            raise ModelFormatError(
                f"its method of calibration is {method!r:.100}, not {TEMPERATURE!r} or {VECTOR!r}.",
                value=method,
            )
        if type(temperature) is not float or not 0 < temperature < math.inf:
            raise ModelFormatError(
                f"its temperature is {temperature!r:.100}, not a number above 0.", value=temperature
            )
        if method == TEMPERATURE:
            return cls(method, temperature)
        return cls(method, temperature, *(_numbers(given, name, n_classes) for name in ("scales", "shifts")))


def centred(F: np.ndarray) -> np.ndarray:
    """Return the scores, (n, K), less the mean of each row: algorithms determine them up to a constant."""
    found: np.ndarray = F - F.mean(axis=1, keepdims=True)
    return found


def check_method(method: str, n_classes: int) -> None:
    """Raise LimitError if there are too many classes for this method of calibration."""
    if method == VECTOR and n_classes > MOST_CLASSES:
        raise LimitError(
            f"there are {n_classes} classes, but the calibration {VECTOR!r}, which has two numbers for each class, takes at "
            f"most {MOST_CLASSES}.",
            remedy=f"Use {TEMPERATURE!r}.",
            value=n_classes,
        )


def _numbers(given: Mapping[str, Any], name: str, n_classes: int) -> tuple[float, ...]:
    """Return one number for each class."""
    found = given[name]
    is_list = type(found) is list and len(found) == n_classes
    if not is_list or any(type(value) is not float or not math.isfinite(value) for value in found):
        raise ModelFormatError(
            f"the {name} of its calibration are {found!r:.100}, not {n_classes} finite numbers.", value=found
        )
    return tuple(found)


LOSS, ERROR = "loss", "error"
UNNAMED = "eval"  # the name of an evaluation set that was given without one


class Watch(NamedTuple):
    """What is measured on evaluation rows after each round, and what tells the best round.

    Attributes
    ----------
    sets : tuple of str
        The names of the sets.
    metrics : tuple of str
        The names of the metrics besides the loss and the error.
    metric : str
        The metric of the last set that tells the best round: the smaller, the better.
    min_delta : float
        A round is better than the best one before only if the metric is smaller by more than this.
    """

    sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    metric: str = ERROR
    min_delta: float = 0.0


NO_WATCH = Watch()


def _no_model() -> Any:
    raise RuntimeError("this Progress does not belong to a training run that has a model.")


class Progress(NamedTuple):
    """The argument of callbacks, after each round.

    Attributes
    ----------
    round : int
        Rounds done, from 1.
    n_rounds : int
        Rounds requested.
    train_loss : float
        The algorithm's own loss on the training rows.
    train_error : float
        Fraction of the training rows misclassified.
    eval_loss, eval_error : float or None
        The same on the first evaluation set, if there is any.
    evaluations : mapping of str to mapping of str to float
        The metrics of each evaluation set by name: "loss", "error", and those that `eval_metric` names.
    best_round : int or None
        The best round so far by the last evaluation set; None if there is none.
    model : callable
        model() returns a fitted estimator of the rounds so far, for predictions or to save it. Later rounds do not change it. It
        is made when it is called: until then it costs next to nothing.
    """

    round: int
    n_rounds: int
    train_loss: float
    train_error: float
    eval_loss: float | None = None
    eval_error: float | None = None
    evaluations: Mapping[str, Mapping[str, float]] = {}
    best_round: int | None = None
    model: Callable[[], Any] = _no_model


@dataclass
class History:
    """The losses, errors and notes of each round, and how the training ended.

    Attributes
    ----------
    train_loss, train_error : list of float
    evaluations : dict of str to dict of str to list of float
        The metrics of each evaluation set, by the names of set and metric.
    notes : dict of str to list of float
    outcome : str
    watch : Watch
    """

    train_loss: list[float] = field(default_factory=list)
    train_error: list[float] = field(default_factory=list)
    evaluations: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    notes: dict[str, list[float]] = field(default_factory=dict)
    outcome: str = ""
    watch: Watch = NO_WATCH

    @classmethod
    def of(cls, notes: Iterable[str], watch: Watch, outcome: str = "") -> History:
        """Return a history without rounds."""
        evaluations: dict[str, dict[str, list[float]]] = {
            name: {metric: [] for metric in (LOSS, ERROR, *watch.metrics)} for name in watch.sets
        }
        return cls(evaluations=evaluations, notes={name: [] for name in notes}, outcome=outcome, watch=watch)

    @property
    def n_rounds(self) -> int:
        """The number of rounds done."""
        return len(self.train_loss)

    def until(self, n_rounds: int) -> History:
        """Return a copy with the first `n_rounds` rounds, as they were when they were the last."""
        found = History.of(self.notes, self.watch, "rounds")
        for name, values in found.series().items():
            values[:] = self.series()[name][:n_rounds]
        for name, values in found.notes.items():
            values[:] = self.notes[name][:n_rounds]
        return found

    def add(self, algorithm: Algorithm, losses: list[Losses], notes: Mapping[str, float]) -> None:
        """Add a round. `losses` holds those of the training rows and of each evaluation set."""
        for name, value in notes.items():
            self.notes.setdefault(name, []).append(value)
        self.train_loss.append(algorithm.loss_of(losses[0]))
        self.train_error.append(losses[0].error)
        for metrics, found in zip(self.evaluations.values(), losses[1:], strict=True):
            values = (algorithm.loss_of(found), found.error, *found.metrics)
            for series, value in zip(metrics.values(), values, strict=True):
                series.append(value)

    def take_losses(self, earlier: History) -> None:
        """Take the losses of the rounds from a history that has them, and perhaps more.

        Raise DataError unless it has those of the same evaluation sets.
        """
        sets, known = self.watch[:2], earlier.watch[:2]
        if self.watch.sets and sets != known:
            raise DataError(
                f"the earlier run was evaluated on {_described(*known)}, this one on {_described(*sets)}. Later rounds have "
                "changed the earlier ones, so their losses on other sets are not known.",
                remedy="Pass the same ``eval_set`` and ``eval_metric``, or train without ``resume=True``.",
            )
        n_rounds, ours, theirs = len(self.train_loss), self.series(), earlier.series()
        for name, values in ours.items():
            values[:] = theirs[name][:n_rounds]

    def series(self) -> dict[str, list[float]]:
        """Return the losses and metrics by the names that files give them."""
        found = {"train_loss": self.train_loss, "train_error": self.train_error}
        for n, metrics in enumerate(self.evaluations.values()):
            for metric, values in metrics.items():
                plain = n == 0 and metric in (LOSS, ERROR)
                found[f"eval_{metric}" if plain else f"eval {n} {metric}"] = values
        return found

    def watched(self) -> list[float] | None:
        """Return the values that tell the best round; None without evaluation rows."""
        return self.evaluations[self.watch.sets[-1]][self.watch.metric] if self.watch.sets else None

    def best_round(self) -> int:
        """Return the best round, the first of equal ones; the last round without evaluation rows; 0 before the first."""
        values = self.watched()
        if not values:
            return len(self.train_loss)
        best = 0
        for round, value in enumerate(values):
            if value < values[best] - self.watch.min_delta:
                best = round
        return best + 1

    def has_stalled(self, patience: int | None) -> bool:
        """Whether at least `patience` rounds have passed since the best one."""
        return patience is not None and len(self.train_loss) - self.best_round() >= patience

    def progress(self, n_rounds: int, model: Callable[[], Any]) -> Progress:
        """Return what callbacks are given after the last round."""
        last = {
            name: {metric: values[-1] for metric, values in metrics.items()}
            for name, metrics in self.evaluations.items()
        }
        first: Mapping[str, float] = next(iter(last.values()), {})
        return Progress(
            round=len(self.train_loss),
            n_rounds=n_rounds,
            train_loss=self.train_loss[-1],
            train_error=self.train_error[-1],
            eval_loss=first.get(LOSS),
            eval_error=first.get(ERROR),
            evaluations=last,
            best_round=self.best_round() if last else None,
            model=model,
        )


def _described(sets: tuple[str, ...], metrics: tuple[str, ...]) -> str:
    """Describe evaluation sets and metrics, for messages."""
    if not sets:
        return "no rows"
    return f"{', '.join(map(repr, sets))}" + (f" by {', '.join(metrics)}" if metrics else "")


# Names of arrays in files, in addition to those of the ensemble and of the histories.
NOTE = "note "  # followed by the note's name
BEST = "best values"


class Learned(NamedTuple):
    """What a training run has learned so far.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The sorted labels.
    ensemble : Ensemble
    history : History
        The history of all rounds done. It may have more rounds than the ensemble, if early stopping dropped the last ones.
    best : Ensemble or None
        The ensemble as it was after the best round, if later rounds have changed it.
    data : str or None
        The digest of the training rows. None: it is not known, as in files of earlier versions.
    parameters : mapping or None
        The estimator's parameters that determine the model, as JSON values.
    calibration : Calibration or None
        How the scores become probabilities; None: as the algorithm's paper implies.
    """

    classes: np.ndarray
    ensemble: Ensemble
    history: History
    best: Ensemble | None = None
    data: str | None = None
    parameters: Mapping[str, Any] | None = None
    calibration: Calibration | None = None

    @property
    def n_rounds(self) -> int:
        """The number of rounds done, including those that early stopping dropped."""
        return len(self.history.train_loss)

    def arrays(self, first: int, last: int) -> dict[str, np.ndarray]:
        """Return the arrays of rounds first .. last - 1."""
        arrays = dict(self.ensemble.part(first, last).arrays())
        for name, values in self.history.series().items():
            if values:
                arrays[name] = np.array(values[first:last])
        for name, values in self.history.notes.items():
            arrays[NOTE + name] = np.array(values[first:last], np.float64)
        if self.best is not None:
            arrays[BEST] = self.best.arrays()["values"]
        return arrays
