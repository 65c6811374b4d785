"""Statistics of rows that are drawn by weight, and their sums over the leaves of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.kernels import sampling, simd
from distboost.kernels.histogram import Target
from distboost.rows.block import BlockRows
from distboost.rows.messages import Draw
from distboost.rows.summands import Summands, add_histograms
from distboost.rows.sums import Reduction, Risk, Scale, Statistic

MAGNITUDES = "magnitudes"  # the name of the array that a block keeps, (n,) float64


def drawn(draw: Draw, first: int, magnitudes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return which rows are drawn, in their order; `first` is the global number of row 0, and `magnitudes` (n,) are whole."""
    out = np.empty(len(rows), np.int32)
    n = sampling.draw(draw.key, first, magnitudes, float(draw.threshold), rows, out)
    return out[:n]


@dataclass(frozen=True)
class Magnitudes(Statistic):
    """The magnitudes of a statistic's rows, by which a tree's rows are drawn. The totals: see `kernels.sampling.tally`."""

    of: Statistic

    n_totals: ClassVar[int] = 2 * sampling.N_BINS

    def n_sums(self, n_classes: int) -> int:
        return self.of.n_sums(n_classes)

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> np.ndarray:
        out = _magnitudes_of(block)
        self.of.magnitudes(block, rows, scale, weight_factor, out)
        return _tallied(out, rows)

    def prepare_with_risk(
        self, risk: Risk, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float
    ) -> np.ndarray:
        out = _magnitudes_of(block)
        self.of.magnitudes_with_risk(risk, block, rows, scale=scale, weight_factor=weight_factor, out=out)
        return _tallied(out, rows)


def _tallied(magnitudes: np.ndarray, rows: np.ndarray) -> np.ndarray:
    totals = np.zeros((sampling.N_BINS, 2), np.int64)
    sampling.tally(magnitudes, rows, totals)
    return totals.ravel()


def _magnitudes_of(block: BlockRows) -> np.ndarray:
    """Return the array for the magnitudes; those of rows that are not in use are 0."""
    out = block.buffer(MAGNITUDES, (block.n_rows,), np.float64, overwrite=True)
    if len(block.present) < block.n_rows:
        out[:] = 0.0
    return out


@dataclass(frozen=True)
class Sampled(Statistic):
    """A statistic divided by the probability with which its rows were drawn."""

    of: Statistic
    draw: Draw
    wide: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wide", self.of.wide)

    def n_sums(self, n_classes: int) -> int:
        return self.of.n_sums(n_classes)

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        """Compute the vectors of drawn rows, of which the block has the magnitudes."""
        self.of.prepare(block, rows, scale, weight_factor)
        self.of.divide(block, rows, block.kept(MAGNITUDES), self.draw.threshold, self.draw.unit)

    def largest(self, block: BlockRows, scale: Scale, weight_factor: float) -> float:
        prepared = self.of.largest(block, scale, 0.0)
        return max(max(prepared, self.draw.threshold) * self.draw.unit + 1, weight_factor * block.heaviest)

    def summands(self, block: BlockRows, spans: np.ndarray, scale: Scale, weight_factor: float) -> Summands:
        found = self.of.summands(block, spans, scale, weight_factor)
        return found._replace(largest=self.largest(block, scale, weight_factor))


@dataclass(frozen=True)
class LeafSums(Reduction):
    """The sums of a statistic over all rows of each leaf, the number of rows and, with a weight factor, their weight.

    One more row of numbers holds the statistic's totals.
    """

    statistic: Statistic
    weight_factor: float

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        n = self.statistic.n_sums(n_classes) + 1 + (self.weight_factor > 0)
        return n_leaves + 1, max(n, self.statistic.n_totals)

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        totals = self.statistic.prepare(block, block.present, scale, self.weight_factor)
        if totals is not None:
            out[-1, : len(totals)] += totals
        _, _, _, order, spans, _ = block.leaf_arrays(leaves)
        found = self.statistic.summands(block, spans[leaves], scale, self.weight_factor)
        # If all rows lie in the only bin of the only feature, the histogram of a leaf is its sums.
        bins, varying = np.zeros((block.n_rows, 1), np.uint8), np.ones(1, bool)
        sums = np.zeros((len(leaves), 1, simd.padded(out.shape[1])), np.int64)
        target = Target(np.zeros(1, np.int64), np.arange(2), np.arange(len(leaves)), sums, fresh=False)
        found = found._replace(bins=bins, order=order, varying=varying)
        add_histograms([found], target, self.weight_factor)
        out[:-1] += sums[:, 0, : out.shape[1]]
