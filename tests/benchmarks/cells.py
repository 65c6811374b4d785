"""Counts of single cells in memory, beside XGBoost and LightGBM (`--rival LightGBM`): ``python -m tests.benchmarks.cells``.

Rounds differ: a round of distboost is one tree for all classes, that of the others a tree for each class. So the measure is the
time until held-out cells are told apart as well as by XGBoost's default after some rounds. Evaluation is included for distboost
alone, which must find out when it has got there.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import scipy.sparse

from distboost import GDMCBoostClassifier, Progress
from examples.cells import Tissue
from tests.benchmarks.results import table

MOST_ROUNDS = 1000
# For counts of which many tell a little each: cheap rounds, and leaves with a value for each class, of its own curvature.
SETTINGS: dict[str, Any] = {
    "loss": "softmax", "leaf": "newton", "learning_rate": 0.5, "max_features": 0.05, "calibration": None
}  # fmt: skip
PART = 2000  # cells that are made together


class Cells(NamedTuple):
    """Counts in CSR and types; the last `n_held_out` are held out."""

    X: scipy.sparse.csr_array
    y: np.ndarray
    n_held_out: int

    @classmethod
    def made(cls, n: int, n_genes: int, n_types: int, stored: float = 0.033) -> Cells:
        tissue, random = Tissue(n_genes, n_types, 0, stored), np.random.default_rng(1)
        parts = [tissue.cells(min(PART, n - first), random) for first in range(0, n, PART)]
        X = scipy.sparse.vstack([counts for counts, _ in parts], format="csr")
        return cls(X, np.concatenate([types for _, types in parts]), n // 10)

    @property
    def train(self) -> tuple[Any, np.ndarray]:
        return self.X[: -self.n_held_out], self.y[: -self.n_held_out]

    @property
    def held_out(self) -> tuple[Any, np.ndarray]:
        return self.X[-self.n_held_out :], self.y[-self.n_held_out :]


class Took(NamedTuple):
    """What a fit took: seconds in all and of a round, rounds, MB beside the matrices; and its held-out accuracy."""

    seconds: float
    of_a_round: float
    rounds: int
    megabytes: float
    accuracy: float


def rival(name: str, cells: Cells, rounds: int, threads: int) -> Took:
    """XGBoost or LightGBM at its defaults, but for the number of rounds."""
    from lightgbm import LGBMClassifier
    from xgboost import XGBClassifier

    def fit(n: int) -> tuple[float, Any]:
        settings: dict[str, Any] = {"n_estimators": n, "n_jobs": threads}
        model = XGBClassifier(**settings) if name == "XGBoost" else LGBMClassifier(**settings, verbose=-1)
        started = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - started, model

    X, y = cells.train
    before = _beginning()
    first, _ = fit(1)
    seconds, model = fit(rounds)
    megabytes = _memory("VmHWM") - before
    X_test, y_test = cells.held_out
    accuracy = float(np.mean(model.predict(X_test) == y_test))
    return Took(seconds, (seconds - first) / (rounds - 1), rounds, megabytes, accuracy)


def ours(cells: Cells, wanted: float, threads: int) -> Took:
    """GD-MCBoost with SETTINGS until its held-out accuracy is the one wanted."""
    times, accuracies = [time.perf_counter()], [0.0]

    def watch(progress: Progress) -> bool:
        times.append(time.perf_counter())
        accuracies.append(1 - progress.evaluations["eval"]["error"])
        return accuracies[-1] >= wanted

    before = _beginning()
    model = GDMCBoostClassifier(n_estimators=MOST_ROUNDS, n_jobs=threads, callbacks=[watch], **SETTINGS)
    held_out = cells.held_out
    X, y = cells.train
    times[0] = time.perf_counter()
    model.fit(X, y, eval_set={"eval": held_out})
    rounds = len(times) - 1
    return Took(
        times[-1] - times[0],
        float(np.median(np.diff(times)[-9:])),
        rounds,
        _memory("VmHWM") - before,
        accuracies[-1],
    )


def _memory(what: str) -> float:
    """VmRSS or VmHWM (the peak) of this process, in MB."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)]
    return int(line.split()[1]) * 1.024e-3


def _beginning() -> float:
    """The memory of this process, in MB. The peak counts from here on."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _alone(to: Connection, function: Any, *arguments: Any) -> None:
    to.send(function(*arguments))


def alone(function: Any, *arguments: Any) -> Took:
    """What a function returns in a process of its own, whose peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_alone, args=(there, function, *arguments))
    process.start()
    there.close()
    try:
        found: Took = here.recv()
    finally:
        process.join()
    return found


@click.command()
@click.option("--cells", "n", default=100_000, show_default=True)
@click.option("--genes", default=20_000, show_default=True)
@click.option("--types", default=40, show_default=True)
@click.option("--rounds", default=20, show_default=True, help="Rounds of the rivals, 2 or more.")
@click.option("--threads", default=2, show_default=True)
@click.option("--rival", "rivals", multiple=True, type=click.Choice(["LightGBM"]), help="Beside XGBoost.")
def main(n: int, genes: int, types: int, rounds: int, threads: int, rivals: tuple[str, ...]) -> None:
    """Prints the time of each to the accuracy that XGBoost's default has after some rounds."""
    cells = Cells.made(n, genes, types)
    stored = cells.X.nnz / n / genes
    click.echo(
        f"{n} cells, {cells.n_held_out} of them held out; {genes} genes, {stored:.1%} stored; {types} types"
    )
    found = {name: alone(rival, name, cells, rounds, threads) for name in dict.fromkeys(("XGBoost", *rivals))}
    found["distboost"] = alone(ours, cells, found["XGBoost"].accuracy, threads)
    lines = [
        [
            name,
            f"{took.seconds:.1f}",
            f"{took.of_a_round:.2f}",
            str(took.rounds),
            f"{took.megabytes:.0f}",
            f"{took.accuracy:.1%}",
        ]
        for name, took in found.items()
    ]
    click.echo(table(["", "s", "s a round", "rounds", "MB beside the matrices", "held-out accuracy"], lines))


if __name__ == "__main__":
    main()
