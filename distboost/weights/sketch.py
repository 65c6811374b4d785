"""Residuals that only choose trees: fewer numbers per row, or fewer bits per number.

If a gain is the Euclidean length of a sum of residuals, it needs only an estimate of these lengths. The leaves' values and the
step come from reductions, which are exact.

* `sketch`: K residuals are projected to k numbers by random signs R (K, k). The squared length of R' S, divided by k, is that of
  S on average (Iosipoi & Vakhrushev, *SketchBoost*, NeurIPS 2022).
* `bits`: residuals are rounded up or down at random, so that they are right on average (Shi et al., *Quantized training of
  gradient boosting decision trees*, NeurIPS 2022). Rows whose numbers are all 0 are not visited for histograms.

The draws depend on the seed, the round and the class, or the row's number: the model is the same wherever the rows are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distboost.errors import DataError
from distboost.kernels import random, simd, sketch
from distboost.kernels.lanes import LANES
from distboost.rows.block import BlockRows
from distboost.rows.sums import Scale, Statistic, most_bits
from distboost.weights.margin import Residuals

# The bits of residuals before they are rounded at random to fewer: sums over a row stay below 2^(40 + 8) units.
ROUNDED_FROM = 40


@dataclass(frozen=True)
class CompressedResiduals(Statistic):
    """`Residuals`, rounded at random to fewer bits, then projected by random signs.

    A row's residuals have absolute values of at most 1 and 2 in all before they are scaled and weighted. A projection may have
    all of them with the same sign, so it leaves a bit free, and fits where the residuals do.

    Attributes
    ----------
    residuals : Residuals
    components : int or None
        Numbers of a projection. None: no projection.
    few_bits : int or None
        Bits of the largest residual of a row of mean weight. None: as many as there are.
    signs, rounding : uint64
        The keys of the draws.
    """

    residuals: Residuals
    components: int | None
    few_bits: int | None
    signs: np.uint64
    rounding: np.uint64

    def n_sums(self, n_classes: int) -> int:
        return n_classes if self.components is None else self.components

    @property
    def stretch(self) -> float:
        return 1.0 if self.components is None else math.sqrt(self.components)

    def shift(self, shifts: Sequence[float]) -> float:
        return self.residuals.shift(shifts)

    def bits_to_lose(self, bits: int) -> int:
        if self.few_bits is not None:
            return 1
        return super().bits_to_lose(bits + 1)  # as many as those of residuals, which have a bit more

    def largest(self, block: BlockRows, scale: Scale, weight_factor: float) -> float:
        # As of residuals; twice as much if all entries of a projection have the same sign.
        K, most = block.n_classes, 1 if self.components is None else 2
        return max(most * (scale.factor + K), weight_factor) * block.heaviest + most * K

    def scale(self, shifts: Sequence[float], before: Sequence[float], weight: float, n_rows: int) -> Scale:
        shift = self.shift(shifts)
        above = max(shift - self.shift(before), 0.0)
        return Scale(shift, self.bits(most_bits(weight, self.wide), weight / n_rows, above))

    def bits(self, available: int, mean_weight: float, above: float) -> int:
        """Return the bits of the vectors' scale.

        Parameters
        ----------
        available : int
            The most bits for which sums over all rows fit.
        mean_weight : float
            The mean of the rows' own weights.
        above : float
            How far the scale's shift is above that of the weights before the last step.
        """
        available -= self.components is not None
        if self.few_bits is None:
            return available
        bits = self.few_bits - math.floor(math.log2(mean_weight)) + math.ceil(above / math.log(2))
        return max(min(available, bits), 0)

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        n_sums = self.n_sums(block.n_classes)
        signs = np.empty((0, LANES), np.int32)
        if self.components is not None:
            signs = np.zeros((block.n_classes, simd.padded(n_sums)), np.int32)
            sketch.draw_signs(self.signs, n_sums, signs)
        bits = scale.bits if self.few_bits is None else ROUNDED_FROM
        weighting = self.residuals.weighting
        sketch.compressed_residuals(
            block.scores, block.labels, block.weights, rows, weighting.s, weighting.link,
            scale.shift, 2.0**bits, bits - scale.bits, self.rounding, block.first, signs, n_sums, weight_factor,
            self.buffer(block, weight_factor),
        )  # fmt: skip

    @property
    def sums_all_rows(self) -> bool:
        return self.few_bits is None

    def spans(self, block: BlockRows, nodes: np.ndarray) -> np.ndarray:
        found = super().spans(block, nodes)
        if self.few_bits is not None:
            sketch.end_kept(block.order, found, block.kept("statistics"), self.n_sums(block.n_classes))
        return found


def compressed(
    statistic: Statistic, components: int | None, few_bits: int | None, seed: int, round: int
) -> Statistic:
    """Return a round's statistic with fewer numbers or bits, if either is given."""
    if components is None and few_bits is None:
        return statistic
    if not isinstance(statistic, Residuals) or statistic.wide or statistic.own != 1.0:
        raise DataError(f"{statistic} cannot be compressed: only residuals of few bits can.")
    signs = random.key(seed, random.SKETCH_SIGNS, round)
    rounding = random.key(seed, random.STATISTIC_ROUNDING, round)
    return CompressedResiduals(statistic, components, few_bits, signs, rounding)
