"""The charts of a report: learning curves, reliability, confidence and margins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distboost.estimators.parameters import algorithm_of
from distboost.evaluation.metrics import ByRound, Evaluation
from distboost.model.learned import ERROR, LOSS
from distboost.reporting.charts import Bar, Chart, ValueAxis, bar, line
from distboost.reporting.numbers import amount, fraction
from distboost.reporting.numbers import name as shown
from distboost.training.settings import LOG_LOSS

LARGE_RATIO = 10  # between the largest and the smallest value: above it, the scale is logarithmic
MOST_ROUNDS = 24  # after which judged rows are measured
TRAINING, JUDGED = "training rows", "judged rows"
OBJECTIVE = "The %s, which boosting minimises. On other rows it may rise while they are predicted better."


class Series(NamedTuple):
    """The values of some rows after some rounds. Rows have the same style in all charts."""

    name: str
    style: int
    rounds: np.ndarray
    values: np.ndarray


def measured_rounds(n_rounds: int) -> tuple[int, ...]:
    """Return the rounds after which judged rows are measured: all of few; of many more early ones, where values change most.

    >>> measured_rounds(3), measured_rounds(1000)[:6], measured_rounds(0)
    ((1, 2, 3), (1, 3, 9, 18, 31, 48), ())
    """
    if n_rounds <= MOST_ROUNDS:
        return tuple(range(1, n_rounds + 1))
    found = np.rint(1 + (n_rounds - 1) * np.linspace(0, 1, MOST_ROUNDS) ** 2)
    return tuple(np.unique(found.astype(int)).tolist())


def histories(model: Any) -> dict[str, list[Series]]:
    """Return what the training measured after each round, by metric.

    The loss is that of the training rows. It has no scale that other rows could be judged by, so theirs is there only if
    `eval_metric` asks for it. Log-losses are those of the algorithm's own probabilities.
    """
    before = "" if model.calibration_ is None else ", before calibration"
    found: dict[str, list[Series]] = {LOG_LOSS: [], ERROR: [], LOSS: []}
    trained = {ERROR: model.train_error_, LOSS: model.train_loss_}
    sets = [(TRAINING, trained), *getattr(model, "eval_history_", {}).items()]
    for style, (name, metrics) in enumerate(sets, 1):
        for metric, values in metrics.items():
            if len(values) and (metric != LOSS or metrics is trained or model.eval_metric == LOSS):
                rounds = np.arange(1, len(values) + 1)
                named = name + before if metric == LOG_LOSS else name
                found.setdefault(metric, []).append(Series(named, style, rounds, np.asarray(values)))
    return {metric: lines for metric, lines in found.items() if lines}


def learning_curves(model: Any, judged: ByRound | None) -> list[Chart]:
    """Return a chart by round of each metric, and the last of what boosting minimises."""
    if judged is None:
        return []
    found = histories(model)
    log_losses, errors, objectives = (found.pop(metric, []) for metric in (LOG_LOSS, ERROR, LOSS))
    note = ""
    if model.calibration_ is not None:
        note = "Judged rows: probabilities after so many rounds, with the calibration of the whole model."
    objective = objective_of(model)
    return [
        _curve("Log-loss", [Series(JUDGED, 0, judged.rounds, judged.log_loss), *log_losses], note=note),
        _curve("Error", [Series(JUDGED, 0, judged.rounds, judged.error), *errors]),
        *(_curve(words(metric).capitalize(), lines) for metric, lines in found.items()),
        _curve("Training objective", objectives, objective, OBJECTIVE % objective),
    ]


def words(metric: str) -> str:
    """Return the name of a metric as the page shows it."""
    return "log-loss" if metric == LOG_LOSS else shown(metric.replace("_", " "))


def objective_of(model: Any) -> str:
    """Return what the training minimises."""
    return algorithm_of(model, len(model.classes_)).objective


def _curve(metric: str, lines: list[Series], label: str = "", note: str = "") -> Chart:
    values = np.concatenate([one.values for one in lines])
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high / low > LARGE_RATIO
    label = label or metric.lower()
    y = ValueAxis.logarithmic(f"{label}, logarithmic", low, high) if log else ValueAxis.over(label, low, high)
    x = ValueAxis.within("rounds", 0, max(int(one.rounds[-1]) for one in lines))
    drawn = tuple(line(one.name, one.style, x, y=y, xs=one.rounds, ys=one.values) for one in lines)
    told = "; ".join(f"{one.name} from {one.values[0]:.6g} to {one.values[-1]:.6g}" for one in lines)
    ends = tuple((f"line-{one.style % 6}", f"{one.name}: {one.values[-1]:.6g}") for one in lines)
    title = f"{metric} by round"
    return Chart(title, f"{title}: {told}.", x, y, drawn, keys=ends, note=note)


def reliability(found: Evaluation) -> Chart:
    """Return the fraction of correct predictions by their probability."""
    x, y = ValueAxis.within("probability of the prediction", 0, 1), ValueAxis.within("fraction correct", 0, 1)
    kinds = [("probabilities", found["calibration"], found["ece"])]
    before = found["uncalibrated"]
    if before is not None:
        kinds = [("calibrated", *kinds[0][1:]), ("before calibration", before, before["ece"])]
    drawn, keys = [], []
    for number, (name, bins, ece) in enumerate(kinds):
        filled = bins["weight"] > 0
        drawn.append(line(name, number, x, y=y, xs=bins["confidence"][filled], ys=bins["accuracy"][filled]))
        keys.append((f"line-{number}", f"{name}: expected calibration error {ece:.4f}"))
    about = "Reliability: " + "; ".join(text for _, text in keys) + "."
    keys.append(("diagonal", "as often correct as they say"))
    return Chart("Reliability", about, x, y, tuple(drawn), keys=tuple(keys), diagonal=True)


def confidences(found: Evaluation) -> Chart:
    """Return how many rows are predicted with which probability."""
    bins = found["calibration"]
    right = bins["weight"] * np.nan_to_num(bins["accuracy"])
    edges = np.linspace(0, 1, len(right) + 1)
    x = ValueAxis.within("probability of the prediction", 0, 1)
    y = ValueAxis.over(_rows(found), 0, float(bins["weight"].max()))
    bars: list[Bar] = []
    for a, b, correct, weight in zip(edges[:-1], edges[1:], right, bins["weight"], strict=True):
        text = f"{a:.3f} to {b:.3f}: {amount(weight)}, of these {fraction(correct / weight) if weight else '–'} correct"
        if weight:
            bars += [
                bar("right", x, y, sides=(a, b), ends=(0, correct), text=text),
                bar("wrong", x, y, sides=(a, b), ends=(correct, weight), text=text),
            ]
    about = f"Rows by the probability of their prediction. {fraction(float(right[-1] / found['weight']))} of all are correct "
    about += f"with a probability above {edges[-2]:.2f}."
    return Chart("Confidence", about, x, y, bars=_seen(bars), keys=_RIGHT_WRONG)


_RIGHT_WRONG = (("bar-right", "correct"), ("bar-wrong", "wrong"))


def margins(found: Evaluation) -> Chart:
    """Return how far the score of the true class is above the largest other score."""
    edges, weights = found["margins"]["edges"], found["margins"]["weight"]
    x = ValueAxis.within(
        "score of the true class, less the largest other score", float(edges[0]), float(edges[-1])
    )
    y = ValueAxis.over(_rows(found), 0, float(weights.max()))
    bars = [
        bar(
            "right" if a >= 0 else "wrong",
            x,
            y,
            sides=(a, b),
            ends=(0, w),
            text=f"{a:.4g} to {b:.4g}: {amount(w)}",
        )
        for a, b, w in zip(edges[:-1], edges[1:], weights, strict=True)
    ]
    below = float(weights[edges[:-1] < 0].sum() / found["weight"])
    about = f"Margins from {edges[0]:.4g} to {edges[-1]:.4g}; {fraction(below)} of the rows have one below 0."
    return Chart("Margins", about, x, y, bars=_seen(bars), keys=_RIGHT_WRONG)


def _seen(bars: list[Bar]) -> tuple[Bar, ...]:
    return tuple(one for one in bars if one.height > 0)


def _rows(found: Evaluation) -> str:
    return "weight" if found.found.weighted else "rows"
