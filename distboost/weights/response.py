"""Weights that depend only on the score of a row's own class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distboost.kernels import histogram, response, sampling
from distboost.kernels.histogram import RowAddresses, Target
from distboost.rows.block import BlockRows
from distboost.rows.scales import Scale
from distboost.rows.sums import Reduction, Statistic, Weighting, log_totals


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

    def risk(
        self,
        block: BlockRows,
        shifts: np.ndarray,
        factor: float,
        error_factor: float,
        out: np.ndarray,
        largest: np.ndarray,
    ) -> None:
        response.response_risk(
            block.scores, block.labels, block.weights, self.s, shifts[0], factor, error_factor, out, largest
        )

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums @ 2.0 ** (-response.WINDOW * np.arange(len(sums))), shifts)

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        # `largest` holds an exponent, not a magnitude.
        following: np.ndarray = shifts + largest
        return following


@dataclass(frozen=True)
class ClassWeights(Statistic):
    """w_i in the channel of the row's class. A block keeps one number per row."""

    weighting: ResponseWeights

    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return n_classes

    def row_bytes(self, n_classes: int) -> int:
        return 8  # weight (int64)

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = block.buffer("class statistics", (block.n_rows,), np.int64, overwrite=True)
        response.response_weights(
            block.scores, block.labels, block.weights, rows, self.weighting.s, scale.shift, scale.factor, out
        )

    def magnitudes(
        self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float, out: np.ndarray
    ) -> None:
        self.prepare(block, rows, scale, weight_factor)
        out[rows] = block.kept("class statistics")[rows]

    def divide(
        self, block: BlockRows, rows: np.ndarray, magnitudes: np.ndarray, threshold: int, unit: float
    ) -> None:
        divide_numbers(block, rows, magnitudes, threshold, unit)

    @property
    def summation(self) -> Any:
        return histogram.class_histogram_of_blocks

    def addresses(self, blocks: Sequence[BlockRows], weight_factor: float) -> RowAddresses:
        rows = [(block.bins, block.order, block.kept("class statistics")[:, None]) for block in blocks]
        classes = [(block.labels, block.weights) for block in blocks]
        return RowAddresses.of(rows, classes, weight_factor, blocks[0].n_classes)

    def histogram(
        self,
        blocks: Sequence[BlockRows],
        spans: Sequence[np.ndarray],
        target: Target,
        scale: Scale,
        weight_factor: float,
        largest: float | None = None,
    ) -> None:
        features, offsets, slots, pool = target.cleared()
        for block, own in zip(blocks, spans, strict=True):
            start, stop = np.ascontiguousarray(own.T)
            histogram.class_histogram(
                block.bins, block.order, start, stop, block.labels, block.kept("class statistics"),
                block.weights, weight_factor, block.n_classes, features, offsets, slots, pool,
            )  # fmt: skip


def divide_numbers(
    block: BlockRows, rows: np.ndarray, magnitudes: np.ndarray, threshold: int, unit: float
) -> None:
    """Do what `Statistic.divide` does, for statistics of one number per row."""
    numbers = block.kept("class statistics")[:, None]
    sampling.divide(numbers, rows, 1, magnitudes, float(threshold), unit)


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
