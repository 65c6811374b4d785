"""The base classes of weightings, statistics and reductions.

A *weighting* gives a row's weight from its scores and its class. A *statistic* is the vector that each row adds to the
histograms of a round. A *reduction* names sums over the rows of each leaf. All three are small values that travel to the
workers and call the kernels there. `Scale` turns what they sum into integers whose sums fit in 64 bits.

Sums of integers do not depend on their order. Every sum over all rows stays below 2^62 by construction:

* A number of a reduction or of a wide statistic is at most 1 before it is scaled by 2^bits, bits = 61 - ceil(log2 W), where W is
  the total weight of the rows. The weighted sum is at most W 2^bits <= 2^61, and rounding adds at most half of each row's
  weight, W / 2 in all.
* A number of a narrow statistic is at most 2^HISTOGRAM_BITS, its row's weight at most 2^WEIGHT_BITS: their product of 2^30 fits
  int32, and 2^32 rows fit an int64 sum. Before that, a few thousand rows are summed in int32: as many as the largest number of
  the block allows (`Statistic.histogram`).
* Residuals that are projected by signs have a bit less: their absolute values sum to 2, and all may have the same sign. Residuals
  that are rounded at random to fewer bits are off by less than 1 of these.
* Errors are counted in units of 1 / ERROR_FACTOR: 2^22 2^8 2^32 = 2^62.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from distboost.kernels import sampling, simd
from distboost.rows.block import BlockRows
from distboost.rows.summands import Summands

# The kernels multiply weights of misclassified rows by this factor before they round: the sum is in units of 1/ERROR_FACTOR.
ERROR_FACTOR = 2.0**22

# A statistic may lose bits because the bound on the weights is above the largest weight. These must be left, of a narrow and of a
# wide one.
FEWEST_BITS = 14
ENOUGH_BITS = 30
LOST_BITS = 8  # but this many may always be lost of a wide one

# Row weights are scaled to at most 2^8 (`WeightRule` of data), histogram inputs to at most 2^22 before they are weighted:
# |input| <= 2^30 fits int32, and 2^32 rows fit an int64 sum.
WEIGHT_BITS = 8
HISTOGRAM_BITS = 22

# With more rows than this, narrow statistics have fewer bits, so that thousands of rows can be summed in 32 bits. Sums over many
# rows need fewer: the errors of rounding average out.
FEW_ROWS = 8192
MANY_ROWS_BITS = 18

# The histograms' sums of the rows' own weights are in units of 1/LEAF_WEIGHT_FACTOR.
LEAF_WEIGHT_FACTOR = 2.0**20


@dataclass(frozen=True)
class Scale:
    """A fixed-point scale: numbers are divided by e^shift, which makes them at most 1, and rounded to multiples of 2^-bits."""

    shift: float
    bits: int

    @classmethod
    def fine(cls, shift: float, total_weight: float) -> Scale:
        """Return the finest scale for which sums over rows of this total weight stay below 2^62."""
        return cls(shift, fine_bits(total_weight))

    @property
    def factor(self) -> float:
        """2^bits: the kernels multiply by it before they round."""
        return float(2**self.bits)

    def real(self, sums: np.ndarray) -> np.ndarray:
        """Convert integer sums to real numbers, in units of e^shift."""
        return sums / float(2**self.bits)


def narrow_bits(total_weight: float) -> int:
    """Return the bits of a narrow statistic, for rows of this total weight.

    >>> narrow_bits(8192), narrow_bits(8193)
    (22, 18)
    """
    return min(HISTOGRAM_BITS if total_weight <= FEW_ROWS else MANY_ROWS_BITS, fine_bits(total_weight))


@lru_cache(64)
def most_bits(total_weight: float, wide: bool) -> int:
    """Return the bits of a statistic, for rows of this total weight."""
    return fine_bits(total_weight) if wide else narrow_bits(total_weight)


def bits_to_lose(bits: int, wide: bool) -> int:
    """Return how many of its bits a statistic may lose.

    >>> bits_to_lose(22, wide=False), bits_to_lose(18, wide=False), bits_to_lose(47, wide=True)
    (8, 4, 17)
    """
    return max(LOST_BITS, bits - ENOUGH_BITS) if wide else max(bits - FEWEST_BITS, 0)


@lru_cache(64)
def fine_bits(total_weight: float) -> int:
    """Return the bits of the finest scale for rows of this total weight."""
    return min(61 - max(math.ceil(math.log2(total_weight)), 0), 60)


class Best(NamedTuple):
    """The row with the smallest key, the first of equal ones, and the values that the reduction reports of it."""

    key: float
    row: int
    content: tuple[Any, ...]

    def combined(self, other: Best) -> Best:
        """Return the better of two rows."""
        return min(self, other, key=lambda best: best[:2])


def better(one: Best | None, other: Best | None) -> Best | None:
    """Return the better of the best rows of two parts; a part without rows has none."""
    return one.combined(other) if one and other else one or other


class Reduced(NamedTuple):
    """A part of an answer. Parts combine in any order: sums add up, the larger maxima and the better best row remain."""

    sums: np.ndarray  # int64
    maxima: np.ndarray  # float64
    best: Best | None = None

    def combined(self, other: Reduced) -> Reduced:
        """Return the answer over the rows of both parts."""
        best = better(self.best, other.best)
        return Reduced(self.sums + other.sums, np.maximum(self.maxima, other.maxima), best)

    def add(self, other: Reduced) -> Reduced:
        """Return the answer over the rows of both parts, in the arrays of this one: large sums need no third array."""
        np.add(self.sums, other.sums, out=self.sums)
        np.maximum(self.maxima, other.maxima, out=self.maxima)
        return self._replace(best=better(self.best, other.best))


NUMBERS = "class statistics"  # the name of the array that a block keeps, (n,) int64


class Weighting(ABC):
    """Computes a row's weight from its scores and its class.

    A weighting has one or more *shifts*: logarithms of the largest magnitudes of the round. Numbers are divided by e^shift before
    they are summed. The shifts come with the answer to the previous update.
    """

    def n_scores(self, n_classes: int) -> int:
        """Return the number of scores of a row."""
        return n_classes

    @abstractmethod
    def initial_shifts(self, n_classes: int) -> list[float]:
        """Return the shifts while all scores are 0."""

    @abstractmethod
    def growth(self, values: np.ndarray) -> list[float]:
        """Return an upper bound on how much an update by leaf values, (leaves, n_scores) float64, raises each shift."""

    def n_sums(self, n_classes: int) -> int:
        """Return the number of sums that `risk` computes, without that of the errors."""
        return 1

    @abstractmethod
    def risk(self, block: BlockRows, sums: Risk) -> None:
        """Add up a block's errors and weights."""

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the logarithms of the rows' total weights, from the sums of `risk` as real numbers."""
        return log_totals(sums, shifts[-1:])

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """Return the shifts after an update, from the largest magnitudes that `risk` reported in units of e^shifts."""
        following: np.ndarray = shifts + np.log(largest)
        return following


