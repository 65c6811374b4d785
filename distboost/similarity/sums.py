"""The questions by which a round finds its localized similarity (Appel & Perona 2017, section 5.2).

They follow one another: each leaves in the blocks what the next ones read. Asked again, a question gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from distboost.kernels import similarity
from distboost.kernels.similarity import GRID_BITS, PIECES, TERMS, Places
from distboost.rows.reduced import Best, Partial
from distboost.weights.base import Reduction, Scale
from distboost.weights.codes import CodeWeights

if TYPE_CHECKING:
    from distboost.runtime.block import Block


@dataclass(frozen=True)
class Correlations(Reduction):
    """[k, l] for l <= k: sum of u[i, k] u[i, l]; [K]: N, [K + 1]: P, the sums of `CodeSides`.

    u[i, k] = -code[y_i, k] w[i, k], and column k of it is scaled down by e^shifts[k].
    """

    weighting: CodeWeights
    shifts: np.ndarray  # (K,)

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return n_classes + 2, n_classes

    def add(self, block: Block, leaves: np.ndarray, scale: Scale, out: np.ndarray) -> None:
        similarity.correlations(
            block.scores, block.labels, block.weights, block.order, self.weighting.code, self.shifts, *_grid(scale),
            block.buffer("signed weights", block.scores.shape, np.float64, anew=True), out,
        )  # fmt: skip


@dataclass(frozen=True)
class Isolation(Reduction):
    """The best row is the one that is best told from all others; with it come its coordinates and its v = <projection, u>.

    Its key is half the loss after that; the maxima are those of v and of -v over all rows.
    """

    weighting: CodeWeights
    sides: np.ndarray  # (2, K): N and P
    units: np.ndarray  # (K,): e^shift of each column, but for a common factor
    projection: np.ndarray  # (K,)

    n_maxima: ClassVar[int] = 2

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (0,)

    def answer(self, block: Block, leaves: np.ndarray, scale: Scale) -> Partial:
        sums, maxima, _ = self.nothing(len(leaves), block.n_classes)
        v = block.buffer("binarized", (block.n_rows,), np.float64, anew=True)
        row, loss = similarity.isolate(
            block.labels, block.weights, block.order, self.weighting.code, _grid(scale)[0], block.kept("signed weights"),
            self.sides, self.units, self.projection, v, maxima,
        )  # fmt: skip
        return Partial(sums, maxima, _best(block, row, loss, v))


@dataclass(frozen=True)
class Surroundings(Reduction):
    """The best row is the nearest to the anchor of those of the other binary class; the maximum is less the squared distance
    to the nearest row of any class. Rows at the anchor's own place do not count."""

    anchor: np.ndarray  # (D,)
    orientation: float  # a row's binary class is + if orientation v >= -tolerance
    tolerance: float
    positive: bool  # the anchor's binary class

    n_maxima: ClassVar[int] = 1

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return (0,)

    def answer(self, block: Block, leaves: np.ndarray, scale: Scale) -> Partial:
        v, distances, dropped = _search_state(block)
        nearest, row, distance = similarity.surround(
            _values(block), block.order, self.anchor, v, self.orientation, self.tolerance, self.positive, distances,
            dropped,
        )  # fmt: skip
        return Partial(np.zeros(0, np.int64), np.array([-nearest]), _best(block, row, distance, v))


@dataclass(frozen=True)
class Trials(Reduction):
    """[s, b, k, m]: sums for the line searches of similarity s, see `kernels.similarity.piece_sums`.

    If the last similarity is of two points, the rows near the second, where it is at most `threshold`, drop out of the search,
    and the best row is the nearest to the first point of those that remain.
    """

    weighting: CodeWeights
    places: Places
    sign: bool
    number: int = 0  # of this question within the round, from 1, if rows are to drop out
    threshold: float = 0.0

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        return len(self.places.kind), PIECES, n_classes, TERMS

    def answer(self, block: Block, leaves: np.ndarray, scale: Scale) -> Partial:
        sums, maxima, best = self.nothing(len(leaves), block.n_classes)
        f = np.zeros(block.n_rows)
        unit = _grid(scale)[1]
        for t, out in enumerate(sums):
            similarity.evaluate(_values(block), block.order, *self.places, t, f)
            similarity.piece_sums(
                f, self.sign, block.labels, block.weights, block.order, self.weighting.code, block.kept("signed weights"),
                unit, out.reshape(-1, TERMS),
            )  # fmt: skip
        if self.number:
            v, distances, dropped = _search_state(block)
            row, distance = similarity.drop(block.order, f, self.threshold, self.number, distances, dropped)
            best = _best(block, row, distance, v)
        return Partial(sums, maxima, best)


def _grid(scale: Scale) -> tuple[float, float]:
    """Weights are multiples of 1/factor; a sum of them is one of 1 / (factor unit)."""
    bits = min(scale.bits, GRID_BITS)
    return float(2**bits), float(2 ** (scale.bits - bits))


def _values(block: Block) -> np.ndarray:
    if block.values is None:
        raise RuntimeError("these rows were placed without their values")
    return block.values


def _search_state(block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v, the squared distances from the anchor, and the question by which each row dropped out."""
    shape = (block.n_rows,)
    return (
        block.kept("binarized"),
        block.buffer("distances", shape, np.float64),
        block.buffer("dropped", shape, np.int32),
    )


def _best(block: Block, row: int, key: float, v: np.ndarray) -> Best | None:
    """The block's row with what is to be known of it: its coordinates and its v."""
    if row < 0:
        return None
    return Best(float(key), block.first + int(row), (_values(block)[row].copy(), float(v[row])))
