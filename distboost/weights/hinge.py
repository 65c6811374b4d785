"""The multiclass hinge loss, and sums of its cutting planes: see `kernels.hinge`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from distboost.kernels import hinge
from distboost.rows.block import BlockRows
from distboost.rows.sums import Reduction, Risk, Scale, Statistic, Weighting, spread
from distboost.weights.corrective import Stumps


@dataclass(frozen=True)
class HingeLoss(Weighting):
    """A row's loss max(0, 1 + max_k F[i, k] - F[i, y_i]), k != y_i. The shift is the logarithm of the largest 1 + loss."""

    def initial_shifts(self, n_classes: int) -> list[float]:
        return [math.log(2)]

    def growth(self, values: np.ndarray) -> list[float]:
        # 1 + loss + d <= (1 + loss) (1 + d)
        return [math.log1p(spread(values))]

    def risk(self, block: BlockRows, sums: Risk) -> None:
        hinge.hinge_risk(block.scores, block.labels, block.weights, sums.shifts[0], *sums[2:])


@dataclass(frozen=True)
class CuttingPlanes(Reduction):
    """[y, t, k], t < T: minus the derivative of the losses of class y with respect to W[t, k]; [y, T, 0]: its rows with a loss.

    Attributes
    ----------
    stumps : Stumps
    missing_bin : ndarray of shape (D,), int64
        The bin of missing values, by feature.
    W : ndarray of shape (T, K), float64
        Coefficients of the stumps.
    """

    stumps: Stumps
    missing_bin: np.ndarray
    W: np.ndarray

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_classes, len(self.W) + 1, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        hinge.cutting_planes(
            block.bins, self.missing_bin, block.labels, block.weights, block.order, *self.stumps.arrays, self.W,
            scale.factor, out,
        )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return 0.0


@dataclass(frozen=True)
class MixedCuts(Statistic):
    """V[i]: a row's cuts at several coefficients, each with a share that depends on the row's class.

    Attributes
    ----------
    stumps : Stumps
    missing_bin : ndarray of shape (D,), int64
        The bin of missing values, by feature.
    W : ndarray of shape (P, T, K), float64
        Coefficients of the stumps.
    shares : ndarray of shape (P, K), float64
        The shares, whose sum over P is 1 at the most.
    """

    stumps: Stumps
    missing_bin: np.ndarray
    W: np.ndarray
    shares: np.ndarray

    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        hinge.mixed_cuts(
            block.bins, self.missing_bin, block.labels, block.weights, rows, *self.stumps.arrays, self.W, self.shares,
            scale.factor, weight_factor, self.buffer(block, weight_factor),
        )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return 0.0
