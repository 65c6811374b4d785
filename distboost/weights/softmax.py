"""The multinomial logistic loss: weights, and sums for Newton's method; sums for line searches along logistic losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from distboost.kernels import margin, softmax
from distboost.kernels.lanes import LANES
from distboost.rows.block import BlockRows
from distboost.rows.sums import Reduction, Scale, Statistic, spread
from distboost.weights.margin import SOFTMAX, MarginWeights, Residuals


@dataclass(frozen=True)
class SoftmaxWeights(MarginWeights):
    """Weights p[i, k], k != y_i: the softmax of a row's scores. The loss of a row is log sum_k exp(F[i, k] - F[i, y_i])."""

    s: float = field(default=1.0, init=False)
    link: int = field(default=SOFTMAX, init=False)


@dataclass(frozen=True)
class SoftmaxResiduals(Residuals):
    """V[i, k] = [k = y_i] - p[i, k]: minus the slope of the loss."""

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift of the weights. However much the scores change, a row's weights sum to at most 1."""
        return min(shifts[0], 0.0)


class SoftmaxStatistic(Statistic):
    """A wide statistic of the softmax weights, whose numbers do not exceed a row's total weight."""

    wide: bool = True

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift of the weights. However much the scores change, a row's weights sum to at most 1."""
        return min(shifts[0], 0.0)


@dataclass(frozen=True)
class WorkingResponses(SoftmaxStatistic):
    """(w z, w): the curvature w = p[i, k] (1 - p[i, k]) of a class k, and Newton's step z = ([k = y_i] - p[i, k]) / w for a row.

    Attributes
    ----------
    column : int
        The class k.
    limit : float
        z is clipped to +-limit.
    """

    column: int
    limit: float

    def n_sums(self, n_classes: int) -> int:
        return 2

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = self.buffer(block, weight_factor)
        softmax.working_responses(
            block.scores, block.labels, block.weights, rows, self.column, self.limit, scale.shift, scale.factor,
            weight_factor, out,
        )  # fmt: skip


@dataclass(frozen=True)
class PairCurvatures(SoftmaxStatistic):
    """(V, C): minus the slope of the loss, V[k] = [k = y_i] - p[i, k], and a quarter of its curvature for each pair of classes.

    The curvature is that along e_r - e_s, for r < s: p_r (1 - p_r) + p_s (1 - p_s) + 2 p_r p_s. C[s (s - 1) / 2 + r] holds it.
    """

    def n_sums(self, n_classes: int) -> int:
        return n_classes * (n_classes + 1) // 2

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = self.buffer(block, weight_factor)
        softmax.pair_curvatures(
            block.scores, block.labels, block.weights, rows, scale.shift, scale.factor, weight_factor, out
        )


@dataclass(frozen=True)
class Curvatures(Reduction):
    """The sums of `HitsAndMisses`, [l, :2, c], and the curvatures of the loss, [l, 2, c]: p[i, c] (1 - p[i, c])."""

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, 3, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        softmax.curvatures(*block.leaf_arrays(leaves), scale.shift, scale.factor, out)


@dataclass(frozen=True)
class SoftmaxSlopes(Reduction):
    """The slope of the loss along `values`, after each of eight steps: see `kernels.softmax.softmax_slopes`.

    Attributes
    ----------
    values : ndarray of shape (n_leaves, K), float64
        The direction: a tree's leaf values.
    steps : ndarray of shape (8,), float64
        The steps along the direction.
    """

    values: np.ndarray
    steps: np.ndarray

    @property
    def largest(self) -> float:
        """The logarithm of the most that a row's weights sum to."""
        return 0.0

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (LANES + 1,)

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        softmax.softmax_slopes(
            *block.leaf_arrays(leaves), self.logs(scale.shift), scale.factor, self.values, self.steps, out
        )

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift of the weights before a step."""
        return min(shifts[0], self.largest)

    def logs(self, shift: float) -> np.ndarray:
        """The shift of each slope: that of the weights, raised by the largest fall of a margin."""
        raised: np.ndarray = np.minimum(shift + self.steps * spread(self.values), self.largest)
        return raised


@dataclass(frozen=True)
class PairSlopes(SoftmaxSlopes):
    """As `SoftmaxSlopes`, of the loss sum_k log(1 + exp(F[i, k] - F[i, y_i])): see `kernels.margin.pair_slopes`."""

    @property
    def largest(self) -> float:
        # A weight for each of the other classes, of at most 1.
        return math.log(self.values.shape[1] - 1)

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.pair_slopes(
            *block.leaf_arrays(leaves), self.logs(scale.shift), scale.factor, self.values, self.steps, out
        )
