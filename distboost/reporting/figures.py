"""The charts of a report: learning curves, reliability, confidence and margins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distboost.evaluation.metrics import Evaluation
from distboost.reporting.charts import Axis, Bar, Chart, bar, line
from distboost.reporting.numbers import amount, fraction

LARGE_RATIO = 20  # between the largest and the smallest value: above it, the scale is logarithmic
TRAINING = "training"


def histories(model: Any) -> dict[str, dict[str, np.ndarray]]:
    """Return the values of each round, by metric and then by the name of the rows."""
    found: dict[str, dict[str, np.ndarray]] = {}
    for metric in ("loss", "error"):
        found[metric] = {TRAINING: getattr(model, f"train_{metric}_")}
    for name, values in getattr(model, "eval_history_", {}).items():
        for metric, rounds in values.items():
            found.setdefault(metric, {})[name] = np.asarray(rounds)
    return {metric: _measured(lines) for metric, lines in found.items() if _measured(lines)}


def _measured(lines: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: values for name, values in lines.items() if len(values)}


def learning_curves(model: Any) -> list[Chart]:
    """Return a chart of each metric by round."""
    return [_curve(metric, lines) for metric, lines in histories(model).items()]


def _curve(metric: str, lines: Mapping[str, np.ndarray]) -> Chart:
    values = np.concatenate(list(lines.values()))
    low, high = float(values.min()), float(values.max())
    log = low > 0 and high / low > LARGE_RATIO
    label = f"{metric.replace('_', ' ')}, logarithmic" if log else metric.replace("_", " ")
    y = (Axis.logarithmic if log else Axis.over)(label, low, high)
    x = Axis.within("rounds", 0, max(map(len, lines.values())))
    drawn = tuple(
        line(name, number, x, y, np.arange(1, len(rounds) + 1), rounds)
        for number, (name, rounds) in enumerate(lines.items())
    )
    told = "; ".join(f"{name} from {ys[0]:.4g} to {ys[-1]:.4g}" for name, ys in lines.items())
    ends = [
        (f"line-{number % 6}", f"{name}: {ys[-1]:.4g}") for number, (name, ys) in enumerate(lines.items())
    ]
    title = f"{metric.replace('_', ' ').capitalize()} by round"
    return Chart(title, f"{title}: {told}.", x, y, drawn, keys=tuple(ends))


def reliability(found: Evaluation) -> Chart:
    """Return the fraction of correct predictions by their probability."""
    x, y = Axis.within("probability of the prediction", 0, 1), Axis.within("fraction correct", 0, 1)
    kinds = [("probabilities", found["calibration"], found["ece"])]
    before = found["uncalibrated"]
    if before is not None:
        kinds = [("calibrated", *kinds[0][1:]), ("before calibration", before, before["ece"])]
    drawn, keys = [], []
    for number, (name, bins, ece) in enumerate(kinds):
        filled = bins["weight"] > 0
        drawn.append(line(name, number, x, y, bins["confidence"][filled], bins["accuracy"][filled]))
        keys.append((f"line-{number}", f"{name}: expected calibration error {ece:.4f}"))
    about = "Reliability: " + "; ".join(text for _, text in keys) + "."
    keys.append(("diagonal", "as often correct as they say"))
    return Chart("Reliability", about, x, y, tuple(drawn), keys=tuple(keys), diagonal=True)


def confidences(found: Evaluation) -> Chart:
    """Return how many rows are predicted with which probability."""
    bins = found["calibration"]
    right = bins["weight"] * np.nan_to_num(bins["accuracy"])
    edges = np.linspace(0, 1, len(right) + 1)
    x = Axis.within("probability of the prediction", 0, 1)
    y = Axis.over(_rows(found), 0, float(bins["weight"].max()))
    bars: list[Bar] = []
    for a, b, correct, weight in zip(edges[:-1], edges[1:], right, bins["weight"], strict=True):
        text = f"{a:.3f} to {b:.3f}: {amount(weight)}, of these {fraction(correct / weight) if weight else '–'} correct"
        if weight:
            bars += [
                bar("right", x, y, (a, b), (0, correct), text),
                bar("wrong", x, y, (a, b), (correct, weight), text),
            ]
    about = f"Rows by the probability of their prediction. {fraction(float(right[-1] / found['weight']))} of all are correct "
    about += f"with a probability above {edges[-2]:.2f}."
    return Chart("Confidence", about, x, y, bars=_seen(bars), keys=_RIGHT_WRONG)


_RIGHT_WRONG = (("bar-right", "correct"), ("bar-wrong", "wrong"))


def margins(found: Evaluation) -> Chart:
    """Return how far the score of the true class is above the largest other score."""
    edges, weights = found["margins"]["edges"], found["margins"]["weight"]
    x = Axis.within(
        "score of the true class, less the largest other score", float(edges[0]), float(edges[-1])
    )
    y = Axis.over(_rows(found), 0, float(weights.max()))
    bars = [
        bar("right" if a >= 0 else "wrong", x, y, (a, b), (0, w), f"{a:.4g} to {b:.4g}: {amount(w)}")
        for a, b, w in zip(edges[:-1], edges[1:], weights, strict=True)
    ]
    below = float(weights[edges[:-1] < 0].sum() / found["weight"])
    about = f"Margins from {edges[0]:.4g} to {edges[-1]:.4g}; {fraction(below)} of the rows have one below 0."
    return Chart("Margins", about, x, y, bars=_seen(bars), keys=_RIGHT_WRONG)


def _seen(bars: list[Bar]) -> tuple[Bar, ...]:
    return tuple(one for one in bars if one.height > 0)


def _rows(found: Evaluation) -> str:
    return "weight" if found.found.weighted else "rows"
