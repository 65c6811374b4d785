"""Weights of several binary problems at once: a matrix of -1, 0 and +1 codes the classes.

Column c of the code is a binary problem, which has score c of each row: w[i, c] = exp(-code[y_i, c] F[i, c]), or 0 if the code
is 0. The code "one against all" has a column for each class: 2 I - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from distboost.kernels import codes, response
from distboost.rows.block import BlockRows
from distboost.rows.sums import (
    NUMBERS,
    ClassStatistic,
    Reduction,
    Risk,
    Scale,
    Statistic,
    Weighting,
    log_totals,
)


def one_against_all(n_classes: int) -> np.ndarray:
    """The code in which column c is +1 for class c alone: (K, K) float64."""
    return 2.0 * np.eye(n_classes) - 1.0


def exhaustive(n_classes: int) -> np.ndarray:
    """The code of all ways to divide the classes into two groups: (K, 2^(K-1) - 1) float64.

    The first class is -1 in every column, so that no column is the opposite of another.
    """
    columns = np.arange(1, 2 ** (n_classes - 1))
    code = np.where(columns >> np.arange(n_classes - 1)[:, None] & 1, 1.0, -1.0)
    return np.concatenate([np.full((1, len(columns)), -1.0), code])


def all_pairs(n_classes: int) -> np.ndarray:
    """The code with a column for each pair of classes, -1 and +1, which is 0 for all others: (K, K (K-1) / 2) float64."""
    unit = np.eye(n_classes)
    first, second = np.triu_indices(n_classes, 1)
    code: np.ndarray = unit[:, second] - unit[:, first]
    return code


@dataclass(frozen=True)
class CodeWeights(Weighting):
    """w[i, c] = exp(-code[y_i, c] F[i, c]), or 0 where the code is 0, with one shift per column.

    Attributes
    ----------
    code : ndarray of shape (K, columns), float64
        -1, 0 and +1.
    decode : ndarray of shape (K, columns), float64, or None
        A row's predicted class is the one of largest ``decode @ F[i]``; without `decode`, of largest score.
    votes : bool
        Whether tanh(F[i]) takes the place of F[i] there: 2 p - 1 for each column's probability p = 1 / (1 + exp(-2 F)) of +1.
    """

    code: np.ndarray
    decode: np.ndarray | None = None
    votes: bool = False

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

    def risk(self, block: BlockRows, sums: Risk) -> None:
        decode = np.zeros((0, 0)) if self.decode is None else self.decode
        codes.code_risk(
            block.scores, block.labels, block.weights, self.code, decode, self.votes, *sums[1:]
        )  # fmt: skip

    def log_totals(self, sums: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        return log_totals(sums, shifts)

    def next_shifts(self, shifts: np.ndarray, largest: np.ndarray) -> np.ndarray:
        # Evaluation rows may lack all classes of a column.
        return super().next_shifts(shifts, np.where(largest > 0, largest, 1.0))


class OneAgainstAll(CodeWeights):
    """One class against all others. The K x K code is made when it is first used: a loaded model does not need it."""

    n_classes: int
    decode = None
    votes = False

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
class ColumnSides(ClassStatistic):
    """(N, P) of a single column: a row's weight is in N if the code of its class is -1, in P if +1, in none if 0."""

    weighting: CodeWeights
    column: int

    def n_sums(self, n_classes: int) -> int:
        return 2

    def row_bytes(self, n_classes: int) -> int:
        return 8 + 16 + 4  # weight (int64), two scores (float64), side (int32)

    def classes(self, block: BlockRows) -> np.ndarray:
        return block.kept("sides")

    def prepare(self, block: BlockRows, rows: np.ndarray, scale: Scale, weight_factor: float) -> None:
        scores, sides = _as_two_classes(block, self.weighting.code[:, self.column], self.column)
        out = block.buffer(NUMBERS, (block.n_rows,), np.int64, overwrite=True)
        response.response_weights(scores, sides, block.weights, rows, 1.0, scale.shift, scale.factor, out)

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
