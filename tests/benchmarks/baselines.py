"""The comparison systems and MCBoost's losses on four data sets: ``python -m tests.benchmarks.baselines``.

The test error of each system after 100 rounds, at its defaults but for the parameters in the table's
first column, on the published training and test rows. `calibration=None`: it takes time, and changes no predicted class.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import click

from distboost.errors import TrainingEndedWarning
from distboost.estimators.factory import estimator
from examples.papers.common import error, official
from tests.benchmarks.results import table

SYSTEMS: list[tuple[str, dict[str, Any]]] = [
    ("one-vs-all", {}),
    ("all-pairs", {}),
    ("all-pairs", {"decoding": "sum"}),
    ("output-code", {}),
    ("gentle-adaboost", {}),
    ("adaboost-m1", {}),
    ("samme", {"max_depth": 3}),
    ("samme-r", {}),
    ("adaboost-m2", {}),
    ("adaboost-mr", {}),
    ("adaboost-mh", {}),
    ("adaboost-mh", {"vote": "label", "max_depth": 3}),
    ("adaboost-ecc", {}),
    ("logitboost", {}),
    ("aoso-logitboost", {}),
    ("jointboost", {}),
    ("gradboost", {}),
    ("multiboost", {"n_estimators": 20}),
    ("structboost", {"n_estimators": 20}),
    ("cd-mcboost", {}),
    ("cd-mcboost", {"loss": "logistic"}),
    ("cd-mcboost", {"max_depth": 3}),
    ("cd-mcboost", {"max_depth": 3, "leaf": "mean"}),
    ("cd-mcboost", {"max_depth": 3, "leaf": "mean", "loss": "logistic"}),
    ("gd-mcboost", {}),
    ("gd-mcboost", {"loss": "logistic"}),
    ("gd-mcboost", {"loss": "logistic", "learning_rate": 0.3}),
]
DATASETS = ("vowel", "glass", "vehicle", "letter")
NOT_ON_LETTER = (
    "multiboost",
    "structboost",
)  # they optimise all coefficients in each round: see docs/baselines.md


@click.command(help=__doc__)
@click.option("--algorithm", "algorithms", multiple=True, help="Only these systems.")
@click.option("--data", "datasets", multiple=True, default=DATASETS, type=click.Choice(DATASETS))
@click.option("--rounds", default=100)
def main(algorithms: tuple[str, ...], datasets: tuple[str, ...], rounds: int) -> None:
    warnings.simplefilter("ignore", TrainingEndedWarning)
    lines = []
    for name, parameters in SYSTEMS:
        if algorithms and name not in algorithms:
            continue
        figures = []
        for dataset in datasets:
            if dataset == "letter" and name in NOT_ON_LETTER:
                figures.append("")
                continue
            [split] = official(dataset)
            started = time.perf_counter()
            model = estimator(name)(**{"n_estimators": rounds, "calibration": None, **parameters})
            [wrong] = error(model, split)
            seconds = time.perf_counter() - started
            click.echo(
                f"{name} {parameters} {dataset}: {wrong:.1f} %, {model.n_iter_} rounds, {seconds:.1f} s",
                err=True,
            )
            ended = "" if model.n_iter_ == model.n_estimators else f" ({model.n_iter_} rounds)"
            figures.append(f"{wrong:.1f}{ended}")
        settings = ", ".join(f"{parameter}={value!r}" for parameter, value in parameters.items())
        lines.append([f"{name}{', ' * bool(settings)}{settings}", *figures])
    click.echo(table(["test error in %", *datasets], lines))


if __name__ == "__main__":
    main()
