"""Localized similarities, found by the procedure of Appel & Perona 2017, section 5.2.

| paper | here |
| --- | --- |
| f_i, f_ij (5.1) | `Similarity` of one point, of two points, scaled so that the largest value is 1 |
| u_n, lambda_1, v_1 (eq. 7, 8) | u[n, k] / sqrt(sum_n w[n, k]); its K x K matrix has the same eigenvalue; v = <projection, u_n> |
| b_n | sign of v, + for 0 |

The reductions run in their order here: each leaves arrays in the blocks that the next ones read. Repeating one gives the same
answer. The paper does not say what to do with rows that have the same coordinates as row i. Here they are not its neighbours:
tau is half the squared distance to the nearest row with *other* coordinates, and no two-point similarity, which would be 0, is
formed with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from distboost.kernels import similarity
from distboost.kernels.similarity import (
    CONSTANT,
    GRID_BITS,
    ONE_POINT,
    PIECES,
    TERMS,
    TWO_POINT,
    SimilarityArrays,
)
from distboost.rows.block import BlockRows
from distboost.rows.messages import Rows
from distboost.rows.sums import Best, Reduced, Reduction, Scale, better
from distboost.weights.codes import CodeWeights, ColumnSums


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


# Bytes that a search keeps of each row, besides its weights and values: v, distance and similarity (float64), drop (int32).
SEARCH_BYTES = 3 * 8 + 4

_ROOT = np.zeros(1, np.int64)  # all rows in use are in one leaf

# A relative decrease of the loss smaller than this is rounding.
NOISE = 2.0**-46

# An entry of v this small relative to the largest is 0 up to rounding. That is common: in the first round with 4 classes, v is 0
# for the rows of all classes but one.
ZERO = 2.0**-40

# Computes each class's best step and the loss after it, both (K,) float64, from the sums of `Trials` for one similarity,
# (PIECES, K, TERMS) float64.
Steps = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class Similarity(NamedTuple):
    """A similarity to one or two points of the training rows, or the constant 1.

    Attributes
    ----------
    kind : int
        CONSTANT, ONE_POINT or TWO_POINT.
    anchors : ndarray of shape (2, n_features), float64
        The points; a point that the kind does not use is 0.
    tau : float
        The squared distance at which a one-point similarity is 0; 0 for the other kinds.
    sign : bool
        Whether only the sign of the similarity counts.
    """

    kind: int
    anchors: np.ndarray
    tau: float
    sign: bool

    @property
    def depth(self) -> int:
        """0: there is no smaller weak learner of this kind."""
        return 0

    @classmethod
    def constant(cls, n_features: int, sign: bool) -> Similarity:
        return cls(CONSTANT, np.zeros((2, n_features)), 0.0, sign)

    @classmethod
    def one_point(cls, x: np.ndarray, tau: float, sign: bool) -> Similarity:
        return cls(ONE_POINT, np.stack([x, np.zeros_like(x)]), tau, sign)

    @classmethod
    def two_point(cls, x: np.ndarray, z: np.ndarray, sign: bool) -> Similarity:
        return cls(TWO_POINT, np.stack([x, z]), 0.0, sign)

    def step(self, values: np.ndarray, partitioned: bool = True) -> SimilarityStep:
        """Return the step that adds this similarity, times `values`, (1, n_scores) float64, to the scores."""
        return SimilarityStep(arrays_of([self]), self.sign, values)


def arrays_of(similarities: Sequence[Similarity]) -> SimilarityArrays:
    """Return several similarities as arrays."""
    return SimilarityArrays.of(
        np.array([s.kind for s in similarities], np.int8),
        np.array([s.anchors for s in similarities]),
        np.array([s.tau for s in similarities]),
    )


class SimilarityStep(NamedTuple):
    """Adds values[0] f(x), or values[0] sign f(x) if `sign`, to the scores; `values` is (1, n_scores) float64."""

    arrays: SimilarityArrays
    sign: bool
    values: np.ndarray

    def add(self, block: BlockRows, missing_bin: np.ndarray, partitioned: bool) -> None:
        sign = np.array([self.sign])
        similarity.add_similarities(block.values, *self.arrays, sign, self.values, 0, 1, block.scores)


class SimilaritySearch:
    """Searches for a round's similarity, in 3 passes over the rows and one more for each two-point similarity, at least one.

    Parameters
    ----------
    rows : Rows
    weighting : CodeWeights
    sign : bool
        Whether only the sign of the similarities counts.
    steps : Steps
    """

    def __init__(self, rows: Rows, weighting: CodeWeights, sign: bool, steps: Steps):
        self.rows, self.weighting, self.sign, self.steps = rows, weighting, sign, steps
        n = weighting.n_columns
        self.shifts = np.array([rows.shift_of(ColumnSums(weighting, k)) for k in range(n)])
        self.units = np.exp(self.shifts - self.shifts.max())
        self.loss = np.inf
        self.best: tuple[Similarity, np.ndarray] | None = None

    def __call__(self, two_point: bool, max_candidates: int | None) -> tuple[Similarity, np.ndarray] | None:
        """Return the similarity of least loss and each class's step, (K,) float64, or None if no similarity lowers the loss."""
        products, N, P = self._correlations()
        self.loss = float((self.units * (N + P)).sum()) * (1 - NOISE)
        # 0. The constant.
        self._consider(Similarity.constant(self.rows.n_features, self.sign), _sums_of_constant(N, P))
        # 1-2. The binary classes, and the row to isolate.
        isolated = self._isolated(products, N, P)
        if isolated is None:
            return None
        # 3. Its distances to all other rows.
        _, (less_nearest,), following = self.rows.reduce(isolated, _ROOT)
        tau = -less_nearest / 2
        if not 0 < tau < np.inf:
            return self.best  # all rows have the same coordinates
        anchor = isolated.anchor
        trials = [Similarity.one_point(anchor, tau, self.sign)]
        # 4-6. Two-point similarities with the nearest remaining row of the other class. The first pass evaluates the one-point
        # similarity too.
        following = following if two_point else None
        number = 0
        while trials or following:
            pair = [Similarity.two_point(anchor, following.content[0], self.sign)] if following else []
            number += len(pair)
            following = self._try([*trials, *pair], number)
            trials = []
            if number == max_candidates:
                break
        return self.best

    def _correlations(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sum_n u_n u_n', (K, K), and N and P, (K,), all float64 with each column in its own unit."""
        sums, _, _ = self.rows.reduce(Correlations(self.weighting, self.shifts), _ROOT)
        lower, (N, P) = np.tril(sums[:-2]), sums[-2:]
        return lower + np.tril(lower, -1).T, N, P

    def _isolated(self, products: np.ndarray, N: np.ndarray, P: np.ndarray) -> Surroundings | None:
        """Return the reduction that measures the surroundings of the row to isolate; None if there are no rows."""
        # Eq. 7: u_n = w_n / sqrt(sum_n w_n), class by class. The factors N and sqrt(lambda) do not change the sign of v.
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(N + P > 0, np.sqrt(self.units / (N + P)), 0.0)
        _, vectors = np.linalg.eigh(products * np.outer(scale, scale))
        question = Isolation(self.weighting, np.stack([N, P]), self.units, vectors[:, -1] * scale)
        _, (highest, lowest), row = self.rows.reduce(question, _ROOT)
        # An eigenvector's sign is arbitrary: make the entry of v of largest absolute value positive.
        orientation = 1.0 if highest >= lowest else -1.0
        if row is None:
            return None
        anchor, v = row.content
        tolerance = ZERO * max(highest, lowest)
        return Surroundings(anchor, orientation, tolerance, orientation * v >= -tolerance)

    def _try(self, similarities: list[Similarity], number: int) -> Best | None:
        """Evaluate the similarities; return the nearest row of the other binary class that the last one leaves."""
        found = arrays_of(similarities)
        last = similarities[-1]
        if last.kind == TWO_POINT:
            at_second = np.empty(1)
            t = len(similarities) - 1
            similarity.evaluate(last.anchors[1:], np.zeros(1, np.int32), *found, t, at_second)
            # 6. f_ij(x) <= f_ij(x_j) / 2
            question = Trials(self.weighting, found, self.sign, number, float(at_second[0]) / 2)
        else:
            question = Trials(self.weighting, found, self.sign)
        sums, _, following = self.rows.reduce(question, _ROOT)
        for one, S in zip(similarities, sums, strict=True):
            self._consider(one, S)
        return following

    def _consider(self, found: Similarity, S: np.ndarray) -> None:
        """Keep the similarity if its loss is the least so far; S is as in `Steps`."""
        a, losses = self.steps(S)
        loss = float((self.units * losses).sum())
        if loss < self.loss:
            self.loss, self.best = loss, (found, a)


def largest_sums(n_classes: int) -> int:
    """Return the most numbers in one reduction of a search: the correlations, or the sums of two similarities."""
    return n_classes * max(n_classes + 2, 2 * PIECES * TERMS)


def _sums_of_constant(N: np.ndarray, P: np.ndarray) -> np.ndarray:
    """Return the sums of `Trials` for f = 1: N is at the upper end of the last piece, P at the lower end of the first."""
    S = np.zeros((PIECES, len(N), TERMS))
    S[0] = P[:, None] * (-1.0) ** np.arange(TERMS)
    S[-1] = N[:, None]
    return S
