"""Weights that follow from a row's margins F[i, y_i] - F[i, k]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.kernels import margin, sampling, simd, softmax
from distboost.kernels.tiles import EXPONENTIAL, LOGISTIC, SOFTMAX
from distboost.rows.block import BlockRows
from distboost.rows.sums import Reduction, Risk, Scale, Statistic, Weighting, spread

__all__ = ["EXPONENTIAL", "LOGISTIC", "SOFTMAX"]

# The links other than the exponential divide by e^shift itself, which must stay a normal float.
LOWEST = -600.0

NO_VECTORS = np.empty((0, 0), np.int32)
NO_RISK = np.empty(0, np.int64), np.empty(1)


@dataclass(frozen=True)
class MarginWeights(Weighting):
    """Weights u[i, k], k != y_i, that the link makes of e[i, k] = exp(-s (F[i, y_i] - F[i, k])); sums are over k != y_i.

    | link | weight u | loss of a row |
    | --- | --- | --- |
    | EXPONENTIAL | e | sum_k e |
    | LOGISTIC | e / (1 + e) | sum_k log(1 + e) |
    | SOFTMAX | e / (1 + sum_l e_l) | log(1 + sum_k e) |
    """

    s: float
    link: int = EXPONENTIAL

    def initial_shifts(self, n_classes: int) -> list[float]:
        """The logarithms of a row's total weight and, if the link's loss is not the total weight, of its loss."""
        wrong = n_classes - 1
        if self.link == EXPONENTIAL:
            return [math.log(wrong)]
        if self.link == LOGISTIC:
            return [math.log(wrong / 2), math.log(wrong * math.log(2))]
        return [math.log(wrong / n_classes), math.log(math.log(n_classes))]

    def growth(self, values: np.ndarray) -> list[float]:
        # If margins fall by d, every weight and loss grows by a factor of at most e^(s d): log(1 + c x) <= c log(1 + x), c >= 1.
        return [self.s * spread(values)] * (1 if self.link == EXPONENTIAL else 2)

    def risk(self, block: BlockRows, sums: Risk) -> None:
        given = block.scores, block.labels, block.weights
        if self.link == EXPONENTIAL:
            margin.residuals(
                *given, block.present, self.s, self.link, 1.0, sums.shifts[0], 1.0, 0.0, NO_VECTORS, *sums[2:]
            )
        elif self.link == LOGISTIC:
            margin.link_risk(*given, self.s, self.link, *sums[1:])
        else:
            softmax.risk(*given, block.present, self.s, *sums[1:])

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        following = super().next_shifts(shifts, largest)
        return following if self.link == EXPONENTIAL else np.maximum(following, LOWEST)


@dataclass(frozen=True)
class Residuals(Statistic):
    """V[i, y_i] = own sum_k u[i, k], V[i, k] = -u[i, k] for the other classes; the total over rows is the sum of all u."""

    weighting: MarginWeights
    own: float = 1.0
    wide: bool = False

    n_totals: ClassVar[int] = 1

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> np.ndarray:
        out = self.buffer(block, weight_factor, simd.padded(block.n_classes))
        total = margin.residuals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, self.weighting.link, self.own,
            scale.shift, scale.factor, weight_factor, out, 1.0, 1.0, *NO_RISK,
        )  # fmt: skip
        return np.array([total])

    def prepare_with_risk(
        self, risk: Risk, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray | None:
        if not self._shares_exponentials(risk, block, rows, scale):
            return super().prepare_with_risk(risk, block, rows, scale, weight_factor)
        given = block.scores, block.labels, block.weights, rows, self.weighting.s
        sums = risk.factor, risk.error_factor, risk.out, risk.largest
        out = self.buffer(block, weight_factor, simd.padded(block.n_classes))
        own = scale.shift, scale.factor, weight_factor, out
        if self.weighting.link == EXPONENTIAL:
            return np.array([margin.residuals(*given, EXPONENTIAL, self.own, *own, *sums)])
        return np.array([softmax.risk_and_residuals(*given, risk.shifts, *sums, self.own, *own)])

    def magnitudes(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float, out: np.ndarray
    ) -> None:
        # The largest entry is that of the row's own class.
        sampling.margin_totals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, self.weighting.link, scale.shift, scale.factor, out
        )  # fmt: skip

    def magnitudes_with_risk(
        self,
        risk: Risk,
        block: BlockRows,
        rows: np.ndarray,
        *,
        scale: Scale,
        weight_factor: float,
        out: np.ndarray,
    ) -> None:
        if self.weighting.link != EXPONENTIAL or not self._shares_exponentials(risk, block, rows, scale):
            super().magnitudes_with_risk(risk, block, rows, scale=scale, weight_factor=weight_factor, out=out)
            return
        sampling.risk_and_totals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, scale.shift,
            risk.factor, risk.error_factor, risk.out, risk.largest, scale.factor, out,
        )  # fmt: skip

    def _shares_exponentials(self, risk: Risk, block: BlockRows, rows: np.ndarray, scale: Scale) -> bool:
        """Whether the risk has the same exponentials: it has all rows of positive weight."""
        # An exponential link's are divided by e^shift.
        link, same_shift = self.weighting.link, risk.shifts[0] == scale.shift
        same = same_shift if link == EXPONENTIAL else link == SOFTMAX
        return bool(same and risk.weighting == self.weighting and len(rows) == len(block.present))


@dataclass(frozen=True)
class ProjectedResiduals(Statistic):
    """sum_k (code[y_i] - code[k]) u[i, k] / 2, one number per row: the residuals along one direction of score space.

    `code` (K,) holds float64 numbers between -1 and 1.
    """

    weighting: MarginWeights
    code: np.ndarray
    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return 1

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = self.buffer(block, weight_factor)
        margin.projected_residuals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, self.weighting.link,
            np.ascontiguousarray(self.code), scale.shift, scale.factor, weight_factor, out,
        )  # fmt: skip


@dataclass(frozen=True)
class ClassPairs(Reduction):
    """T[g, y, k] = sum of u[i, k] over the rows of class y in the leaves of group g.

    `groups` (n_leaves,) int64 says which group each leaf belongs to; None: each leaf is a group.
    """

    weighting: MarginWeights
    groups: np.ndarray | None = None

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        n_groups = n_leaves if self.groups is None else int(self.groups.max()) + 1
        return n_groups, n_classes, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        groups = np.arange(len(leaves)) if self.groups is None else self.groups
        how = self.weighting.s, self.weighting.link, scale.shift, scale.factor
        rows = block.rows_in(leaves)
        margin.class_pairs(block.scores, block.labels, block.weights, *rows, *how, groups, out)


@dataclass(frozen=True)
class LevelPairs(Reduction):
    """T[l, a, b] = sum of u[i, k] over the rows of leaf l whose class is on level a, and the classes k of level b.

    `levels` (K,) int64 says which level each class is on, from 0.
    """

    weighting: MarginWeights
    levels: np.ndarray

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        n_levels = int(self.levels.max()) + 1
        return n_leaves, n_levels, n_levels

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        how = self.weighting.s, self.weighting.link, scale.shift, scale.factor
        rows = block.rows_in(leaves)
        margin.level_pairs(block.scores, block.labels, block.weights, *rows, *how, self.levels, out)


@dataclass(frozen=True)
class HitsAndMisses(Reduction):
    """The weights that each leaf gets right and wrong if it votes for class c.

    [l, 0, c]: sum of sum_k u[i, k] over the rows of class c in leaf l; [l, 1, c]: sum of u[i, c] over its other rows.
    """

    weighting: MarginWeights

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, 2, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.hits_and_misses(
            *block.leaf_arrays(leaves), self.weighting.s, self.weighting.link, scale.shift, scale.factor, out
        )


@dataclass(frozen=True)
class LineSides(Reduction):
    """The falling and the rising part of the risk's slope along `values`, after a step: see `kernels.margin.line_sides`.

    Attributes
    ----------
    values : ndarray of shape (n_leaves, K), float64
        The direction: a tree's leaf values.
    step : float
        The step along the direction.
    """

    weighting: MarginWeights
    values: np.ndarray
    step: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (5,)

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.line_sides(
            *block.leaf_arrays(leaves), self.weighting.s, scale.shift, scale.factor, self.values, self.step, out
        )  # fmt: skip


@dataclass(frozen=True)
class LogisticSlopes(Reduction):
    """U[h, y, r, m]: logistic weights summed over the rows of class y on side h (0: -1, 1: +1), at changed margins.

    A weight is E exp(-d) / (1 + E exp(-d)) with E = exp(-(F[i, y] - F[i, r])) and d = h (centre[y] - centre[r]) + nodes[m], by
    which the margin has grown.

    Attributes
    ----------
    signs : ndarray of shape (n_leaves,), float64
        Each leaf's side, -1 or +1.
    centre : ndarray of shape (K,), float64
    nodes : ndarray of shape (M,), float64
    """

    weighting: MarginWeights
    signs: np.ndarray
    centre: np.ndarray
    nodes: np.ndarray

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return 2, n_classes, n_classes, len(self.nodes)

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.logistic_slopes(
            *block.leaf_arrays(leaves), scale.shift, scale.factor, self.signs, self.centre, self.nodes, out
        )

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift of the weights before the step, raised by the largest fall of a margin; no weight exceeds 1."""
        return min(shifts[0] + spread(self.centre[None]) + float(-self.nodes.min()), 0.0)
