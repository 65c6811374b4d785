"""Huang: results of GAMBLE.

J. Huang, *A Multiclass Boosting Classification Method with Active Learning*, Penn State, 2009.

GAMBLE, alone and beside SAMME with trees of the same size. The thesis shows curves and few numbers; the text below each table
summarises what it says about them. The reference is an independent NumPy implementation with exact thresholds, in
`tests/reference`: `python -m tests.reference --system gamble --data glass`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import chi2

import distboost
from distboost import baselines
from examples.papers.common import (
    QUICK_ROUNDS,
    Method,
    Picture,
    Split,
    Table,
    after,
    error_curve,
    main,
    official,
)

LEAVES = 15


def gamble(n_rounds: int, leaves: int = LEAVES):
    """The thesis repeats a tree without an error."""
    return distboost.GAMBLEClassifier(
        n_estimators=n_rounds, max_leaf_nodes=leaves, on_separation="stop", calibration=None, n_jobs=1
    )


def samme(n_rounds: int, leaves: int = LEAVES):
    return baselines.SAMMEClassifier(
        calibration=None, n_estimators=n_rounds, max_depth=None, max_leaf_nodes=leaves, n_jobs=1
    )


def at_rounds(*rounds: int) -> Callable[..., list[float]]:
    """The test error after these rounds."""

    def measure(model, split: Split) -> list[float]:
        curve = error_curve(model, split)
        return [after(curve, n) for n in rounds]

    return measure


def with_lowest(*rounds: int) -> Callable[..., list[float]]:
    """The test error after these rounds, and the lowest of all."""

    def measure(model, split: Split) -> list[float]:
        curve = error_curve(model, split)
        return [*(after(curve, n) for n in rounds), float(curve.min())]

    return measure


# The concentric spheres: 10 normal features; classes are shells of equal probability.


def spheres(name: str) -> Iterator[Split]:
    n_classes = int(name.rpartition(" ")[2])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000 * n_classes + 10_000, 10))
    bounds = chi2.ppf(np.arange(1, n_classes) / n_classes, df=10)  # of the squared radius
    y = np.digitize((X**2).sum(axis=1), bounds)
    n = 1000 * n_classes
    yield Split(X[:n], y[:n], X[n:], y[n:])


SHOWN = (1, 3, 10, 30, 100, 300, 1000)
SYSTEMS = {"GAMBLE": gamble, "SAMME": samme}


def draw_curves(canvas, quick: bool) -> None:
    """Figures 5.3 and 5.4."""
    canvas.set_size_inches(10, 4)
    for axes, dataset in zip(canvas.subplots(1, 2), ("glass", "segment"), strict=True):
        for name, make in SYSTEMS.items():
            curve = error_curve(make(QUICK_ROUNDS if quick else 1000), next(official(dataset)))
            axes.plot(np.arange(1, len(curve) + 1), curve, label=name)
        axes.set(title=dataset, xscale="log", xlabel="rounds", ylabel="test error, %", ylim=(0, None))
        axes.legend()


def with_training_errors(*rounds: int) -> Callable[..., list[float]]:
    """The training error, then the test error, after these rounds."""

    def measure(model, split: Split) -> list[float]:
        test = error_curve(model, split)
        training = 100 * model.train_error_
        return [after(curve, n) for curve in (training, test) for n in rounds]

    return measure


TABLES = (
    Table(
        name="figure_5.1",
        caption="GAMBLE with trees of several sizes: test error in % after 10, 50, 100, 200 and 600 rounds.",
        datasets=("pendigits",),
        methods={
            f"{leaves} leaves": Method(lambda K, n=leaves: gamble(600, n))
            for leaves in (2, 4, 6, 8, 10, 12, 14)
        },
        splits=official,
        measure=at_rounds(10, 50, 100, 200, 600),
        columns=("10 rounds", "50 rounds", "100 rounds", "200 rounds", "600 rounds"),
        quick=("pendigits",),
        comment="In the thesis, stumps need far more rounds than larger trees, and 10, 12 and 14 leaves are almost the same "
        "after 600. The former is reproduced. Here the error after 600 rounds falls from 6.3 % with 10 leaves to 4.4 % with 14.",
    ),
    Table(
        name="figure_5.2",
        caption="GAMBLE beside SAMME, trees of 15 leaves: test error in % after 10, 100 and 1000 rounds, and the lowest of "
        "all rounds. The paper's figure is the target error rate in its table 5.2: the lowest of GAMBLE's 1000 rounds.",
        datasets=("glass", "pendigits", "satimage", "segment", "soybean", "splice", "vehicle", "vowel"),
        methods={
            "GAMBLE": Method(
                lambda K: gamble(1000),
                paper=(27.5, 4.71, 12.6, 4.62, 5.65, 4.48, 27.3, 47.0),
                reference=(18.81, 4.32, 12.65, 4.62, 5.59, 3.64, 26.42, 45.67),
            ),
            "SAMME": Method(lambda K: samme(1000)),
        },
        splits=official,
        measure=with_lowest(10, 100, 1000),
        columns=("10 rounds", "100 rounds", "1000 rounds", "lowest"),
        quick=("glass",),
        comment="In the thesis, GAMBLE generally has the smaller error at 10, 100 and 1000 rounds (sign test, p = 0.0066). "
        "This is not reproduced: here it has the smaller error on 3, 5 and 4 of the 8 data sets. The thesis does not state "
        "which trees its SAMME boosted. The reference's figure is its lowest error of 200 rounds, on "
        "pendigits, satimage and splice of 300 (`--rounds 300`). On glass, where distboost's thresholds are exact, too, the "
        "scores of all rows are equal for 8 rounds; then test rows differ. On soybean, missing values go to one side of each "
        "split here; the reference replaces them by the medians of the training rows. If "
        "distboost does so, GAMBLE's lowest error of 200 rounds is 4.79 %.",
    ),
    Table(
        name="figures_5.3_and_5.4",
        caption="GAMBLE and SAMME on glass and segment, trees of 15 leaves: test error in % after 1 to 1000 rounds.",
        datasets=("glass", "segment"),
        methods={name: Method(lambda K, make=make: make(1000)) for name, make in SYSTEMS.items()},
        splits=official,
        measure=at_rounds(*SHOWN),
        columns=[str(n) for n in SHOWN],
        quick=("glass",),
        comment="In the thesis, GAMBLE has the smaller error on both. Here it does on segment from 10 rounds on; on glass, the "
        "two cross several times, and SAMME is lower after 300 and 1000 rounds.",
        picture=Picture(
            "huang_figures_5.3_and_5.4.png",
            "Test errors of GAMBLE and SAMME by rounds on glass and segment",
            draw_curves,
        ),
    ),
    Table(
        name="figures_5.7_and_5.8",
        caption="The concentric spheres: 10 normal features, K shells of equal probability, 1000 K training rows and "
        "10,000 test rows. Errors in % after 20, 120 and 500 rounds.",
        datasets=("spheres 2", "spheres 5"),
        methods={"GAMBLE": Method(lambda K: gamble(500)), "SAMME": Method(lambda K: samme(500))},
        splits=spheres,
        measure=with_training_errors(20, 120, 500),
        columns=("training, 20", "training, 120", "training, 500", "test, 20", "test, 120", "test, 500"),
        quick=("spheres 2",),
        comment="In the thesis, the training error for K = 2 is 0 after about 20 rounds, and the test error continues to "
        "fall. For K = 5, SAMME has the smaller training error after 120 rounds, and a test error that is larger by 10 %. "
        "All of this is reproduced.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, TABLES))
