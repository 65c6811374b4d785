"""Weights that follow from the score of a row's own class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from distboost.kernels import histogram, response
from distboost.weights.base import Reduction, Scale, Statistic, Weighting, log_totals

if TYPE_CHECKING:
    from distboost.runtime.block import Block


@dataclass(frozen=True)
class ResponseWeights(Weighting):
    """w_i = exp(-s F[i, y_i])."""

    s: float

    def initial_shifts(self, n_classes: int) -> list[float]:
        return [0.0]

    def growth(self, values: np.ndarray) -> list[float]:
        return [self.s * float((-values).max(initial=0.0))]

    def n_sums(self, n_classes: int) -> int:
        return response.WINDOWS

    def risk(self, block: Block, shifts, factor: float, unit: float, out, largest) -> None:
        response.response_risk(
            block.scores, block.labels, block.weights, self.s, shifts[0], factor, unit, out, largest
        )

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums @ 2.0 ** (-response.WINDOW * np.arange(len(sums))), shifts)

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        return shifts + largest  # exponents already


@dataclass(frozen=True)
class ClassWeights(Statistic):
    """w_i, kept apart by class: one number per row."""

    weighting: ResponseWeights

    wide: bool = field(default=True, init=False)  # one number per row

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        out = block.buffer("class statistics", (block.n_rows,), np.int64, anew=True)
        response.response_weights(
            block.scores, block.labels, block.weights, rows, self.weighting.s, scale.shift, scale.factor, out
        )

    def histogram(self, block: Block, spans, features, offsets, weight_unit, slots, pool) -> None:
        histogram.class_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], block.labels, block.kept("class statistics"),
            block.weights, weight_unit, block.n_classes, features, offsets, slots, pool,
        )  # fmt: skip


@dataclass(frozen=True)
class ClassSums(Reduction):
    """C[l, c] = sum of w_i over the rows of class c in leaf l, kept apart by magnitude."""

    weighting: ResponseWeights

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, response.WINDOWS, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        response.class_sums(*block.partition(leaves), self.weighting.s, scale.shift, scale.factor, out)


# A row of 2^29 units or more is off by at most 2^-30 of its weight when it is rounded to a whole one: by less than 1e-9. With
# many more bits the rule would seldom hold: the heaviest row has 2^(61 - log2 n) units, and those of most leaves have far fewer.
FINE_BITS = 29


def is_fine(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Whether each sum is within 1e-9 of what it would be of weights that are not rounded, over rows that count `mass`."""
    return sums >> FINE_BITS >= mass


def together(sums: np.ndarray) -> np.ndarray:
    """Class sums (leaves, windows, K) with their windows added up."""
    return np.einsum("lbc,b->lc", sums, 2.0 ** (-response.WINDOW * np.arange(sums.shape[1])))


def normalised(sums: np.ndarray) -> np.ndarray:
    """Each leaf's class sums, up to a factor of that leaf alone: from its largest window in use downwards."""
    out = np.zeros((len(sums), sums.shape[2]))
    for leaf, windows in enumerate(sums):
        used = np.flatnonzero(windows.any(axis=1))
        for b in used:
            out[leaf] += windows[b] * 2.0 ** (-response.WINDOW * int(b - used[0]))
    return out
