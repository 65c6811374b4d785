"""Weights of binary problems side by side: classes are coded by the rows of a matrix of -1 and +1.

Score c of a row belongs to column c of the code: w[i, c] = exp(-code[y_i, c] F[i, c]). One against all others, with as many
columns as classes, is the code 2 I - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from distboost.kernels import codes, histogram, response
from distboost.weights.base import Reduction, Scale, Statistic, Weighting, log_totals

if TYPE_CHECKING:
    from distboost.runtime.block import Block


def one_against_all(n_classes: int) -> np.ndarray:
    """The code whose column c tells class c from the others, (K, K)."""
    return 2.0 * np.eye(n_classes) - 1.0


@dataclass(frozen=True)
class CodeWeights(Weighting):
    """w[i, c] = exp(-code[y_i, c] F[i, c]); a shift for each column.

    A row's class is that of largest ``decode @ F[i]``; without `decode`, of largest score.
    """

    code: np.ndarray  # (K, columns)
    decode: np.ndarray | None = None  # (K, columns)

    @property
    def n_columns(self) -> int:
        return self.code.shape[1]

    def n_scores(self, n_classes: int) -> int:
        return self.n_columns

    def initial_shifts(self, n_classes: int) -> list[float]:
        return [0.0] * self.n_columns

    def growth(self, values: np.ndarray) -> list[float]:
        return np.abs(values).max(axis=0, initial=0.0).tolist()

    def n_sums(self, n_classes: int) -> int:
        return self.n_columns

    def risk(self, block: Block, shifts, factor: float, unit: float, out, largest) -> None:
        decode = np.zeros((0, 0)) if self.decode is None else self.decode
        codes.code_risk(
            block.scores, block.labels, block.weights, self.code, decode, shifts, factor, unit, out, largest
        )

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums, shifts)


class OneAgainstAll(CodeWeights):
    """One class against all others. The code has K x K numbers: it is made when rows are weighed, not when a model is loaded."""

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
    """(N, P): w[i, c] in channel c of N where the code of the row's class is -1, of P where it is +1; 0 in the other."""

    weighting: CodeWeights
    wide: bool = True

    def n_sums(self, n_classes: int) -> int:
        return 2 * self.weighting.n_columns

    def prepare(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        out = self.buffer(block, weight_unit)
        codes.code_sides(
            block.scores, block.labels, block.weights, rows, self.weighting.code, scale.shift, scale.factor,
            weight_unit, out,
        )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return max(shifts)


@dataclass(frozen=True)
class ColumnSides(Statistic):
    """One column alone: w[i, c] kept apart by the code of the row's class, -1 then +1."""

    weighting: CodeWeights
    column: int

    wide: bool = field(default=True, init=False)

    def n_sums(self, n_classes: int) -> int:
        return 2

    def prepare(self, block: Block, rows: np.ndarray, scale: Scale, weight_unit: float) -> None:
        scores, sides = _as_two_classes(block, self.weighting.code[:, self.column], self.column)
        out = block.buffer("class statistics", (block.n_rows,), np.int64, anew=True)
        response.response_weights(scores, sides, block.weights, rows, 1.0, scale.shift, scale.factor, out)

    def histogram(self, block: Block, spans, features, offsets, weight_unit, slots, pool) -> None:
        histogram.class_histogram(
            block.bins, block.order, spans[:, 0], spans[:, 1], block.kept("sides"),
            block.kept("class statistics"), block.weights, weight_unit, 2, features, offsets, slots, pool,
        )  # fmt: skip

    def shift(self, shifts: Sequence[float]) -> float:
        return shifts[self.column]


@dataclass(frozen=True)
class ColumnSums(Reduction):
    """[l, b, side]: sums of the column's weights by the code of the rows' class, kept apart by magnitude (see `ClassSums`)."""

    weighting: CodeWeights
    column: int

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_leaves, response.WINDOWS, 2

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        scores, sides = _as_two_classes(block, self.weighting.code[:, self.column], self.column)
        _, _, *partition = block.partition(leaves)
        response.class_sums(scores, sides, *partition, 1.0, scale.shift, scale.factor, out)

    def shift(self, shifts: Sequence[float]) -> float:
        return shifts[self.column]


def _as_two_classes(block: Block, code: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows as a problem of two classes, whose own class has the score code[y_i] F[i, column]."""
    scores = np.empty((block.n_rows, 2))
    sides = block.buffer("sides", (block.n_rows,), np.int32, anew=True)
    codes.two_classes(block.scores, block.labels, code, column, scores, sides)
    return scores, sides
