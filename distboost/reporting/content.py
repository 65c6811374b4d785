"""What a report says."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sklearn

import distboost
from distboost.estimators.parameters import library_class
from distboost.evaluation.metrics import Evaluation
from distboost.io.text import duration, megabytes
from distboost.model.learned import LOSS
from distboost.reporting import confusion, figures, numbers
from distboost.reporting.charts import Chart
from distboost.reporting.numbers import amount, decimal, fraction, name
from distboost.training.event_record import Logged
from distboost.training.record import PlannedMemory, TrainingRecord

MOST_CLASSES = 1000  # in the table of classes
MOST_FEATURES = 20
MOST_MISSED = 26  # classes with the largest errors

NOT_KEPT = (
    "a model file does not hold them: write the report after fit, or pass the log of the training (events)"
)


class Figure(NamedTuple):
    """A number of the headline: its name, its value and what it is beside."""

    name: str
    value: str
    note: str


class Fact(NamedTuple):
    """A line of the description of a training run; of parameters, whether the value is not the default."""

    name: str
    value: str
    changed: bool = False


class Shortfall(NamedTuple):
    """A metric as a text, and what it lacks to 1 beside the class that lacks most; 0 where it is not defined."""

    text: str
    share: float


class ClassRow(NamedTuple):
    """A line of the table of classes."""

    number: int
    name: str
    rows: str
    metrics: list[Shortfall]  # precision, recall, F1 and AUC


class Missed(NamedTuple):
    """A class, the fraction of its rows that is predicted as others, and that beside the largest."""

    name: str
    text: str
    share: float


class WorstRow(NamedTuple):
    """One of the rows whose own class has the lowest probability."""

    row: int
    true: str
    predicted: str
    probability: str
    confidence: str


class Feature(NamedTuple):
    """A feature, its fraction of the gain, and that as a text."""

    name: str
    share: float
    text: str


@dataclass(frozen=True)
class Content:
    """What the templates show."""

    title: str
    summary: str
    figures: list[Figure]
    model: list[Fact]
    parameters: list[Fact]
    training: list[Fact]
    evaluation: list[Fact]
    curves: list[Chart]
    probabilities: list[Chart]
    matrix: confusion.MatrixTable | confusion.Picture
    mistakes: list[confusion.Mistake]
    classes: list[ClassRow]
    n_classes: int
    missed: list[Missed]
    n_missed: int
    features: list[Feature]
    n_features: int
    worst: list[WorstRow]
    amounts: str

    @classmethod
    def of(cls, model: Any, found: Evaluation, title: str, place: str, log: Logged | None = None) -> Content:
        """Collect what there is to say about a model, its evaluation on the rows of a place, and its training by a log."""
        n_classes, n_rows = len(found.classes), found["n_rows"]
        features, n_used = _features(model)
        missed = _missed(found)
        return cls(
            title=name(title),
            summary=f"{type(model).__name__}, {numbers.rounds(model)} rounds, {n_classes:,} classes, judged on {n_rows:,} rows.",
            figures=_figures(found),
            model=_model(model),
            parameters=_parameters(model),
            training=_training(model, log),
            evaluation=_evaluation(found, place),
            curves=figures.learning_curves(model, found.by_round),
            probabilities=[figures.reliability(found), figures.confidences(found), figures.margins(found)],
            matrix=confusion.matrix(found.found),
            mistakes=confusion.mistakes(found.found),
            classes=_classes(found),
            n_classes=n_classes,
            missed=missed[:MOST_MISSED],
            n_missed=len(missed),
            features=features,
            n_features=n_used,
            worst=_worst(found),
            amounts="weight" if found.found.weighted else "rows",
        )


def _figures(found: Evaluation) -> list[Figure]:
    chosen = [
        Figure("accuracy", decimal(found["accuracy"]), _interval(found["accuracy_interval"])),
        Figure("majority baseline", decimal(found["majority_baseline"]), "always the most frequent class"),
        Figure("balanced accuracy", decimal(found["balanced_accuracy"]), "mean recall of the classes"),
        Figure("F1, macro", decimal(found["f1_macro"]), "mean over the classes"),
        Figure("log-loss", decimal(found["log_loss"]), _interval(found["log_loss_interval"])),
        Figure("Brier score", decimal(found["brier"]), _interval(found["brier_interval"])),
        Figure("calibration error", decimal(found["ece"]), "expected, in 15 bins"),
        Figure("AUC", decimal(found["auc_ovr"]), _auc_note(found)),
    ]
    top = found["top_k_accuracy"]
    if len(found.classes) > 5:
        chosen.append(Figure("top-5 accuracy", decimal(top[5]), "among the 5 most probable"))
    return chosen


def _auc_note(found: Evaluation) -> str:
    error = found["auc_ovr_error"]
    return "no class has rows of its own and others" if math.isnan(error) else f"one vs. rest, ± {error:.1g}"


def _interval(ends: tuple[float, float]) -> str:
    return f"95 %: {decimal(ends[0])} to {decimal(ends[1])}"


def _model(model: Any) -> list[Fact]:
    return [
        Fact("algorithm", model.algorithm_name),
        Fact("rounds", numbers.rounds(model)),
        Fact("outcome", model.outcome_),
        Fact("calibration", "none" if model.calibration_ is None else str(model.calibration_)),
        Fact("classes", amount(len(model.classes_))),
        Fact("features", amount(model.n_features_in_)),
        Fact("SHA-256 of the model", model.digest()),
    ]


def _parameters(model: Any) -> list[Fact]:
    own = library_class(model)
    return [
        Fact(key, name(repr(value)), repr(value) != repr(getattr(own, key, None)))
        for key, value in numbers.parameters(model).items()
    ]


def _training(model: Any, log: Logged | None) -> list[Fact]:
    """What is known of the training: a model from a file does not know where it was trained, but the log does."""
    took = getattr(model, "training_record_", None) if log is None else log.took
    facts = [] if took is None or took.n_rows is None else _counts(took.n_rows)
    if model.learned_.data is not None:
        facts.append(Fact("digest of the training rows", model.learned_.data))
    for metric, lines in figures.histories(model).items():
        ends = ", ".join(f"{name(one.name)} {one.values[-1]:.6g}" for one in lines)
        what = figures.objective_of(model) if metric == LOSS else figures.words(metric)
        facts.append(Fact(f"{what} after the last round", ends))
    if log is not None:
        return [*facts, *_record(log.took), *_phases(log.phases), *_planned(log.memory)]
    if took is not None:
        return [*facts, *_record(took), *_planned(PlannedMemory.of(model.memory_plan_))]
    return [*facts, Fact("rows, time, memory, lost workers", NOT_KEPT)]


def _planned(plan: PlannedMemory) -> list[Fact]:
    where = "the process" if plan.leader_bytes is None else "each worker"
    limit = "no limit" if plan.limit is None else f"limit {megabytes(plan.limit)}"
    facts = [Fact(f"memory planned for {where}", f"{megabytes(plan.n_bytes)}, {limit}")]
    if plan.leader_bytes is not None:
        facts.append(Fact("memory planned for the process that called fit", megabytes(plan.leader_bytes)))
    rows = f"{plan.resident:,} in memory, {plan.streamed:,} streamed from disk, those evaluated included"
    return [*facts, Fact(f"rows that {where} holds", rows)]


def _phases(phases: dict[str, float]) -> list[Fact]:
    """The time of each phase apart from the rounds."""
    return [Fact(f"time of the phase {name(phase)}", duration(seconds)) for phase, seconds in phases.items()]


def _record(record: TrainingRecord) -> list[Fact]:
    """What the training took."""
    speed = (
        f"{record.n_rounds} rounds in {record.round_seconds:.3g} s, {record.rounds_per_second:.3g} per second"
    )
    facts = [
        Fact("trained", record.runtime),
        Fact("time of fit", f"{record.seconds:.3g} s"),
        Fact("time of the rounds", speed),
    ]
    if record.worker_peak_bytes:
        facts += [
            Fact("workers lost", amount(record.workers_lost)),
            Fact("peak memory of a worker", megabytes(max(record.worker_peak_bytes))),
        ]
    if record.peak_bytes is not None:
        facts.append(Fact("peak memory of this process", megabytes(record.peak_bytes)))
    return facts


def _counts(n_rows: Mapping[str, int]) -> list[Fact]:
    """The rows that the training learned from, and those that it only measured."""
    sets = [f"{name(part)} {amount(n)}" for part, n in n_rows.items() if part != "train"]
    facts = [Fact("rows trained on", amount(n_rows["train"]))]
    return [*facts, Fact("rows evaluated after each round", ", ".join(sets) or "none")]


def _evaluation(found: Evaluation, place: str) -> list[Fact]:
    present = int(np.count_nonzero(found["per_class"]["rows"]))
    facts = [Fact("rows of", place), Fact("rows", amount(found["n_rows"]))]
    if found.found.weighted:
        facts.append(Fact("weight", amount(found["weight"])))
    facts.append(Fact("classes that occur", f"{present:,} of {len(found.classes):,}"))
    return [*facts, Fact("versions", _versions())]


def _versions() -> str:
    return (
        f"distboost {distboost.__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"Python {platform.python_version()}"
    )


def _classes(found: Evaluation) -> list[ClassRow]:
    """The classes in their order; of very many, those with the lowest F1."""
    metrics = found["per_class"]
    predicted = np.asarray(found.found.counts.sum(axis=0))
    precision = np.where(predicted > 0, metrics["precision"], np.nan)
    recall = np.where(metrics["rows"] > 0, metrics["recall"], np.nan)
    f1 = np.where((predicted > 0) | (metrics["rows"] > 0), metrics["f1"], np.nan)
    shown = np.sort(np.argsort(f1, kind="stable")[:MOST_CLASSES])  # NaN is sorted to the end
    columns = [_shortfalls(values) for values in (precision, recall, f1, found["auc_per_class"])]
    return [
        ClassRow(i, name(found.classes[i]), amount(metrics["rows"][i]), [column[i] for column in columns])
        for i in shown.tolist()
    ]


def _shortfalls(values: np.ndarray) -> list[Shortfall]:
    lacks = np.nan_to_num(1 - values)
    shares = lacks / (lacks.max() or 1.0)
    return [Shortfall(decimal(value), share) for value, share in zip(values, shares.tolist(), strict=True)]


def _missed(found: Evaluation) -> list[Missed]:
    """The classes of which rows are predicted as others, the largest fraction first."""
    metrics = found["per_class"]
    errors = np.where(metrics["rows"] > 0, 1 - metrics["recall"], 0.0)
    order = np.argsort(-errors, kind="stable")[: np.count_nonzero(errors)].tolist()
    return [Missed(name(found.classes[i]), fraction(errors[i]), errors[i] / errors.max()) for i in order]


def _features(model: Any) -> tuple[list[Feature], int]:
    """The features of the largest gain, and the number of features that splits use."""
    shares, n_used = numbers.top_features(model, MOST_FEATURES)
    return [Feature(name(feature), share, fraction(share)) for feature, share in shares], n_used


def _worst(found: Evaluation) -> list[WorstRow]:
    worst = found["worst_rows"]
    return [
        WorstRow(int(row), name(true), name(predicted), f"{own:.3g}", f"{confidence:.4f}")
        for row, true, predicted, own, confidence in zip(*worst.values(), strict=True)
    ]
