"""Weights that depend only on the score of a row's own class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distboost.kernels import response
from distboost.rows.block import BlockRows
from distboost.rows.sums import NUMBERS, ClassStatistic, Reduction, Risk, Scale, Weighting, log_totals


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

    def risk(self, block: BlockRows, sums: Risk) -> None:
        response.response_risk(block.scores, block.labels, block.weights, self.s, sums.shifts[0], *sums[2:])

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums @ 2.0 ** (-response.WINDOW * np.arange(len(sums))), shifts)

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        # `largest` holds an exponent, not a magnitude.
        following: np.ndarray = shifts + largest
        return following


@dataclass(frozen=True)
class ClassWeights(ClassStatistic):
    """w_i in the channel of the row's class. A block keeps one number per row."""

    weighting: ResponseWeights

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = block.buffer(NUMBERS, (block.n_rows,), np.int64, overwrite=True)
        response.response_weights(
            block.scores, block.labels, block.weights, rows, self.weighting.s, scale.shift, scale.factor, out
        )


@dataclass(frozen=True)
class ClassSums(Reduction):
    """C[l, b, c] = sum of w_i over the rows of class c in leaf l whose weight lies in window b of magnitude."""

    weighting: ResponseWeights

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, response.WINDOWS, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        response.class_sums(*block.leaf_arrays(leaves), self.weighting.s, scale.shift, scale.factor, out)


# Rounding to whole units changes a weight of 2^29 units or more by at most 2^-30 of it, less than 1e-9. A much larger bound
# would rarely be met: the heaviest row has 2^(61 - log2 n) units, and the rows of most leaves have far fewer.
FINE_BITS = 29


def is_precise(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Whether the rounding of weights changes each integer sum by less than 1e-9 of it.

    `mass` is the total of the own weights of the rows that are summed, of the shape of `sums`.
    """
    fine: np.ndarray = sums >> FINE_BITS >= mass
    return fine


def add_windows(sums: np.ndarray) -> np.ndarray:
    """Class sums (leaves, windows, K) added up over windows: (leaves, K)."""
    added: np.ndarray = np.einsum("lbc,b->lc", sums, 2.0 ** (-response.WINDOW * np.arange(sums.shape[1])))
    return added


def normalised(sums: np.ndarray) -> np.ndarray:
    """Class sums (leaves, K), each leaf's in units of its own: those of its heaviest window in use."""
    out = np.zeros((len(sums), sums.shape[2]))
    for leaf, windows in enumerate(sums):
        used = np.flatnonzero(windows.any(axis=1))
        for b in used:
            out[leaf] += windows[b] * 2.0 ** (-response.WINDOW * int(b - used[0]))
    return out
