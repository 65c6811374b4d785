"""The reductions by which a round finds its localized similarity (Appel & Perona 2017, section 5.2).

They run in this order: each leaves arrays in the blocks that the next ones read. Repeating one gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from distboost.kernels import similarity
from distboost.kernels.similarity import GRID_BITS, PIECES, TERMS, SimilarityArrays
from distboost.rows.block import BlockRows
from distboost.rows.sums import Best, Reduced, Reduction, Scale, better
from distboost.weights.codes import CodeWeights


@dataclass(frozen=True)
class Correlations(Reduction):
    """[k, l] for l <= k: sum of u[i, k] u[i, l]; [K]: N, [K + 1]: P, the sums of `CodeSides`.

    u[i, k] = -code[y_i, k] w[i, k] is in units of e^shifts[k]; `shifts` is (K,) float64.
    """

    weighting: CodeWeights
    shifts: np.ndarray

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_classes + 2, n_classes

    def add(self, block: BlockRows, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        similarity.correlations(
            block.scores, block.labels, block.weights, block.order, self.weighting.code, self.shifts, *_grid_factors(scale),
            block.buffer("signed weights", block.scores.shape, np.float64, overwrite=True), out,
        )  # fmt: skip


@dataclass(frozen=True)
class Isolation(Reduction):
    """Finds the row to isolate, whose separation from all others lowers the loss most.

    The key of the best row is half the loss afterwards. The maxima are those of v and of -v over all rows, where
    v[i] = <projection, u[i]>.

    Attributes
    ----------
    sides : ndarray of shape (2, K), float64
        N and P.
    units : ndarray of shape (K,), float64
        e^shift of each column, up to a common factor.
    projection : ndarray of shape (K,), float64
    """

    weighting: CodeWeights
    sides: np.ndarray
    units: np.ndarray
    projection: np.ndarray

    n_maxima: ClassVar[int] = 2

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (0,)

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        sums, maxima, _ = self.initial(len(leaves), block.n_classes)
        v = block.buffer("binarized", (block.n_rows,), np.float64, overwrite=True)
        row, loss = similarity.isolate(
            block.labels, block.weights, block.order, self.weighting.code, _grid_factors(scale)[0], block.kept("signed weights"),
            self.sides, self.units, self.projection, v, maxima,
        )  # fmt: skip
        return into.add(Reduced(sums, maxima, _best(block, row, loss, v)))


@dataclass(frozen=True)
class Surroundings(Reduction):
    """Finds the row of the other binary class that is nearest to the anchor: the best row.

    The maximum is minus the squared distance to the nearest row of either binary class. Rows at the anchor itself do not count.

    Attributes
    ----------
    anchor : ndarray of shape (D,), float64
    orientation, tolerance : float
        A row's binary class is + if orientation v >= -tolerance.
    positive : bool
        The anchor's binary class is +.
    """

    anchor: np.ndarray
    orientation: float
    tolerance: float
    positive: bool

    n_maxima: ClassVar[int] = 1

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (0,)

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        v, distances, dropped = _search_state(block)
        nearest, row, distance = similarity.surround(
            _values(block), block.order, self.anchor, v, self.orientation, self.tolerance, self.positive, distances,
            dropped,
        )  # fmt: skip
        found = Reduced(np.zeros(0, np.int64), np.array([-nearest]), _best(block, row, distance, v))
        return into.add(found)


@dataclass(frozen=True)
class Trials(Reduction):
    """[s, b, k, m]: sums for the line searches of similarity s, see `kernels.similarity.piece_sums`.

    If `number` is above 0, the last similarity is a two-point one. Rows near its second point, where it is at most `threshold`,
    then drop out of the search. The best row is the row nearest to its first point among those that remain.

    Attributes
    ----------
    arrays : SimilarityArrays
        The similarities.
    sign : bool
        Only the sign of the similarities counts.
    number : int
        Which drop of the round this is, from 1; 0: no rows drop out.
    threshold : float
    """

    weighting: CodeWeights
    arrays: SimilarityArrays
    sign: bool
    number: int = 0
    threshold: float = 0.0

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return len(self.arrays.kind), PIECES, n_classes, TERMS

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        best = None
        f = np.zeros(block.n_rows)
        sum_factor = _grid_factors(scale)[1]
        for t, out in enumerate(into.sums):
            similarity.evaluate(_values(block), block.order, *self.arrays, t, f)
            similarity.piece_sums(
                f, self.sign, block.labels, block.weights, block.order, self.weighting.code, block.kept("signed weights"),
                sum_factor, out.reshape(-1, TERMS),
            )  # fmt: skip
        if self.number:
            v, distances, dropped = _search_state(block)
            row, distance = similarity.drop(block.order, f, self.threshold, self.number, distances, dropped)
            best = _best(block, row, distance, v)
        return into._replace(best=better(into.best, best))


def _grid_factors(scale: Scale) -> tuple[float, float]:
    """Return (factor, sum_factor): weights are multiples of 1/factor, their sums integers in units of 1 / (factor sum_factor)."""
    bits = min(scale.bits, GRID_BITS)
    return float(2**bits), float(2 ** (scale.bits - bits))


def _values(block: BlockRows) -> np.ndarray:
    if block.values is None:
        raise RuntimeError("these rows were placed without their raw values")
    return block.values


def _search_state(block: BlockRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return v and the squared distances from the anchor, (n,) float64, and the drop that removed each row, (n,) int32."""
    shape = (block.n_rows,)
    return (
        block.kept("binarized"),
        block.buffer("distances", shape, np.float64),
        block.buffer("dropped", shape, np.int32),
    )


def _best(block: BlockRows, row: int, key: float, v: np.ndarray) -> Best | None:
    """Return a row of the block with its coordinates, (D,) float64, and its v; None if `row` is below 0."""
    if row < 0:
        return None
    return Best(float(key), block.first + int(row), (_values(block)[row].copy(), float(v[row])))
