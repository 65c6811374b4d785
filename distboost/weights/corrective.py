"""Sums for algorithms that correct the coefficients of all their weak learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distboost.kernels import corrective
from distboost.rows.block import BlockRows
from distboost.rows.sums import Reduced, Reduction, Scale


@dataclass(frozen=True)
class Stumps:
    """T stumps, each -polarity on the left and +polarity on the right.

    Attributes
    ----------
    feature, bin : ndarray of shape (T,), int64
    missing_left : ndarray of shape (T,), bool
    sets : ndarray of shape (T, SET_WORDS or 0), uint64
        As in `Splits`.
    polarity : ndarray of shape (T,), float64
        -1 or +1.
    """

    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    sets: np.ndarray
    polarity: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The fields in their order, as the kernels take them."""
        return self.feature, self.bin, self.missing_left, self.sets, self.polarity


@dataclass(frozen=True)
class CorrectiveSlopes(Reduction):
    """[t, r] for t < T: minus the derivative of the loss with respect to W[t, r]; [T, 0]: the loss.

    The maxima are the largest total weight and the largest loss of one row, in units of e^weight_shift and e^loss_shift.

    Attributes
    ----------
    stumps : Stumps
    missing_bin : ndarray of shape (D,), int64
        The bin of missing values, by feature.
    W : ndarray of shape (T, K), float64
        Coefficients of the stumps.
    link : int
        See `MarginWeights`.
    weight_shift, loss_shift : float
        Upper bounds of the logarithms of a row's total weight and loss.
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

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        sums, maxima, _ = into
        corrective.corrective_slopes(
            block.bins, self.missing_bin, block.labels, block.weights, block.order, *self.stumps.arrays, self.W, self.link,
            scale.shift, self.loss_shift, scale.factor, sums[:-1], sums[-1], maxima,
        )  # fmt: skip
        return into

    @property
    def shifts(self) -> np.ndarray:
        return np.array([self.weight_shift, self.loss_shift])

    def shift(self, shifts: Sequence[float]) -> float:
        return self.weight_shift
