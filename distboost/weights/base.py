"""What a weighting, a statistic and a reduction are.

A *weighting* says how a row weighs, given its scores and its class. A *statistic* is the vector that each row adds to the
histograms of a round; a *reduction* names sums over the rows of each leaf. All three are small values that travel to the
workers and call the kernels there. `Scale` keeps their sums integers within 64 bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distboost.kernels import histogram, simd
from distboost.rows.reduced import Partial

if TYPE_CHECKING:
    from distboost.runtime.block import Block

# Row weights are scaled to at most 2^8 (`data.profile.WeightRule`), histogram inputs to at most 2^22 before they are weighted:
# |input| <= 2^30 fits int32, and 2^32 rows fit an int64 sum.
WEIGHT_BITS = 8
HISTOGRAM_BITS = 22

LEAF_WEIGHT_UNIT = 2.0**20  # rows' own weights are summed in units of 1/LEAF_WEIGHT_UNIT


@dataclass(frozen=True)
class Scale:
    """Numbers are divided by e^shift (then at most 1) and become whole multiples of 2^-bits."""

    shift: float
    bits: int

    @classmethod
    def fine(cls, shift: float, total_weight: float) -> Scale:
        """The finest scale whose sums over all rows stay below 2^62."""
        return cls(shift, fine_bits(total_weight))

    @property
    def factor(self) -> float:
        return float(2**self.bits)

    def real(self, sums: np.ndarray) -> np.ndarray:
        """Integer sums as real numbers, still divided by e^shift."""
        return sums / self.factor


def fine_bits(total_weight: float) -> int:
    return min(61 - max(math.ceil(math.log2(total_weight)), 0), 60)


class Weighting(ABC):
    """How a row weighs, given its scores and its class.

    A weighting keeps one or more *shifts*: logarithms of the largest magnitudes of the round, by which what is summed is
    scaled. They come with the previous update's answer.
    """

    def n_scores(self, n_classes: int) -> int:
        """Scores kept per row."""
        return n_classes

    @abstractmethod
    def initial_shifts(self, n_classes: int) -> list[float]:
        """The shifts while all scores are 0."""

    @abstractmethod
    def growth(self, values: np.ndarray) -> list[float]:
        """The most by which an update by leaf values (leaves, n_scores) can raise each shift."""

    @abstractmethod
    def n_sums(self, n_classes: int) -> int:
        """Sums that `risk` makes besides that of the errors."""

    @abstractmethod
    def risk(
        self,
        block: Block,
        shifts: np.ndarray,
        factor: float,
        unit: float,
        out: np.ndarray,
        largest: np.ndarray,
    ) -> None:
        """Adds the rows' errors, in units of 1/unit, to out[0], sums in units of 1/factor to out[1:]; the largest magnitudes."""

    @abstractmethod
    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """The logarithms of the rows' total weights, from the sums of `risk` (as real numbers)."""

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """The shifts after an update, from the largest magnitudes that `risk` reported, divided by e^shift."""
        return shifts + np.log(largest)


def log_totals(totals: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """By logarithms: e^shift alone may be beyond what a float holds."""
    with np.errstate(divide="ignore"):
        return np.log(totals) + shifts


def spread(values: np.ndarray) -> float:
    """The largest difference between two values of one leaf."""
    return float((values.max(axis=1) - values.min(axis=1)).max(initial=0.0))


class Statistic(ABC):
    """The vector that a row adds to the histograms.

    Attributes
    ----------
    wide : bool
        Its numbers have as many bits as 64 allow, not HISTOGRAM_BITS of 32: twice the memory, for gains whose ties must be
        told from near ties.
    n_totals : int
        Sums over all rows of the tree that come with its first histogram (`Rows.totals`), in the same units.
    """

    wide: bool = False
    n_totals: ClassVar[int] = 0

    @abstractmethod
    def n_sums(self, n_classes: int) -> int:
        """The length of the vector."""

    @abstractmethod
    def prepare(
        self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float
    ) -> Sequence[int] | None:
        """Computes the vectors of the rows in use; their totals, if there are any."""

    def buffer(self, block: Block, weight_unit: float) -> np.ndarray:
        """Where `prepare` puts the vectors, followed by a 1 and, with a weight_unit, by the row's own weight."""
        n_channels = simd.padded(self.n_sums(block.n_classes) + 1 + (weight_unit > 0))
        dtype = np.int64 if self.wide else np.int32
        return block.buffer("statistics", (block.n_rows, n_channels), dtype, anew=True)

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift it is scaled by."""
        return shifts[0]

    def histogram(self, block: Block, spans, features, offsets, weight_unit, slots, pool) -> None:
        """Sums the vectors per node, feature and bin."""
        histogram.dense_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], block.kept("statistics"), features, offsets, slots, pool
        )  # fmt: skip


class Reduction(ABC):
    """Sums over the rows of each leaf.

    Attributes
    ----------
    n_maxima : int
        Maxima that come with the sums.
    """

    n_maxima: ClassVar[int] = 0

    @abstractmethod
    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        """Of the sums."""

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        """Adds the block's rows to `out`."""
        raise NotImplementedError

    def answer(self, block: Block, leaves: np.ndarray, scale: Scale) -> Partial:
        """Of one block."""
        sums, maxima, _ = self.nothing(len(leaves), block.n_classes)
        self.add(block, leaves, scale, sums)
        return Partial(sums, maxima)

    def nothing(self, n_leaves: int, n_classes: int) -> Partial:
        """Of no rows."""
        return Partial(np.zeros(self.shape(n_leaves, n_classes), np.int64), np.full(self.n_maxima, -np.inf))

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift its numbers are scaled by."""
        return shifts[0]
