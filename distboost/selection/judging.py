"""Judge a fitted model by binned rows: the same sums as those of `evaluate`, which reads raw rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.blocks import AnyRows, BinnedSet, Profile, TaskRunner
from distboost.data.source import spans
from distboost.errors import DataError
from distboost.estimators.evaluating import judge_of
from distboost.estimators.parameters import CommonParameters, algorithm_of
from distboost.evaluation.metrics import METRICS, Totals, chosen
from distboost.evaluation.sums import DECISIONS, PIECE_NUMBERS, PIECE_ROWS, Judge, Places, Sums, merged
from distboost.rows.messages import Step
from distboost.runtime.block import Block

# The metrics that have a mean over folds.
NUMBERS = (
    "accuracy", "balanced_accuracy", "precision_macro", "recall_macro", "f1_macro", "precision_weighted", "recall_weighted",
    "f1_weighted", "majority_baseline", "log_loss", "brier", "ece", "auc_ovr",
)  # fmt: skip

# Those that are better if they are smaller: a search takes them with "neg_" before the name.
LOSSES = frozenset({"log_loss", "brier", "ece"})


@dataclass(frozen=True)
class BinnedJudge:
    """What workers need to judge binned rows.

    Attributes
    ----------
    judge : Judge
    algorithm : Algorithm
    n_scores : int
    steps : list of Step
        The steps that make the scores, from zero.
    missing_bin : ndarray of shape (n_features,), int64
    """

    judge: Judge
    algorithm: Algorithm
    n_scores: int
    steps: list[Step]
    missing_bin: np.ndarray

    def sums(self, rows: AnyRows) -> Sums:
        """Return the sums over a block. Weights are multiplied by a power of two, which no mean depends on."""
        n_classes = len(self.judge.classes)
        block = Block(rows, n_classes, self.n_scores, score_dtype="float64")
        for step in self.steps:
            step.add(block, self.missing_bin, partitioned=False)
        total = Sums()
        for a, b in spans(0, block.n_rows, max(min(PIECE_ROWS, PIECE_NUMBERS // n_classes), 1)):
            F = self.algorithm.decoded(block.scores[a:b])
            codes = block.labels[a:b].astype(np.int64)
            total = merged(total, self.judge.sums(F, codes, block.weights[a:b], block.first + a))
        return total


def numbers_of(names: Any) -> dict[str, str]:
    """Return the group of each metric; raise DataError unless all are numbers."""
    groups = chosen(names, NUMBERS)
    if not groups:
        raise DataError(
            "``metrics`` is empty.", remedy="Pass the names of some metrics, or None for the default."
        )
    for name in groups:
        if name not in NUMBERS:
            raise DataError(
                f"``metrics`` has {name!r}, which is not a number.",
                value=name,
                remedy=f"Pass some of {', '.join(NUMBERS)}.",
            )
    return groups


class Scoring(NamedTuple):
    """What a search maximises: a metric, or a loss times -1."""

    metric: str
    sign: int

    @classmethod
    def of(cls, name: str) -> Scoring:
        """Return the scoring of this name, as scikit-learn names it; raise DataError if there is none."""
        known = {f"neg_{m}" if m in LOSSES else m: cls(m, -1 if m in LOSSES else 1) for m in NUMBERS}
        if not isinstance(name, str) or name not in known:
            raise DataError.expected("``scoring``", name, f"one of {', '.join(known)}")
        return known[name]


def judged(
    model: CommonParameters,
    rows: BinnedSet,
    profile: Profile,
    *,
    weighted: bool,
    groups: Mapping[str, str],
    work: TaskRunner,
) -> dict[str, float]:
    """Return the metrics of a fitted model on binned rows. Each row is read once."""
    ensemble = model.learned_.ensemble
    judge = BinnedJudge(
        judge_of(model, {DECISIONS, *groups.values()}, True, places=Places("X", "y", "sample_weight")),
        algorithm_of(model, len(profile.classes)),
        ensemble.n_scores,
        ensemble.steps(range(len(ensemble)), profile.edges),
        profile.n_bins,
    )
    shared = work.share(judge)
    found = work.each(_judge_block, ((shared, rows.function, *call) for call in rows.calls))
    totals = Totals(reduce(merged, found, Sums()), profile.classes, weighted)
    return {name: METRICS[group][name](totals) for name, group in groups.items()}


def _judge_block(judge: BinnedJudge, function: Callable[..., AnyRows], *call: Any) -> Sums:
    return judge.sums(function(*call))
