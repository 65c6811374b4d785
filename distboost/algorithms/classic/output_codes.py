"""Error-correcting output codes and all pairs (Allwein, Schapire & Singer, *Reducing multiclass to binary*, 2000).

| paper | here |
| --- | --- |
| M (k, l), of -1, 0 and +1 | the code: column s is the problem of the classes of -1 and +1, without the rows of those of 0 |
| f_s | F[i, s], the score of AdaBoost in column s |
| loss-based decoding, L(z) = -z | the class r of largest sum_s M[r, s] F[i, s]; of pairs, also of tanh(F[i, s]), see `AllPairs` |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import LARGEST_RATIO, SMOOTHING, parameter
from distboost.algorithms.classic.committees import Committees, check_columns
from distboost.algorithms.constraints import StrOptions
from distboost.errors import DataError
from distboost.kernels import random
from distboost.rows.messages import Rows, Step
from distboost.trees.grower import Tree
from distboost.weights.codes import CodeWeights, all_pairs, exhaustive

# The least margin of a column whose tree makes no error: the step of a tree with the error SMOOTHING.
ENOUGH = math.log(1 / SMOOTHING - 1) / 2


@dataclass(kw_only=True, eq=False)
class Coded(Committees):
    """A committee for each column, whose AdaBoost ends with a tree without an error.

    Its last step is bounded: else a few such columns would outvote all others when classes are decoded.
    """

    bounded: ClassVar[bool] = True

    def set_code(self, code: np.ndarray, votes: bool = False) -> None:
        self.weighting = CodeWeights(code, decode=code, votes=votes)

    @property
    def enough(self) -> float:
        """The least margin that is enough where a tree makes no error."""
        return ENOUGH

    def step(self, rows: Rows, tree: Tree, column: int, right: float, wrong: float) -> float:
        """α = 1/2 ln((1 - ε) / ε); without an error, what the least margin lacks to `enough`."""
        if wrong > 0:
            return super().step(rows, tree, column, right, wrong)
        if tree.n_leaves == 1:
            return 0.0  # the round sees rows of one side alone
        # A shift is the logarithm of the column's largest weight: minus its least margin.
        return float(np.clip(self.enough + rows.shifts[column], 0.0, LARGEST_RATIO / 2))


@dataclass(kw_only=True, eq=False)
class AllPairs(Coded):
    """All pairs: AdaBoost for each pair of classes, on the rows of these two classes.

    Allwein, Schapire & Singer, *Reducing multiclass to binary*, JMLR, 2000. A round adds a tree for each of the K (K - 1) / 2
    pairs, for at most 64 classes. A pair that is told apart without an error keeps up with the others: else their scores, which
    mean nothing for rows of these two classes, would outvote it. In `min_samples_leaf`, rows of other classes count.

    Parameters
    ----------
    decoding : {"votes", "sum"}, default="votes"
        The scores of the classes. "votes": the sum of each pair's vote p - q, where p and q are the probabilities that AdaBoost's
        score f gives its two classes: p - q = tanh(f). "sum": the sum of f, as in the paper. With "sum", scores are sums over
        trees, which SHAP values, tables of trees and exports other than ONNX need; but pairs that are far apart outvote those
        that matter.
    """

    decoding: str = parameter("votes", StrOptions({"votes", "sum"}))

    name: ClassVar[str] = "all-pairs"

    def __post_init__(self) -> None:
        K = self.n_classes
        check_columns(K * (K - 1) // 2, f"AdaBoost for all pairs of {K} classes")
        self.set_code(all_pairs(K), votes=self.decoding == "votes")
        self._largest = np.zeros(self.weighting.n_columns)  # score that a row can have

    @property
    def votes(self) -> np.ndarray | None:
        return self.weighting.code if self.weighting.votes else None

    @property
    def enough(self) -> float:
        return max(ENOUGH, float(self._largest.mean()))

    def on_steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self._largest += np.abs(step.values).max(axis=0)


@dataclass(kw_only=True, eq=False)
class OutputCode(Coded):
    """Error-correcting output codes: AdaBoost for each column of a fixed code.

    Dietterich & Bakiri, *Solving multiclass learning problems via error-correcting output codes*, JAIR, 1995; Allwein, Schapire
    & Singer, *Reducing multiclass to binary*, JMLR, 2000. A round adds a tree for each column. The class whose row of the code
    has the largest product with the scores is predicted.

    Parameters
    ----------
    code : {"random", "exhaustive"} or array-like of shape (n_classes, n_columns), default="random"
        "random": 10 log2(K) columns of -1 and +1, rounded up, drawn from `random_state`. "exhaustive": all 2^(K-1) - 1 ways to
        divide the classes into two groups, for at most 12 classes. A matrix has a row for each class, in the order of
        `classes_`, of -1, 0 and +1: rows of a class of 0 have no part in the column's problem, but count in `min_samples_leaf`.
    """

    code: Any = parameter("random", StrOptions({"random", "exhaustive"}), "array-like")
    random_state: Any = parameter(0, "random_state")

    name: ClassVar[str] = "output-code"

    def __post_init__(self) -> None:
        K = self.n_classes
        if not isinstance(self.code, str):
            self.set_code(matrix_of(self.code))
        elif self.code == "random":
            self.set_code(random_code(K, self.random_state))
        else:
            check_columns(2 ** (K - 1) - 1, f"The exhaustive code of {K} classes")
            self.set_code(exhaustive(K))

    def check(self) -> None:
        """Raise DataError unless the code tells all classes apart."""
        code = self.weighting.code
        if len(code) != self.n_classes:
            raise DataError(
                f"code has {len(code)} rows, and there are {self.n_classes} classes.",
                remedy="Pass a row for each class.",
            )
        if len(np.unique(code, axis=0)) < self.n_classes:
            raise DataError(
                "code has two equal rows, whose classes it cannot tell apart.",
                remedy="Pass a different row for each class.",
            )


def random_code(n_classes: int, seed: int) -> np.ndarray:
    """Columns of -1 and +1, none of which is another one or its opposite, and different rows: (K, columns) float64."""
    n_columns = min(math.ceil(10 * math.log2(n_classes)), 2 ** (n_classes - 1) - 1)
    columns: dict[bytes, np.ndarray] = {}
    draw = 0
    while len(columns) < n_columns or len(np.unique(_side_by_side(columns), axis=0)) < n_classes:
        if len(columns) == n_columns:
            columns.clear()
        u = random.uniforms(random.key(seed, random.COLORING, draw), 0, n_classes)
        column = np.where((u < 0.5) == (u[0] < 0.5), -1.0, 1.0)
        if (column > 0).any():
            columns[column.tobytes()] = column
        draw += 1
    return _side_by_side(columns)


def _side_by_side(columns: dict[bytes, np.ndarray]) -> np.ndarray:
    return np.stack(list(columns.values()), axis=1)


def matrix_of(code: Any) -> np.ndarray:
    """Return a code as float64. Raise DataError unless it is a matrix of which each column has -1 and +1."""
    try:
        matrix = np.asarray(code, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"code is no matrix of numbers: {error}.", remedy="Pass rows of -1, 0 and +1."
        ) from error
    if matrix.ndim != 2 or not matrix.size:
        raise DataError(
            f"code has shape {matrix.shape}, expected (classes, columns).",
            remedy="Pass a row for each class.",
        )
    check_columns(matrix.shape[1], f"A code of {matrix.shape[1]:,} columns")
    others = ~np.isin(matrix, (-1, 0, 1)).all(axis=0)
    bad = others | (matrix.max(axis=0) < 1) | (matrix.min(axis=0) > -1)
    if bad.any():
        column = int(np.argmax(bad))
        raise DataError(
            f"column {column} of code is {matrix[:, column].tolist()}, expected -1, 0 and +1, and both -1 and +1.",
            remedy="Pass two groups of classes in every column.",
        )
    return matrix
