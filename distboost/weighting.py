"""How a row's weight follows from its scores, and what is summed from it.

A *weighting* names a family of row weights; a *reduction* names sums over the rows of each leaf. Both are small values that
travel to the workers and call the kernels there. `Scale` keeps their sums integers within 64 bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distboost.kernels import histogram, lanes, margin, response

if TYPE_CHECKING:
    from distboost.runtime.block import Block

# Row weights are scaled to at most 2^8 (`data.profile.WeightRule`), histogram inputs to at most 2^22 before they are weighted:
# |input| <= 2^30 fits int32, and 2^32 rows fit an int64 sum.
WEIGHT_BITS = 8
HISTOGRAM_BITS = 22

LEAF_WEIGHT_UNIT = 2.0**20  # rows' own weights are summed in units of 1/LEAF_WEIGHT_UNIT


@dataclass(frozen=True)
class Scale:
    """Weights are divided by e^shift (then at most 1) and become whole multiples of 2^-bits."""

    shift: float
    bits: int

    @classmethod
    def fine(cls, shift: float, total_weight: float) -> Scale:
        """The finest scale whose sums over all rows stay below 2^62."""
        return cls(shift, min(61 - max(math.ceil(math.log2(total_weight)), 0), 60))

    @property
    def factor(self) -> float:
        return float(2**self.bits)

    def real(self, sums: np.ndarray) -> np.ndarray:
        """Integer sums as real numbers, still divided by e^shift."""
        return sums / self.factor


@dataclass(frozen=True)
class MarginWeights:
    """e[i, k] = exp(-s (F[i, y_i] - F[i, k])) for k != y_i. The row statistic is V: sum_k e[i, k] at y_i, -e[i, k] elsewhere."""

    s: float

    histogram_bits: ClassVar[int] = HISTOGRAM_BITS
    n_weight_sums: ClassVar[int] = 1

    def initial_shift(self, n_classes: int) -> float:
        """The logarithm of a row's total weight while all scores are 0."""
        return math.log(n_classes - 1)

    def growth(self, values: np.ndarray) -> float:
        """The most by which an update by `values` can raise the logarithm of any row's total weight."""
        return self.s * float((values.max(axis=1) - values.min(axis=1)).max(initial=0.0))

    def statistics(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        n_channels = lanes.padded(block.n_classes + 1 + (weight_unit > 0))
        out = block.buffer("statistics", (block.n_rows, n_channels), np.int32)
        margin.residuals(
            block.scores,
            block.labels,
            block.weights,
            rows,
            self.s,
            scale.shift,
            scale.factor,
            weight_unit,
            out,
        )

    def histogram(self, block: Block, spans, features, offsets, weight_unit, slots, pool) -> None:
        statistics = block.buffers["statistics"]
        histogram.dense_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], statistics, features, offsets, slots, pool
        )

    def risk(self, block: Block, scale: Scale, unit: float, out: np.ndarray, largest: np.ndarray) -> None:
        margin.risk(
            block.scores, block.labels, block.weights, self.s, scale.shift, scale.factor, unit, out, largest
        )

    def total(self, sums: np.ndarray) -> float:
        """The rows' total weight from the sums of `risk`."""
        return float(sums[0])

    def log_largest(self, largest: float) -> float:
        """The logarithm of the largest weight that `risk` reported."""
        return math.log(largest)


@dataclass(frozen=True)
class ResponseWeights:
    """w_i = exp(-s F[i, y_i]). The row statistic is w_i, kept apart by class."""

    s: float

    histogram_bits: ClassVar[None] = None  # one number per row: as fine as 64 bits allow
    n_weight_sums: ClassVar[int] = response.WINDOWS

    def initial_shift(self, n_classes: int) -> float:
        return 0.0

    def growth(self, values: np.ndarray) -> float:
        return self.s * float((-values).max(initial=0.0))

    def statistics(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        out = block.buffer("statistics", (block.n_rows,), np.int64)
        response.response_weights(
            block.scores, block.labels, block.weights, rows, self.s, scale.shift, scale.factor, out
        )

    def histogram(self, block: Block, spans, features, offsets, weight_unit, slots, pool) -> None:
        histogram.class_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], block.labels, block.buffers["statistics"],
            block.weights, weight_unit, block.n_classes, features, offsets, slots, pool,
        )  # fmt: skip

    def risk(self, block: Block, scale: Scale, unit: float, out: np.ndarray, largest: np.ndarray) -> None:
        response.response_risk(
            block.scores, block.labels, block.weights, self.s, scale.shift, scale.factor, unit, out, largest
        )

    def total(self, sums: np.ndarray) -> float:
        return float(sums @ 2.0 ** (-response.WINDOW * np.arange(len(sums))))

    def log_largest(self, largest: float) -> float:
        return float(largest)  # it is an exponent already


@dataclass(frozen=True)
class ClassPairs:
    """T[l, y, k] = sum of e[i, k] over the rows of class y in leaf l."""

    s: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, n_classes, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.class_pairs(*block.partition(leaves), self.s, scale.shift, scale.factor, out)


@dataclass(frozen=True)
class HitsAndMisses:
    """[l, 0, c]: sum over the rows of class c in leaf l of sum_k e[i, k]; [l, 1, c]: sum over the other rows of e[i, c]."""

    s: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, 2, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.hits_and_misses(*block.partition(leaves), self.s, scale.shift, scale.factor, out)


@dataclass(frozen=True)
class LineSides:
    """The falling and the rising part of the risk's slope along `values` after `step`: see the kernel."""

    s: float
    values: np.ndarray
    step: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (4,)

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        margin.line_sides(
            *block.partition(leaves), self.s, scale.shift, scale.factor, self.values, self.step, out
        )


@dataclass(frozen=True)
class ClassSums:
    """C[l, c] = sum of w_i over the rows of class c in leaf l, kept apart by magnitude."""

    s: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, response.WINDOWS, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        response.class_sums(*block.partition(leaves), self.s, scale.shift, scale.factor, out)

    @staticmethod
    def normalised(sums: np.ndarray) -> np.ndarray:
        """Each leaf's class sums, up to a factor of that leaf alone: from its largest window in use downwards."""
        out = np.zeros((len(sums), sums.shape[2]))
        for leaf, windows in enumerate(sums):
            used = np.flatnonzero(windows.any(axis=1))
            for b in used:
                out[leaf] += windows[b] * 2.0 ** (-response.WINDOW * int(b - used[0]))
        return out


Weighting = MarginWeights | ResponseWeights
Reduction = ClassPairs | HitsAndMisses | LineSides | ClassSums
