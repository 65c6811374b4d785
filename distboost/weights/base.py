"""What a weighting, a statistic and a reduction are.

A *weighting* gives a row's weight from its scores and its class. A *statistic* is the vector that each row adds to the
histograms of a round. A *reduction* names sums over the rows of each leaf. All three are small values that travel to the
workers and call the kernels there. `Scale` turns what they sum into integers whose sums fit in 64 bits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from distboost.kernels import histogram, simd
from distboost.rows.block import BlockRows
from distboost.rows.reduced import Reduced
from distboost.rows.scales import Scale


class Weighting(ABC):
    """Gives a row's weight from its scores and its class.

    A weighting has one or more *shifts*: logarithms of the largest magnitudes of the round. What is summed is divided by
    e^shift. The shifts come with the answer to the previous update.
    """

    def n_scores(self, n_classes: int) -> int:
        """Scores kept per row."""
        return n_classes

    @abstractmethod
    def initial_shifts(self, n_classes: int) -> list[float]:
        """The shifts while all scores are 0."""

    @abstractmethod
    def growth(self, values: np.ndarray) -> list[float]:
        """An upper bound of how far an update by leaf values (leaves, n_scores) raises each shift."""

    @abstractmethod
    def n_sums(self, n_classes: int) -> int:
        """Number of sums that `risk` computes, the one of the errors not counted."""

    @abstractmethod
    def risk(
        self,
        block: BlockRows,
        shifts: np.ndarray,
        factor: float,
        error_factor: float,
        out: np.ndarray,
        largest: np.ndarray,
    ) -> None:
        """Adds up a block's errors and weights.

        Parameters
        ----------
        block : BlockRows
        shifts : ndarray, float64
            What the weights are scaled by.
        factor : float
            Weights are summed in units of 1/factor.
        error_factor : float
            Misclassified rows' own weights are summed in units of 1/error_factor.
        out : ndarray of shape (1 + n_sums,), int64
            The errors are added to out[0], the other sums to out[1:].
        largest : ndarray of shape (n_shifts,), float64
            Raised to the block's largest magnitudes, divided by e^shifts.
        """

    @abstractmethod
    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """The logarithms of the rows' total weights, from the sums of `risk` as real numbers."""

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """The shifts after an update, from the largest magnitudes that `risk` reported in units of e^shifts."""
        following: np.ndarray = shifts + np.log(largest)
        return following


def log_totals(totals: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """log(totals e^shifts), without e^shifts, which a float may not hold."""
    with np.errstate(divide="ignore"):
        logs: np.ndarray = np.log(totals) + shifts
    return logs


def spread(values: np.ndarray) -> float:
    """The largest difference between two values (leaves, n_scores) of the same leaf."""
    return float((values.max(axis=1) - values.min(axis=1)).max(initial=0.0))


def vector_bytes(n_sums: int, wide: bool) -> int:
    """Bytes of a row's vector of `n_sums` numbers, with the row count and the row's own weight beside them."""
    return (8 if wide else 4) * simd.padded(n_sums + 2)


class Statistic(ABC):
    """The vector that a row adds to the histograms.

    Attributes
    ----------
    wide : bool
        The numbers have as many bits as int64 sums allow, instead of HISTOGRAM_BITS of an int32. This takes twice the memory;
        gains need it that must tell ties from near ties.
    n_totals : int
        Number of sums over all rows of the tree that come with its first histogram (`Rows.totals`), in the same units.
    """

    wide: bool = False
    n_totals: ClassVar[int] = 0

    @abstractmethod
    def n_sums(self, n_classes: int) -> int:
        """The length of the vector."""

    def row_bytes(self, n_classes: int) -> int:
        """Bytes that a block keeps of a row for this statistic."""
        return vector_bytes(self.n_sums(n_classes), self.wide)

    @abstractmethod
    def prepare(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> Sequence[int] | None:
        """Computes the vectors of the rows in use, and returns their totals if there are any."""

    def buffer(self, block: BlockRows, weight_factor: float) -> np.ndarray:
        """Where `prepare` puts the vectors: (n, channels), int64 if wide, else int32.

        A vector is followed by a 1 and, with a `weight_factor` above 0, by the row's own weight.
        """
        n_channels = simd.padded(self.n_sums(block.n_classes) + 1 + (weight_factor > 0))
        dtype = np.int64 if self.wide else np.int32
        return block.buffer("statistics", (block.n_rows, n_channels), dtype, overwrite=True)

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift that the vectors are scaled by, from the weighting's shifts."""
        return shifts[0]

    def histogram(
        self,
        block: BlockRows,
        spans: np.ndarray,
        features: np.ndarray,
        offsets: np.ndarray,
        weight_factor: float,
        slots: np.ndarray,
        pool: np.ndarray,
    ) -> None:
        """Sums the vectors per node, feature and bin.

        Parameters
        ----------
        block : BlockRows
        spans : ndarray of shape (m, 2), int32
            Where the nodes' rows begin and end in ``block.order``.
        features : ndarray of int64
            Which features to sum.
        offsets : ndarray of shape (D + 1,), int64
            Feature d owns the bins ``offsets[d]:offsets[d + 1]`` of a histogram.
        weight_factor : float
            Rows' own weights are summed in units of 1/weight_factor; 0: they are not summed.
        slots : ndarray of shape (m,), int64
            Where in the pool each node's histogram is.
        pool : ndarray of shape (slots, bins, channels), int64
            Histograms, added to.
        """
        histogram.dense_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], block.kept("statistics"), features, offsets, slots, pool
        )  # fmt: skip


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
        """The shape of the sums."""

    def size(self, n_leaves: int, n_classes: int) -> int:
        """The number of sums."""
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
        """The answer of no rows."""
        return Reduced(np.zeros(self.shape(n_leaves, n_classes), np.int64), np.full(self.n_maxima, -np.inf))

    def shift(self, shifts: Sequence[float]) -> float:
        """The shift that the numbers are scaled by, from the weighting's shifts."""
        return shifts[0]
