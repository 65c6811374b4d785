"""Accuracy over time with rows drawn by weight, uniformly, and with all rows: ``python -m tests.benchmarks.sampling``.

The fraction of rows is chosen on training rows: a fifth of them is held out, and the fraction wins that reaches the accuracy of
all rows' training after `ROUNDS` rounds in the least time; if none does, the one of largest accuracy. Test rows only measure.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from distboost import GDMCBoostClassifier
from tests.benchmarks.datasets import NAMES, Split, official
from tests.benchmarks.made import MADE, Size, made

ROUNDS = 50
MOST_ROUNDS = 75  # of a training run on some rows: its rounds are shorter
FRACTIONS = (0.1, 0.2, 0.4)
SIZES = {"spheres-10": Size(200_000, 50_000), "images": Size(12_000, 5_000), "mixture": Size(50_000, 20_000)}

Curve = tuple[list[float], list[float]]  # seconds and accuracy after each round


def data(name: str, rows: int | None = None) -> Split:
    """A data set by its name; "spheres-16" has 4 x 10^6 rows unless `rows` says otherwise."""
    if name == "spheres-16":
        rng = np.random.default_rng(0)
        n = rows or 4_000_000
        X, X_test = rng.standard_normal((n, 16), np.float32), rng.standard_normal((200_000, 16), np.float32)
        radius = np.square(X, dtype=np.float64).sum(axis=1)
        edges = np.quantile(radius, np.arange(1, 10) / 10)
        y_test = np.digitize(np.square(X_test, dtype=np.float64).sum(axis=1), edges)
        return Split(X, np.digitize(radius, edges), X_test, y_test)
    if name in MADE:
        return made(name, Size(rows, 50_000) if rows else SIZES.get(name))
    return official(name)


def curve(split: Split, n_rounds: int, n_threads: int, **setting: Any) -> Curve:
    """Train, binning included; measure the accuracies afterwards."""
    seconds: list[float] = []
    start = time.perf_counter()
    model = GDMCBoostClassifier(
        calibration=None,
        n_estimators=n_rounds,
        n_jobs=n_threads,
        callbacks=[lambda progress: seconds.append(time.perf_counter() - start)],
        **setting,
    ).fit(split.X, split.y)
    right = [float(np.mean(labels == split.y_test)) for labels in model.staged_predict(split.X_test)]
    return seconds, right


def by_weight(fraction: float) -> dict[str, Any]:
    return {"subsample": fraction, "sampling": "weight"}


def time_to(found: Curve, accuracy: float) -> float | None:
    """The seconds until the accuracy is reached; None if it never is."""
    return next((s for s, a in zip(*found, strict=True) if a >= accuracy), None)


def chosen(split: Split, n_threads: int) -> float:
    """The fraction that is best on held-out training rows."""
    held = np.random.default_rng(0).random(len(split.y)) < 0.2
    part = Split(split.X[~held], split.y[~held], split.X[held], split.y[held])
    goal = curve(part, ROUNDS, n_threads)[1][-1]

    def cost(fraction: float) -> tuple[float, float]:
        found = curve(part, MOST_ROUNDS, n_threads, **by_weight(fraction))
        needed = time_to(found, goal)
        return np.inf if needed is None else needed, -max(found[1])

    return min(FRACTIONS, key=cost)


def measured(name: str, n_threads: int, rows: int | None, fraction: float | None) -> dict[str, Any]:
    split = data(name, rows)
    fraction = fraction or chosen(split, n_threads)
    curves = {
        "all rows": curve(split, ROUNDS, n_threads),
        "by weight": curve(split, MOST_ROUNDS, n_threads, **by_weight(fraction)),
        "uniform": curve(split, MOST_ROUNDS, n_threads, subsample=fraction),
    }
    goal = curves["all rows"][1][-1]
    needed = {how: time_to(found, goal) for how, found in curves.items()}
    total = curves["all rows"][0][-1]
    ratios = {how: None if s is None else s / total for how, s in needed.items()}
    return {"data": str(split), "fraction": fraction, "curves": curves, "goal": goal, "ratios": ratios}


def plot(found: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    n = -(-len(found) // 2)
    figure, axes = pyplot.subplots(n, 2, figsize=(9, 2.6 * n), squeeze=False)
    for axis, (name, one) in zip(axes.flat, found.items(), strict=False):
        for how, (seconds, right) in one["curves"].items():
            axis.plot(seconds, right, label=how)
        lowest = min(right[5] for _, right in one["curves"].values())
        axis.set_ylim(bottom=max(lowest, one["goal"] - 0.3))
        axis.set_title(f"{name}, subsample={one['fraction']:g}", fontsize=9)
        axis.tick_params(labelsize=8)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    axes[0, 0].legend(fontsize=8)
    figure.supxlabel("seconds, binning included", fontsize=9)
    figure.supylabel("test accuracy", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


@click.command()
@click.option("--data", "names", default=",".join([*NAMES, *SIZES]), show_default=True)
@click.option("--rows", type=int, help="Training rows of made data.")
@click.option("--fraction", type=float, help="Do not choose the fraction.")
@click.option("--threads", default=2, show_default=True)
@click.option("--json", "path", type=click.Path(path_type=Path), help="Add the figures to this file.")
@click.option("--plot", "image", type=click.Path(path_type=Path), help="Plot all figures of the file.")
def main(
    names: str, rows: int | None, fraction: float | None, threads: int, path: Path | None, image: Path | None
) -> None:
    """Train on each data set and print the time to the accuracy of all rows, as a fraction of all rows' time."""
    known = json.loads(path.read_text()) if path is not None and path.exists() else {}
    warm = np.arange(40.0).reshape(20, 2)
    for setting in ({}, by_weight(0.5)):
        GDMCBoostClassifier(calibration=None, n_estimators=2, n_jobs=threads, **setting).fit(
            warm, np.arange(20) % 4
        )
    for name in filter(None, names.split(",")):
        found = known[name] = measured(name, threads, rows, fraction)
        last = {how: f"{found['curves'][how][1][ROUNDS - 1]:.4f}" for how in found["curves"]}
        seconds = {how: f"{found['curves'][how][0][ROUNDS - 1]:.2f}" for how in found["curves"]}
        print(
            name, found["data"], f"subsample={found['fraction']}", last, seconds, found["ratios"], flush=True
        )
        if path is not None:
            path.write_text(json.dumps(known))
    if image is not None:
        plot(known, image)


if __name__ == "__main__":
    main()