class Risk(NamedTuple):
    """What `Weighting.risk` adds up, and where.

    Attributes
    ----------
    weighting : Weighting
    shifts : ndarray of shape (n_shifts,), float64
        The logarithms of the scales of the weights.
    factor : float
        Weights are summed in units of 1/factor.
    error_factor : float
        Misclassified rows' own weights are summed in units of 1/error_factor.
    out : ndarray of shape (1 + n_sums,), int64
        The errors are added to out[0], the other sums to out[1:].
    largest : ndarray of shape (n_shifts,), float64
        Raised to the block's largest magnitudes, divided by e^shifts.
    """

    weighting: Weighting
    shifts: np.ndarray
    factor: float
    error_factor: float
    out: np.ndarray
    largest: np.ndarray

    def add(self, block: BlockRows) -> None:
        """Add the errors and weights of a block."""
        self.weighting.risk(block, self)


def log_totals(totals: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Return log(totals e^shifts), without computing e^shifts, which may overflow."""
    nothing = np.asarray(totals - np.inf)
    logs: np.ndarray = np.log(totals, out=nothing, where=np.greater(totals, 0)) + shifts
    return logs


def spread(values: np.ndarray) -> float:
    """Return the largest difference between two values of the same leaf; `values` is (leaves, n_scores) float64."""
    width = np.maximum.reduce(values, axis=1) - np.minimum.reduce(values, axis=1)
    return max(width.tolist(), default=0.0)


def vector_bytes(n_sums: int, wide: bool) -> int:
    """Return the bytes of a row's vector of `n_sums` numbers, including the row count and the row's own weight."""
    return (8 if wide else 4) * simd.padded(n_sums + 2)


class Statistic(ABC):
    """The vector that a row adds to the histograms.

    Attributes
    ----------
    wide : bool
        Whether the numbers have as many bits as int64 sums allow, instead of HISTOGRAM_BITS of an int32. This takes twice the
        memory. Gains that must distinguish ties from near ties need it.
    n_totals : int
        Number of sums over all rows of the tree that come with its first histogram (`Rows.totals`), in the same units.
    """

    wide: bool = False
    n_totals: ClassVar[int] = 0

    @property
    def stretch(self) -> float:
        """How much longer the vectors are, on average, than those that they stand for."""
        return 1.0

    @abstractmethod
    def n_sums(self, n_classes: int) -> int:
        """Return the length of the vector."""

    def row_bytes(self, n_classes: int) -> int:
        """Return the bytes that a block keeps of a row for this statistic."""
        return vector_bytes(self.n_sums(n_classes), self.wide)

    def scale(self, shifts: Sequence[float], before: Sequence[float], weight: float, n_rows: int) -> Scale:
        """Return the scale of the vectors.

        Parameters
        ----------
        shifts : sequence of float
            The weighting's shifts, which are at most these.
        before : sequence of float
            Those before the last step.
        weight : float
            The total weight of the rows.
        n_rows : int
        """
        return Scale(self.shift(shifts), most_bits(weight, self.wide))

    def bits_to_lose(self, bits: int) -> int:
        """Return how many of its bits the scale may lose because it follows from a bound on the weights."""
        return bits_to_lose(bits, self.wide)

    @abstractmethod
    def prepare(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray | None:
        """Compute the vectors of the rows in use; return their totals if there are any, (n_totals,) int64."""

    def prepare_with_risk(
        self, risk: Risk, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray | None:
        """Add up the block's errors and weights, then prepare. A statistic may do both in one visit of the rows."""
        risk.add(block)
        return self.prepare(block, rows, scale, weight_factor)

    def buffer(self, block: BlockRows, weight_factor: float, n_written: int = 0) -> np.ndarray:
        """Return the array for the vectors that `prepare` computes: (n, channels), int64 if wide, else int32.

        A vector is followed by a 1 and, with a `weight_factor` above 0, by the row's own weight, then by zeros. `prepare` writes
        the first `n_written` channels of all rows in use, zeros included.
        """
        n_channels = simd.padded(self.n_sums(block.n_classes) + 1 + (weight_factor > 0))
        dtype = np.int64 if self.wide else np.int32
        clear = n_written < n_channels
        return block.buffer("statistics", (block.n_rows, n_channels), dtype, overwrite=True, clear=clear)

    def magnitudes(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float, out: np.ndarray
    ) -> None:
        """Set out[i], (n,) float64, to the largest absolute entry of the vector of each row in use: a whole number.

        A bound that only rounding exceeds will do. The vectors may be overwritten.
        """
        self.prepare(block, rows, scale, weight_factor)
        n_sums = self.n_sums(block.n_classes)
        sampling.largest_entries(block.kept("statistics"), rows, n_sums, out)

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
        """Add up the block's errors and weights, then find the magnitudes. A statistic may do both in one visit of the rows."""
        risk.add(block)
        self.magnitudes(block, rows, scale, weight_factor, out)

    def divide(
        self, block: BlockRows, rows: np.ndarray, magnitudes: np.ndarray, threshold: int, unit: float
    ) -> None:
        """Divide the vectors of drawn rows by min(1, magnitude / threshold), multiply them by `unit` and round them."""
        n_sums = self.n_sums(block.n_classes)
        sampling.divide(block.kept("statistics"), rows, n_sums, magnitudes, float(threshold), unit)

    def shift(self, shifts: Sequence[float]) -> float:
        """Return the shift of the vectors, from the weighting's shifts."""
        return shifts[0]

    def largest(self, block: BlockRows, scale: Scale, weight_factor: float) -> float:
        """Return a bound on the magnitude of the numbers in the block's vectors.

        A number is at most the scale's factor before it is weighted. It may be a sum of `n_sums` numbers that are rounded before
        and after they are weighted.
        """
        n_sums = self.n_sums(block.n_classes)
        return max(scale.factor + n_sums, weight_factor) * block.heaviest + n_sums

    @property
    def sums_all_rows(self) -> bool:
        """Whether histograms sum all rows of a node, not only some of them."""
        return True

    def spans(self, block: BlockRows, nodes: np.ndarray) -> np.ndarray:
        """Return where the rows that the histograms of nodes sum begin and end in ``block.order``, (m, 2) int32.

        The nodes have no children yet. All rows of a node may be summed just as well.
        """
        return np.ascontiguousarray(block.spans[nodes])

    def summands(self, block: BlockRows, spans: np.ndarray, scale: Scale, weight_factor: float) -> Summands:
        """Return what the histograms of nodes sum; `spans`, (m, 2) int32, say where the rows of each are in ``block.order``."""
        largest = math.inf if self.wide else self.largest(block, scale, weight_factor)
        return Summands(block.held, block.order, spans, block.kept("statistics"), block.varying, largest)


@dataclass(frozen=True)
class ClassStatistic(Statistic):
    """A statistic of one number per row, which is summed by class."""

    wide: bool = field(default=True, init=False)

    def row_bytes(self, n_classes: int) -> int:
        return 8  # weight (int64)

    def classes(self, block: BlockRows) -> np.ndarray:
        """Return the class of each row, (n,) int32."""
        return block.labels

    def magnitudes(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float, out: np.ndarray
    ) -> None:
        self.prepare(block, rows, scale, weight_factor)
        out[rows] = block.kept(NUMBERS)[rows]

    def divide(
        self, block: BlockRows, rows: np.ndarray, magnitudes: np.ndarray, threshold: int, unit: float
    ) -> None:
        sampling.divide(block.kept(NUMBERS)[:, None], rows, 1, magnitudes, float(threshold), unit)

    def summands(self, block: BlockRows, spans: np.ndarray, scale: Scale, weight_factor: float) -> Summands:
        numbers, classes = block.kept(NUMBERS), self.classes(block)
        return Summands(
            block.held,
            block.order,
            spans,
            numbers,
            block.varying,
            math.inf,
            classes,
            block.weights,
            self.n_sums(block.n_classes),
        )


class Reduction(ABC):
    """Sums over the rows of each leaf.

    Attributes
    ----------
    n_maxima : int
        Number of maxima that come with the sums.
    """

    n_maxima: ClassVar[int] = 0

    @abstractmethod
    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the sums."""

    def size(self, n_leaves: int, n_classes: int) -> int:
        """Return the number of sums."""
        return math.prod(self.shape(n_leaves, n_classes))

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        """Add the block's rows to `out`, int64. A reduction with maxima or a best row implements `accumulate` instead."""
        raise NotImplementedError

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        """Return the sums, maxima and best row of the block combined with `into`, in its arrays."""
        self.add(block, leaves, scale, into.sums)
        return into

    def answer(self, block: BlockRows, leaves: np.ndarray, scale: Scale) -> Reduced:
        """Return the sums, maxima and best row of one block."""
        return self.accumulate(block, leaves, scale, self.initial(len(leaves), block.n_classes))

    def initial(self, n_leaves: int, n_classes: int) -> Reduced:
        """Return the answer for no rows."""
        return Reduced(
            np.zeros(self.shape(n_leaves, n_classes), np.int64), np.array([-np.inf] * self.n_maxima)
        )

    def shift(self, shifts: Sequence[float]) -> float:
        """Return the shift of the numbers, from the weighting's shifts."""
        return shifts[0]
