"""Weights that follow from a row's margins F[i, y_i] - F[i, k]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distboost.kernels import margin
from distboost.kernels.margin import EXPONENTIAL, LOGISTIC, SOFTMAX
from distboost.weights.base import Reduction, Scale, Statistic, Weighting, log_totals, spread

if TYPE_CHECKING:
    from distboost.runtime.block import Block

__all__ = ["EXPONENTIAL", "LOGISTIC", "SOFTMAX"]


LOWEST = -600.0


@dataclass(frozen=True)
class MarginWeights(Weighting):
    """e[i, k] = exp(-s (F[i, y_i] - F[i, k])) for k != y_i, or what the link makes of it.

    | link | weight u | loss of a row |
    | --- | --- | --- |
    | EXPONENTIAL | e | sum_k e |
    | LOGISTIC | e / (1 + e) | sum_k log(1 + e) |
    | SOFTMAX | e / (1 + sum_l e_l) | log(1 + sum_k e) |
    """

    s: float
    link: int = EXPONENTIAL

    def initial_shifts(self, n_classes: int) -> list[float]:
        """The logarithm of a row's total weight and, for the links whose loss is another, of its loss."""
        wrong = n_classes - 1
        if self.link == EXPONENTIAL:
            return [math.log(wrong)]
        if self.link == LOGISTIC:
            return [math.log(wrong / 2), math.log(wrong * math.log(2))]
        return [math.log(wrong / n_classes), math.log(math.log(n_classes))]

    def growth(self, values: np.ndarray) -> list[float]:
        # exp(d) bounds the growth of every link: log(1 + c x) <= c log(1 + x) for c >= 1.
        return [self.s * spread(values)] * (1 if self.link == EXPONENTIAL else 2)

    def n_sums(self, n_classes: int) -> int:
        return 1

    def risk(self, block: Block, shifts, factor: float, unit: float, out, largest) -> None:
        if self.link == EXPONENTIAL:
            margin.risk(
                block.scores, block.labels, block.weights, self.s, shifts[0], factor, unit, out, largest
            )
        else:
            margin.link_risk(
                block.scores, block.labels, block.weights, self.s, self.link, shifts, factor, unit, out, largest
            )  # fmt: skip

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums, shifts[-1:])

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        following = super().next_shifts(shifts, largest)
        # The links divide by e^shift as it is, which must be a number.
        return following if self.link == EXPONENTIAL else np.maximum(following, LOWEST)


@dataclass(frozen=True)
class Residuals(Statistic):
    """V[i, y_i] = own sum_k u[i, k], V[i, k] = -u[i, k] for the other classes; the total is the sum of all u."""

    weighting: MarginWeights
    own: float = 1.0
    wide: bool = False

    n_totals: ClassVar[int] = 1

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> list[int]:
        out = self.buffer(block, weight_unit)
        total = margin.residuals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, self.weighting.link, self.own,
            scale.shift, scale.factor, weight_unit, out,
        )  # fmt: skip
        return [total]


@dataclass(frozen=True)
class ProjectedResiduals(Statistic):
    """sum_k (code[y_i] - code[k]) u[i, k] / 2: the residuals along one direction of score space, a number per row.

    The numbers of `code` are at most 1 in size.
    """

    weighting: MarginWeights
    code: np.ndarray
    wide: bool = True

    def n_sums(self, n_classes: int) -> int:
        return 1

    def prepare(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        out = self.buffer(block, weight_unit)
        margin.projected_residuals(
            block.scores, block.labels, block.weights, rows, self.weighting.s, self.weighting.link, self.code,
            scale.shift, scale.factor, weight_unit, out,
        )  # fmt: skip


@dataclass(frozen=True)
class ClassPairs(Reduction):
    """T[g, y, k] = sum of u[i, k] over the rows of class y in the leaves l of group g (each leaf its own, if none are given)."""

    weighting: MarginWeights
    groups: np.ndarray | None = None

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        n_groups = n_leaves if self.groups is None else int(self.groups.max()) + 1
        return n_groups, n_classes, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        groups = np.arange(len(leaves)) if self.groups is None else self.groups
        margin.class_pairs(
            *block.partition(leaves), self.weighting.s, self.weighting.link, scale.shift, scale.factor, groups, out
        )  # fmt: skip


@dataclass(frozen=True)
class HitsAndMisses(Reduction):
    """[l, 0, c]: sum over the rows of class c in leaf l of sum_k u[i, k]; [l, 1, c]: sum over the other rows of u[i, c]."""

    weighting: MarginWeights

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, 2, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.hits_and_misses(
            *block.partition(leaves), self.weighting.s, self.weighting.link, scale.shift, scale.factor, out
        )


@dataclass(frozen=True)
class LineSides(Reduction):
    """The falling and the rising part of the risk's slope along `values` after `step`, and what it leaves: see the kernel."""

    weighting: MarginWeights
    values: np.ndarray
    step: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (5,)

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.line_sides(
            *block.partition(leaves), self.weighting.s, scale.shift, scale.factor, self.values, self.step, out
        )


@dataclass(frozen=True)
class LogisticSlopes(Reduction):
    """U[h, y, r, m]: what is left of the logistic weights when the margins grow by h (c_y - c_r) + nodes[m].

    Sums of E exp(-d) / (1 + E exp(-d)) over the rows of class y on side h (0: -1, 1: +1), E = exp(-(F[i, y] - F[i, r])).
    """

    weighting: MarginWeights
    signs: np.ndarray  # (leaves,) -1 or +1
    centre: np.ndarray  # (K,)
    nodes: np.ndarray  # (M,)

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return 2, n_classes, n_classes, len(self.nodes)

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.logistic_slopes(
            *block.partition(leaves), scale.shift, scale.factor, self.signs, self.centre, self.nodes, out
        )

    def shift(self, shifts) -> float:
        """That of the weights before the step, and of the smallest node: each weight grows by e^(its size) at the most."""
        return min(shifts[0] + spread(self.centre[None]) + float(-self.nodes.min()), 0.0)
