"""Accuracy against time of the papers' algorithms at their defaults: ``python -m tests.benchmarks.choosing --write``.

Each algorithm trains on the training rows of letter, pendigits and satimage; the accuracy is that on the published test rows.
The figures are kept in choosing.json, and the picture of docs/choosing.md is drawn from them.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from distboost import registry
from distboost.estimators.factory import estimator
from tests.benchmarks.datasets import official

DATASETS = ("letter", "pendigits", "satimage")
ALGORITHMS = tuple(registry.PAPERS)
SEEN = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)
N_ROUNDS, N_THREADS = SEEN[-1], 2
KEPT = Path(__file__).with_suffix(".json")
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "choosing.png"

# [seconds, accuracy in %] of each algorithm, by data set
Figures = dict[str, dict[str, list[tuple[float, float]]]]


def curve(name: str, dataset: str, n_rounds: int = N_ROUNDS, repeats: int = 3) -> list[tuple[float, float]]:
    """Seconds, binning included, and test accuracy after some of the rounds: of the fastest repeat, with compiled kernels."""
    split = official(dataset)
    cls = estimator(name)
    seconds: list[list[float]] = []
    for rounds in (2, *[n_rounds] * repeats):  # the first compiles the kernels
        times: list[float] = []
        model = cls(
            n_estimators=rounds,
            n_jobs=N_THREADS,
            calibration=None,
            callbacks=[lambda _, times=times: times.append(time.perf_counter())],
        )
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a training run that ends early
            model.fit(split.X, split.y)
        seconds.append([when - began for when in times])
    found = np.min([each for each in seconds if len(each) == model.n_iter_][-repeats:], axis=0)
    staged = enumerate(model.staged_predict(split.X_test), 1)
    return [
        (round(float(found[n - 1]), 4), round(100 * float(np.mean(labels == split.y_test)), 2))
        for n, labels in staged
        if n in SEEN
    ]


def table(figures: Figures) -> Table:
    """The last accuracy of each algorithm, and its seconds."""
    shown = Table("algorithm", *figures)
    for name in ALGORITHMS:
        last = [curves[name][-1] for curves in figures.values()]
        shown.add_row(name, *(f"{accuracy:.2f} %, {seconds:.2f} s" for seconds, accuracy in last))
    return shown


def draw(figures: Figures, path: Path) -> None:
    """A panel for each data set."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(11, 4), layout="constrained")
    panels = picture.subplots(1, len(figures))
    for axes, (dataset, curves) in zip(panels, figures.items(), strict=True):
        for name in ALGORITHMS:
            seconds, accuracy = zip(*curves[name], strict=True)
            axes.plot(seconds, accuracy, label=registry.algorithm(name).__name__, linewidth=1.6)
        best = max(accuracy for each in curves.values() for _, accuracy in each)
        axes.set(xscale="log", title=dataset, xlabel="seconds of training", ylim=(best - 45, best + 2))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("test accuracy, %")
    panels[-1].legend(loc="lower right")
    picture.savefig(path, dpi=100, metadata={"Software": None})


@click.command()
@click.option("--write", is_flag=True, help="Measure again, and keep the figures.")
def main(write: bool) -> None:
    """Draw the picture of docs/choosing.md."""
    console = Console()
    if write:
        measured = {data: {name: curve(name, data) for name in ALGORITHMS} for data in DATASETS}
        KEPT.write_text(json.dumps(measured, indent=1) + "\n")
    figures: Any = json.loads(KEPT.read_text())
    console.print(table(figures))
    draw(figures, PICTURE)
    console.print(f"{PICTURE} is written.")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
