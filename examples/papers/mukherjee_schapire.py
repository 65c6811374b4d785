"""Mukherjee & Schapire: results of AdaBoost.MM.

I. Mukherjee and R. E. Schapire, *A Theory of Multiclass Boosting*, NIPS 2010, section 5.

The paper boosts six UCI data sets and shows test errors as curves and bars, without numbers. Its text names neither the data sets
nor their splits; here they are six sets with few to many classes, with their official splits, or three quarters of the rows to
learn from. AdaBoost.MM is the paper's "New method" (adaptive, section 4); AdaBoost.MH has leaves that name one class
(`vote="label"`), as the paper's weak classifiers have. All boost the same trees, grown best leaf first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sklearn.base import clone

import distboost
from distboost import baselines
from examples.papers.common import (
    Method,
    Split,
    Table,
    after,
    error,
    error_curve,
    main,
    official,
    random_splits,
)

DATASETS = ("vowel", "segment", "satimage", "pendigits", "optdigits", "letter")
SIZES = (5, 10, 20, 50)  # leaves
ROUNDS = 500
SHOWN = (5, 20, 100, ROUNDS)

TREES: dict[str, Any] = {"max_depth": None, "n_estimators": ROUNDS, "calibration": None, "n_jobs": 1}


def splits(name: str) -> Iterator[Split]:
    """The official split, or a random one."""
    return random_splits(name, 1) if name == "segment" else official(name)


def method(kind: type, leaves: int, **parameters: Any) -> Method:
    return Method(lambda K: kind(max_leaf_nodes=leaves, **TREES, **parameters))


def systems(leaves: int) -> dict[str, Method]:
    """The three systems with trees of this size."""
    return {
        "AdaBoost.MM": method(distboost.AdaBoostMMClassifier, leaves),
        "AdaBoost.M1": method(baselines.AdaBoostM1Classifier, leaves),
        "AdaBoost.MH": method(baselines.AdaBoostMHClassifier, leaves, vote="label"),
    }


def by_size(model: Any, split: Split) -> list[float]:
    """The test error after all rounds, for each size of trees."""
    return [error(clone(model).set_params(max_leaf_nodes=leaves), split)[0] for leaves in SIZES]


def by_rounds(model: Any, split: Split) -> list[float]:
    """The test error after some rounds, and how many rounds there were."""
    curve = error_curve(model, split)
    if len(curve) == 0:  # not even one tree has an edge
        return [*(100 - 100 * model.score(split.X_test, split.y_test) for _ in SHOWN), 0]
    return [*(after(curve, n) for n in SHOWN), len(curve)]


TABLES = (
    Table(
        name="figure_1a",
        caption=f"Test errors in % after {ROUNDS} rounds, by the number of leaves that a tree may have.",
        datasets=DATASETS,
        methods=systems(SIZES[0]),
        splits=splits,
        measure=by_size,
        columns=[f"{leaves} leaves" for leaves in SIZES],
        quick=("vowel",),
        comment="As in the paper, AdaBoost.MM boosts trees of any size, and its lead is largest with the smallest. AdaBoost.M1 "
        "cannot use a tree with an error of 1/2 or more: on vowel, pendigits, optdigits and letter, the first tree of 5 leaves "
        "is one, and the model predicts one class. With 50 leaves, the systems are close, except on letter.",
    ),
    Table(
        name="figure_1b",
        caption="Trees of 5 leaves: test errors in % by rounds, and the number of rounds: AdaBoost.M1 and MH stop when a tree "
        "has no edge for them. After that, the last error stands.",
        datasets=DATASETS,
        methods=systems(5),
        splits=splits,
        measure=by_rounds,
        columns=[*(f"{n} rounds" for n in SHOWN), "rounds made"],
        quick=("vowel",),
        comment="As in the paper, AdaBoost.M1 and MH lower the error for a few rounds and then stop, because no small tree meets "
        "their demands on the harder weights; AdaBoost.MM goes on. In the paper their curves continue, flat.",
    ),
    Table(
        name="figure_2",
        caption=f"Test errors in % after {ROUNDS} rounds. AdaBoost.M1 and MM boost trees of 200 leaves at most, in place of "
        "C4.5's trees and trees of their size. AdaBoost.MH boosts stumps whose leaves vote on every class, as in BoosTexter.",
        datasets=DATASETS,
        methods={
            "AdaBoost.MM": method(distboost.AdaBoostMMClassifier, 200),
            "AdaBoost.M1": method(baselines.AdaBoostM1Classifier, 200),
            "AdaBoost.MH": method(baselines.AdaBoostMHClassifier, 2),
        },
        splits=splits,
        measure=error,
        quick=("vowel",),
        comment="As in the paper, AdaBoost.MM is comparable with M1 and better than MH with stumps, by far where there are many "
        "rows or classes. On letter, it is also much better than M1.",
    ),
)

if __name__ == "__main__":
    sys.exit(main(__file__, __doc__, TABLES))
