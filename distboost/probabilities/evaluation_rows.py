"""The calibration of a run by its evaluation rows, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.source import spans
from distboost.model.learned import Learned
from distboost.probabilities.methods import PIECE_SCORES, ScoreSums, fit_calibration
from distboost.probabilities.temperature import TemperatureSums
from distboost.rows.block import BlockRows
from distboost.rows.messages import Rows, Step
from distboost.rows.sums import Reduced, Reduction, Scale
from distboost.training.staging import Problem


@dataclass(frozen=True)
class EvaluationSums(Reduction):
    """A reduction over evaluation rows: the sums from which the calibration follows.

    Attributes
    ----------
    decoded : callable
        decoded(G) returns the scores F, (n, n_classes), of the ensemble's own, (n, n_scores). It travels to workers, which need
        not know the algorithm.
    wanted : ScoreSums
    steps : tuple of Step, or None
        The steps that make the scores, from zero. None: the scores are those of the run.
    missing_bin : ndarray of shape (n_features,), int64
    """

    decoded: Callable[[np.ndarray], np.ndarray]
    wanted: ScoreSums
    steps: tuple[Step, ...] | None
    missing_bin: np.ndarray

    def shift(self, shifts: Sequence[float]) -> float:
        """Return 0: the sums are exact at any scale."""
        return 0.0

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the sums."""
        return (self.wanted.size(n_classes),)

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        """Add the sums over a block."""
        if self.steps is not None:
            block = block.at_zero()
            for step in self.steps:
                step.add(block, self.missing_bin, partitioned=False)
        for a, b in spans(0, len(block.present), max(PIECE_SCORES // block.n_classes, 1)):
            rows = block.present[a:b]
            F = self.decoded(block.scores[rows].astype(np.float64))
            into.sums[:] += self.wanted(F, block.labels[rows], block.weights[rows])
        return into


def calibrated_by_evaluation_rows(method: str, problem: Problem, rows: Rows, learned: Learned) -> Learned:
    """Return what was learned, with its calibration by a method and the last evaluation rows."""
    algorithm, ensemble = problem.algorithm, learned.ensemble
    # Early stopping may have dropped rounds. The scores of corrective algorithms depend, in their last digits, on whether the
    # run was resumed.
    are_current = len(ensemble) == learned.n_rounds and not algorithm.corrective
    steps = None if are_current else tuple(ensemble.steps(range(len(ensemble)), problem.profile.edges))
    reduction = EvaluationSums(_decoder(algorithm), TemperatureSums(()), steps, rows.n_bins.astype(np.int64))

    def sums(wanted: ScoreSums) -> np.ndarray:
        return rows.evaluated(replace(reduction, wanted=wanted)).sums

    return learned._replace(calibration=fit_calibration(method, sums, algorithm.n_classes))


def _decoder(algorithm: Algorithm) -> Callable[[np.ndarray], np.ndarray]:
    """Return `algorithm.decoded`, without the algorithm if it has no codes."""
    return _same if type(algorithm).decoded is Algorithm.decoded else algorithm.decoded


def _same(G: np.ndarray) -> np.ndarray:
    return G
