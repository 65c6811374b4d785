"""What a block of rows adds to the sums that the metrics follow from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from distboost.data.checks import as_numbers, check_finite, encode_labels, load_labels, load_weights
from distboost.data.memory import returned_when_freed
from distboost.data.source import spans
from distboost.data.sparse import rows_together
from distboost.errors import DataError
from distboost.kernels.elementary import log_losses
from distboost.model.ensemble import slices
from distboost.prediction.predictor import StagedScores
from distboost.prediction.streamed import loaded
from distboost.rows.exact import exact_sums, real
from distboost.runtime.cluster.cancelled import check_wanted, ends_if_unwanted

CELL_BITS = 5  # cells of each octave: 2^5
MOST_BINS = 32  # on either side of 0
SMALLEST = 2.0**-16  # bins are chosen as if some margin were this large

_SHIFT = 52 - CELL_BITS
_HALF = 1 << (11 + CELL_BITS)  # the cells of margins below 0, then those of the others


def margin_sums(F: np.ndarray, codes: np.ndarray, w: np.ndarray) -> csr_array:
    """Return the weight of the rows in each cell, from scores F (n, n_classes) and the class index of each row, (n,).

    The margin of a row is the score of its class, less the largest score of the others: below 0, the prediction is wrong.
    Nothing is known of the scores in advance. So rows are counted in cells that divide every octave of |margin| evenly, and
    `histogram` joins the cells to bins of equal width once the largest margin is known. The width is a power of two, so no cell
    lies in two bins.
    """
    rows = np.arange(len(F))
    others = F.copy()
    others[rows, codes] = -np.inf
    margins = F[rows, codes] - others.max(axis=1)
    size = (
        np.abs(margins).view(np.int64) >> _SHIFT
    )  # the bits of positive numbers are in the order of the numbers
    return exact_sums(np.where(margins < 0, _HALF - 1 - size, _HALF + size), w, 2 * _HALF)


def histogram(sums: csr_array) -> dict[str, np.ndarray]:
    """Return the edges of bins, (n_bins + 1,), ascending, and the weight of the rows in each, (n_bins,)."""
    cells = real(sums)
    size = np.where(cells.col < _HALF, _HALF - 1 - cells.col, cells.col - _HALF).astype(np.int64)
    largest = ((size.max() + 1) << _SHIFT).view(np.float64)
    width = 2.0 ** np.ceil(np.log2(max(largest, SMALLEST) / MOST_BINS))
    steps = np.floor((size << _SHIFT).view(np.float64) / width).astype(np.int64)
    bins = np.where(cells.col < _HALF, -1 - steps, steps)
    first = min(bins.min(), 0)
    weight = np.bincount(bins - first, cells.data)
    return {"edges": width * np.arange(first, first + len(weight) + 1), "weight": weight}


MOST_ROWS = 20


@dataclass(frozen=True)
class WorstRows:
    """The rows whose own class has the lowest probability, at most MOST_ROWS of them; of equal ones, the first rows.

    `+` returns the worst rows of both, so that the result depends neither on blocks nor on their order.

    Attributes
    ----------
    row : ndarray of shape (n,), int64
        Global row numbers.
    true, predicted : ndarray of shape (n,), int64
        Class indices.
    probability, confidence : ndarray of shape (n,), float64
        The probabilities of the true class and of the predicted one.
    """

    row: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    probability: np.ndarray
    confidence: np.ndarray

    @classmethod
    def of(
        cls, P: np.ndarray, codes: np.ndarray, predicted: np.ndarray, w: np.ndarray, first: int
    ) -> WorstRows:
        """Return the worst of the rows with class probabilities P, (n, n_classes), whose first has the number `first`."""
        rows = np.flatnonzero(w > 0)
        own = P[rows, codes[rows]]
        if len(rows) > MOST_ROWS:  # the order of all others does not matter
            few = own <= np.partition(own, MOST_ROWS - 1)[MOST_ROWS - 1]
            rows, own = rows[few], own[few]
        chosen = predicted[rows]
        return cls(first + rows, codes[rows], chosen, own, P[rows, chosen])._worst()

    def __add__(self, other: WorstRows) -> WorstRows:
        return WorstRows(
            *(np.concatenate([mine, theirs]) for mine, theirs in zip(self._all(), other._all(), strict=True))
        )._worst()

    def _worst(self) -> WorstRows:
        kept = np.lexsort((self.row, self.probability))[:MOST_ROWS]
        return WorstRows(*(values[kept] for values in self._all()))

    def _all(self) -> tuple[np.ndarray, ...]:
        return self.row, self.true, self.predicted, self.probability, self.confidence

    def by_name(self, classes: np.ndarray) -> dict[str, np.ndarray]:
        """Return the attributes by name, with labels in place of class indices."""
        return {**vars(self), "true": classes[self.true], "predicted": classes[self.predicted]}


# Groups of sums: metrics say which they need.
DECISIONS, PROBABILITIES, RANKING = "decisions", "probabilities", "ranking"
MARGINS, WORST, UNCALIBRATED = "margins", "worst", "uncalibrated"
SCORES, BY_ROUND = "scores", "by_round"  # not of a metric

PIECE_ROWS = 2**16  # the most rows that are judged together
PIECE_NUMBERS = 2**18  # the most probabilities of these rows
CALIBRATION_BINS = 15
MOST_K = 10  # the largest k of the top-k accuracy
OCTAVES = 64  # of probabilities near 0, and of those near 1: smaller distances count as 2^-65
RANKING_CELLS = 2**19  # of the histograms of all classes together
MOST_CELL_BITS = 10

# The squares of weights are added too, and must be neither 0 nor infinite.
LARGEST_WEIGHT = 2.0**400

OfScores = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

Sums = dict[str, Any]  # by name, what `+` adds up: exact sums, or the worst rows


class Places(NamedTuple):
    """The names of the arrays in messages."""

    x: str
    y: str
    weights: str


class Judge(NamedTuple):
    """What workers need to judge rows.

    Attributes
    ----------
    scores : callable
        scores(X) returns the scores F, (n, K) float64, of raw rows, in this thread.
    probabilities : callable
        probabilities(F) returns class probabilities, (n, K) float64.
    classes : ndarray of shape (K,)
    groups : frozenset of str
        The groups of sums that are wanted.
    strict : bool
        Whether a label that is none of the classes is an error. Otherwise it is counted as a mistake; then DECISIONS are the only
        group.
    places : Places
    uncalibrated : callable or None
        For a calibrated model: uncalibrated(F) returns the probabilities without calibration.
    of_scores : callable or None
        of_scores(F, codes, weights) returns an array of sums. If there is one, these are wanted, and no others.
    staged : StagedScores or None
        The rounds after which log-loss and error are wanted besides.
    """

    scores: Callable[[np.ndarray], np.ndarray]
    probabilities: Callable[[np.ndarray], np.ndarray]
    classes: np.ndarray
    groups: frozenset[str]
    strict: bool
    places: Places
    uncalibrated: Callable[[np.ndarray], np.ndarray] | None = None
    of_scores: OfScores | None = None
    staged: StagedScores | None = None

    def codes(self, labels: np.ndarray, weights: np.ndarray, first: int) -> np.ndarray:
        """Return the class index of each label, (n,) int64; K for a label that the model does not know."""
        found = class_codes(labels, self.classes, self.places.y)
        if not self.strict:
            return found
        return encode_labels(labels, weights, self.classes, self.places.y, first).astype(np.int64)

    def sums(self, F: np.ndarray, codes: np.ndarray, weights: np.ndarray, first: int) -> Sums:
        """Return the sums over rows with the scores F, the first of which has the number `first`."""
        if self.of_scores is not None:
            return {SCORES: self.of_scores(F, codes, weights)}
        predicted = np.argmax(F, axis=1)
        found = _decisions(codes, predicted, weights, F.shape[1])
        if MARGINS in self.groups:
            found["margins"] = margin_sums(F, codes, weights)
        if UNCALIBRATED in self.groups and self.uncalibrated is not None:
            found["uncalibrated"] = _reliability(self.uncalibrated(F), codes, predicted, weights)
        if self.groups - {DECISIONS, MARGINS, UNCALIBRATED}:
            P = self.probabilities(F)
            if WORST in self.groups:
                found["worst"] = WorstRows.of(P, codes, predicted, weights, first)
            if PROBABILITIES in self.groups:
                found |= _probabilities(P, codes, predicted, weights)
            if RANKING in self.groups:
                found |= _ranking(P, codes, weights)
        return found

    def by_round(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> Sums:
        """Return the sums of log-losses, and then those of mistakes, after each round that is wanted."""
        if self.staged is None:
            return {}
        n_rounds, total = len(self.staged.rounds), Sums()
        for rows in slices(len(X)):
            for number, F in enumerate(self.staged(X[rows])):
                found = _losses(self.probabilities(F), codes[rows]), np.argmax(F, axis=1) != codes[rows]
                cells = np.repeat([number, n_rounds + number], len(F))
                sums = exact_sums(cells, np.concatenate([weights[rows] * one for one in found]), 2 * n_rounds)
                total = merged(total, {BY_ROUND: sums})
        return total


@ends_if_unwanted
@returned_when_freed()
def judge_part(judge: Judge, x: Any, y: Any, weights: Any, first: int) -> Sums:
    """Return the sums over the parts of features, labels and weights (or None) whose first row has the number `first`."""
    labels = load_labels(y, judge.places.y, first)
    w = load_weights(weights, len(labels), judge.places.weights, first)
    _check_size(w, judge.places.weights, first)
    codes = judge.codes(labels, w, first)
    X, total = loaded(x), Sums()
    step = max(min(rows_together(X, PIECE_ROWS), PIECE_NUMBERS // len(judge.classes)), 1)
    for a, b in spans(0, len(X), step):
        check_wanted()
        rows = as_numbers(X[a:b], judge.places.x)
        check_finite(rows, judge.places.x, first + a)
        found = judge.sums(judge.scores(rows), codes[a:b], w[a:b], first + a)
        total = merged(total, found | judge.by_round(rows, codes[a:b], w[a:b]))
    return total


def merged(a: Sums, b: Sums) -> Sums:
    """Return the sums over the rows of both. No rows have no sums."""
    return {name: a[name] + b[name] for name in b} if a else b


def class_codes(labels: np.ndarray, classes: np.ndarray, place: str) -> np.ndarray:
    """The class index of each label, (n,); n_classes for a label that the model does not know."""
    if labels.dtype.kind in "US" and classes.dtype.kind not in "USO":
        raise DataError(
            f"{place} has text labels, but the classes of the model are numbers ({classes[0]}, ...).",
            remedy="Pass numbers.",
            where=place,
        )
    try:
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError as error:
        raise DataError(
            f"{place} has labels of another type than the classes of the model: {error}.",
            remedy="Pass labels of the same type.",
            where=place,
        ) from error
    return np.where(classes[index] == labels, index, len(classes))


def _check_size(w: np.ndarray, place: str, first: int) -> None:
    bad = (w > LARGEST_WEIGHT) | ((w > 0) & (w < 1 / LARGEST_WEIGHT))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{place} is {w[row]} in row {first + row}.",
            remedy="Pass weights of 0, or between 1e-120 and 1e120: scale all of them.",
            where=place,
        )


def _decisions(codes: np.ndarray, predicted: np.ndarray, w: np.ndarray, n_classes: int) -> Sums:
    one_cell = np.zeros(len(w), np.int64)
    return {
        "rows": exact_sums(one_cell, (w > 0).astype(np.float64), 1),
        "squares": exact_sums(one_cell, w * w, 1),
        "confusion": exact_sums(codes * n_classes + predicted, w, (n_classes + 1) * n_classes),
    }


def _probabilities(P: np.ndarray, codes: np.ndarray, predicted: np.ndarray, w: np.ndarray) -> Sums:
    n, n_classes = P.shape
    rows = np.arange(n)
    own = P[rows, codes]
    distances = P.copy()
    distances[rows, codes] -= 1
    brier = np.square(distances).sum(axis=1) / (2 if n_classes == 2 else 1)
    # Of equal probabilities, those of later classes rank first, as in scikit-learn's top_k_accuracy_score.
    ahead = (own[:, None] < P) | ((own[:, None] == P) & (np.arange(n_classes) > codes[:, None]))
    rank = np.minimum(np.count_nonzero(ahead, axis=1), MOST_K)
    return {
        "log_loss": _moments(_losses(P, codes), w),
        "brier": _moments(brier, w),
        "ranks": exact_sums(rank, w, MOST_K + 1),
        "calibration": _reliability(P, codes, predicted, w),
    }


def _losses(P: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The log-loss of each row, as in scikit-learn's log_loss."""
    eps = np.finfo(P.dtype).eps
    return log_losses(np.clip(P[np.arange(len(P)), codes], eps, 1 - eps))


