"""Sums for algorithms that correct the coefficients of all their weak learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distboost.kernels import corrective
from distboost.rows.reduced import Partial
from distboost.weights.base import Reduction, Scale

if TYPE_CHECKING:
    from distboost.runtime.block import Block


@dataclass(frozen=True)
class Stumps:
    """Stumps: -polarity on the left and +polarity on the right."""

    feature: np.ndarray  # (T,)
    bin: np.ndarray  # (T,)
    missing_left: np.ndarray  # (T,)
    polarity: np.ndarray  # (T,) -1 or +1


@dataclass(frozen=True)
class CorrectiveSlopes(Reduction):
    """[t, r]: the slope of the loss along coefficient W[t, r], with its sign turned; then, in the last row, the loss itself.

    The maxima are those of a row's total weight and loss, as multiples of e^shifts; `weight_shift` and `loss_shift` bound them.
    """

    stumps: Stumps
    missing_bin: np.ndarray
    W: np.ndarray
    link: int
    weight_shift: float
    loss_shift: float

    n_maxima: ClassVar[int] = 2

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return len(self.W) + 1, n_classes

    def answer(self, block: Block, leaves: np.ndarray, scale: Scale) -> Partial:
        sums, maxima, _ = self.nothing(0, block.n_classes)
        corrective.corrective_slopes(
            block.bins, self.missing_bin, block.labels, block.weights, block.order, self.stumps.feature, self.stumps.bin,
            self.stumps.missing_left, self.stumps.polarity, self.W, self.link, scale.shift, self.loss_shift,
            scale.factor, sums[:-1], sums[-1], maxima,
        )  # fmt: skip
        return Partial(sums, maxima)

    @property
    def shifts(self) -> np.ndarray:
        return np.array([self.weight_shift, self.loss_shift])

    def shift(self, shifts: Sequence[float]) -> float:
        return self.weight_shift
