"""Weights of several binary problems at once: a matrix of -1 and +1 codes the classes.

Column c of the code is a binary problem, which has score c of each row: w[i, c] = exp(-code[y_i, c] F[i, c]). The code
"one against all" has a column for each class: 2 I - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from distboost.kernels import codes, histogram, response
from distboost.kernels.histogram import RowAddresses, Target
from distboost.rows.block import BlockRows
from distboost.rows.scales import Scale
from distboost.rows.sums import Reduction, Statistic, Weighting, log_totals
from distboost.weights.response import divide_numbers


def one_against_all(n_classes: int) -> np.ndarray:
    """The code in which column c is +1 for class c alone: (K, K) float64."""
    return 2.0 * np.eye(n_classes) - 1.0


@dataclass(frozen=True)
class CodeWeights(Weighting):
    """w[i, c] = exp(-code[y_i, c] F[i, c]), with one shift per column.

    Attributes
    ----------
    code : ndarray of shape (K, columns), float64
        -1 and +1.
    decode : ndarray of shape (K, columns), float64, or None
        A row's predicted class is the one of largest ``decode @ F[i]``; without `decode`, of largest score.
    """

    code: np.ndarray
    decode: np.ndarray | None = None

    @property
    def n_columns(self) -> int:
        return int(self.code.shape[1])

    def n_scores(self, n_classes: int) -> int:
        return self.n_columns

    def initial_shifts(self, n_classes: int) -> list[float]:
        return [0.0] * self.n_columns

    def growth(self, values: np.ndarray) -> list[float]:
        return [float(largest) for largest in np.abs(values).max(axis=0, initial=0.0)]

    def n_sums(self, n_classes: int) -> int:
        return self.n_columns

    def risk(
        self,
        block: BlockRows,
        shifts: np.ndarray,
        factor: float,
        error_factor: float,
        out: np.ndarray,
        largest: np.ndarray,
    ) -> None:
        decode = np.zeros((0, 0)) if self.decode is None else self.decode
        codes.code_risk(
            block.scores, block.labels, block.weights, self.code, decode, shifts, factor, error_factor, out, largest
        )  # fmt: skip

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums, shifts)


class OneAgainstAll(CodeWeights):
    """One class against all others. The K x K code is made when it is first used: a loaded model does not need it."""

    n_classes: int
    decode = None

    def __init__(self, n_classes: int):
        object.__setattr__(self, "n_classes", n_classes)

    @cached_property
    def code(self) -> np.ndarray:
        return one_against_all(self.n_classes)

    @property
    def n_columns(self) -> int:
        return self.n_classes


@dataclass(frozen=True)
class CodeSides(Statistic):
    """(N, P), 2 C numbers: w[i, c] is in N[c] if the code of the row's class is -1 in column c, in P[c] if it is +1."""

    weighting: CodeWeights
    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return 2 * self.weighting.n_columns

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        out = self.buffer(block, weight_factor)
        codes.code_sides(
            block.scores, block.labels, block.weights, rows, self.weighting.code, scale.shift, scale.factor,
            weight_factor, out,
        )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return max(shifts)


@dataclass(frozen=True)
class ColumnSides(Statistic):
    """(N, P) of a single column: a row's weight is in N if the code of its class is -1, in P if it is +1."""

    weighting: CodeWeights
    column: int

    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return 2

    def row_bytes(self, n_classes: int) -> int:
        return 8 + 16 + 4  # weight (int64), two scores (float64), side (int32)

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        scores, sides = _as_two_classes(block, self.weighting.code[:, self.column], self.column)
        out = block.buffer("class statistics", (block.n_rows,), np.int64, overwrite=True)
        response.response_weights(scores, sides, block.weights, rows, 1.0, scale.shift, scale.factor, out)

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
        classes = [(block.kept("sides"), block.weights) for block in blocks]
        return RowAddresses.of(rows, classes, weight_factor, 2)

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
                block.bins, block.order, start, stop, block.kept("sides"),
                block.kept("class statistics"), block.weights, weight_factor, 2, features, offsets, slots, pool,
            )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return shifts[self.column]


@dataclass(frozen=True)
class ColumnSums(Reduction):
    """[l, b, side]: sums of a column's weights by leaf, window of magnitude (see `ClassSums`) and code, -1 then +1."""

    weighting: CodeWeights
    column: int

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, response.WINDOWS, 2

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        scores, sides = _as_two_classes(block, self.weighting.code[:, self.column], self.column)
        _, _, *partition = block.leaf_arrays(leaves)
        response.class_sums(scores, sides, *partition, 1.0, scale.shift, scale.factor, out)

    def shift(self, shifts: Sequence[float]) -> float:
        return shifts[self.column]


def _as_two_classes(block: BlockRows, code: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
    """A column as a problem of two classes: scores (n, 2), where the own class has code[y_i] F[i, column], and classes (n,)."""
    scores = np.empty((block.n_rows, 2))
    sides = block.buffer("sides", (block.n_rows,), np.int32, overwrite=True)
    codes.two_classes(block.scores, block.labels, np.ascontiguousarray(code), column, scores, sides)
    return scores, sides