def _reliability(P: np.ndarray, codes: np.ndarray, predicted: np.ndarray, w: np.ndarray) -> csr_array:
    """The weight, the weighted confidence and the weight of right predictions, by bins of confidence."""
    confidence = P[np.arange(len(P)), predicted]
    bins = np.clip(np.ceil(confidence * CALIBRATION_BINS).astype(np.int64) - 1, 0, CALIBRATION_BINS - 1)
    cells = np.concatenate([kind * CALIBRATION_BINS + bins for kind in range(3)])
    return exact_sums(
        cells, np.concatenate([w, w * confidence, w * (predicted == codes)]), 3 * CALIBRATION_BINS
    )


def _moments(losses: np.ndarray, w: np.ndarray) -> csr_array:
    """The sums of w l, w^2 l and w^2 l^2: a mean and its standard error follow from them."""
    weighted = w * losses
    cells = np.repeat(np.arange(3), len(w))
    return exact_sums(cells, np.concatenate([weighted, w * weighted, weighted * weighted]), 3)


def _ranking(P: np.ndarray, codes: np.ndarray, w: np.ndarray) -> Sums:
    """Histograms of each class's probability: over all rows, and over those of the class."""
    n, n_classes = P.shape
    n_bins = score_bins(n_classes)
    cells = bins_of(P, cell_bits(n_classes)) + np.arange(n_classes) * n_bins
    return {
        "all": exact_sums(cells, w, n_classes * n_bins),
        "own": exact_sums(cells[np.arange(n), codes], w, n_classes * n_bins),
    }


def cell_bits(n_classes: int) -> int:
    """Return the b for which each octave of probabilities has 2^b bins.

    >>> cell_bits(2), cell_bits(26), cell_bits(300)
    (10, 7, 3)
    """
    cells = RANKING_CELLS // (2 * OCTAVES * n_classes)
    return min(max(cells.bit_length() - 1, 0), MOST_CELL_BITS)


def score_bins(n_classes: int) -> int:
    """Return the number of bins of a class."""
    return 2 * OCTAVES << cell_bits(n_classes)


def bins_of(P: np.ndarray, bits: int) -> np.ndarray:
    """Return the bin of each probability, int64. Bins follow the order of probabilities.

    Boosting pushes probabilities towards 0 and 1, so bins are fine there: they divide each octave of p, or of 1 - p, evenly.
    """
    n_half = OCTAVES << bits
    lowest = (1022 - OCTAVES) << bits  # the exponent of numbers from 1/2 to 1 is stored as 1022

    def nearness(p: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.clip((p.view(np.int64) >> (52 - bits)) - lowest, 0, n_half - 1)
        return found

    bins: np.ndarray = np.where(P < 0.5, nearness(P), 2 * n_half - 1 - nearness(1 - P))
    return bins
