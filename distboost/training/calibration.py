"""The calibration of a training run: by its evaluation rows, by rows that a second training leaves out, or by its own.

The second training learns from some of the rows, chosen by a hash of their content, and the temperature is fitted on others. With
fewer rows, scores grow faster. But the *relative* temperature hardly depends on the number of rows: T divided by the spread, the
mean distance of a row's scores from its largest. So T is the relative temperature times the spread of the whole ensemble. Scores
of rows that an ensemble has learned from are further apart than others, and the whole ensemble has learned from all rows. So the
spread is that of rows learned from, in both. The scales and shifts of the classes (`evaluation.vector`) remain: they are relative
to T.

Equal rows are left out together, so the second training is judged by rows of which it has seen none. Where rows repeat, the
model has seen most rows that it will predict, and its own rows tell part of the temperature (`Repetition`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.axes import spans
from distboost.data.contents import Contents, values_of
from distboost.data.profile import Profile
from distboost.evaluation.calibrate import PIECE_SCORES, ScoreSums, fit_calibration, sums_of_scores
from distboost.evaluation.temperature import HIGHEST, LOWEST, TemperatureSums, fit_temperature, moments
from distboost.model.calibration import Calibration
from distboost.model.ensemble import Ensemble
from distboost.model.learned import Learned
from distboost.rows.block import BlockRows
from distboost.rows.interface import Rows
from distboost.rows.messages import Step
from distboost.rows.reduced import Reduced
from distboost.rows.scales import Scale
from distboost.rows.sums import Reduction
from distboost.threads import Threads

# From so many rows on, a second training has fewer rows and rounds.
MANY_ROWS = 100_000
FEW_ROWS = 10_000
CROSS_FITTED = 1_000  # rows: below, several runs leave out different rows
FOLDS = 5
FEWEST_ROUNDS = 10
MOST_JUDGED = 4_000  # contents, of many rows
FEWEST_JUDGED = 12  # contents; with fewer, rows that repeat often are not left out
OFTEN = 8

# A content repeated so many times more tells as much by its own rows as by those left out.
EQUAL_REPEATS = 20
LEAST_MIXED = 0.01  # of the contents have several labels, if repeated rows tell anything

MOST_CONTENTS = 2_000
MOST_LOGITS = 2**22  # of the contents with all of their labels

LEARNED, LEFT_OUT = 0, -1  # the sets of a second training

# Each doubling of the rounds changes the logarithm of the relative temperature by this factor of the last change.
DECAY = 0.75


class Extent(NamedTuple):
    """The extent of a second training: shares of the rows to learn from and to leave out, and the number of rounds.

    Of few rows, there are several runs that leave out different rows (`cross_fitting`).
    """

    learn: float
    judge: float
    n_rounds: int
    n_trainings: int = 1

    @classmethod
    def of(cls, weight: float, n_rounds: int, multiplicity: float = 1.0, divisible: bool = True) -> Extent:
        """Return the extent for rows of this total weight, and an ensemble of so many rounds.

        `divisible` says whether there may be several runs.

        >>> Extent.of(1000, 100), Extent.of(20_000, 100)
        (Extent(learn=0.8, judge=0.2, n_rounds=100, n_trainings=1), Extent(learn=0.9, judge=0.1, n_rounds=100, n_trainings=1))
        >>> Extent.of(10**6, 100), Extent.of(10**6, 100, multiplicity=5).judge
        (Extent(learn=0.3, judge=0.004, n_rounds=17, n_trainings=1), 0.02)
        >>> Extent.of(500, 100), Extent.of(500, 10)
        (Extent(learn=0.8, judge=0.2, n_rounds=20, n_trainings=5), Extent(learn=0.8, judge=0.2, n_rounds=10, n_trainings=1))
        """
        if weight < CROSS_FITTED:
            n_trainings = min(max(n_rounds // FEWEST_ROUNDS, 1), FOLDS) if divisible else 1
            return cls(1 - 1 / FOLDS, 1 / FOLDS, n_rounds // n_trainings, n_trainings)
        if weight < MANY_ROWS:
            left_out = 0.2 if weight < FEW_ROWS else 0.1
            return cls(1 - left_out, left_out, n_rounds)
        fewer = min(max(-(-n_rounds // 6), FEWEST_ROUNDS), n_rounds)
        return cls(0.3, min(0.1, MOST_JUDGED * multiplicity / weight), fewer)


class Repetition(NamedTuple):
    """How often rows repeat: their total weight, the mean weight of a content, and the share of contents with several labels."""

    weight: float
    multiplicity: float
    mixed: float

    @classmethod
    def of(cls, contents: Contents, weight: float, unit: float | None) -> Repetition:
        """Return the repetition in rows of a total weight, of which `contents` are a sample.

        `unit` is the weight that counts as one row; None: each row does, whatever its weight.
        """
        total = contents.n_rows.sum() if unit is None else contents.weights.sum() / unit
        return cls(weight, float(total / contents.is_first.sum()), contents.mixed)

    def share_left_out(self, extent: Extent) -> float:
        """Return the share of the rows left out in the logarithm of the temperature. The other part is that of all rows.

        Copies of a row without another label may be mere copies, and whole weights need not be copies at all. Then the rows of a
        training tell nothing about others.

        >>> Repetition(20_000, 1.0, 0.0).share_left_out(Extent.of(20_000, 100))
        1.0
        >>> Repetition(20_000, 21.0, 0.4).share_left_out(Extent.of(20_000, 100))
        0.5
        >>> Repetition(20_000, 1000.0, 0.0).share_left_out(Extent.of(20_000, 100, 1000.0))
        0.0
        """
        if self.multiplicity >= OFTEN and self.weight / self.multiplicity * extent.judge < FEWEST_JUDGED:
            return 0.0
        if self.mixed < LEAST_MIXED:
            return 1.0
        return EQUAL_REPEATS / (EQUAL_REPEATS + self.multiplicity - 1)


@dataclass(frozen=True)
class EvaluationSums(Reduction):
    """A reduction over evaluation rows: the sums from which the calibration follows.

    Attributes
    ----------
    decoded : callable
        decoded(G) returns the scores F, (n, n_classes), of the ensemble's own, (n, n_scores). It travels to workers, which need
        not know the algorithm.
    wanted : ScoreSums
    steps : tuple of Step, or None
        The steps that make the scores, from zero. None: the scores are those of the training.
    missing_bin : ndarray of shape (n_features,), int64
    """

    decoded: Callable[[np.ndarray], np.ndarray]
    wanted: ScoreSums
    steps: tuple[Step, ...] | None
    missing_bin: np.ndarray

    def shift(self, shifts: Sequence[float]) -> float:
        """Return 0: the sums are exact at any scale."""
        return 0.0

    def shape(self, n_leaves: int, n_classes: int) -> tuple[int, ...]:
        """Return the shape of the sums."""
        return (self.wanted.size(n_classes),)

    def accumulate(self, block: BlockRows, leaves: np.ndarray, scale: Scale, into: Reduced) -> Reduced:
        """Add the sums over a block."""
        if self.steps is not None:
            block = block.at_zero()
            for step in self.steps:
                step.add(block, self.missing_bin, partitioned=False)
        for a, b in spans(0, len(block.present), max(PIECE_SCORES // block.n_classes, 1)):
            rows = block.present[a:b]
            F = self.decoded(block.scores[rows].astype(np.float64))
            into.sums[:] += self.wanted(F, block.labels[rows], block.weights[rows])
        return into


def calibrated(method: str, algorithm: Algorithm, rows: Rows, learned: Learned, profile: Profile) -> Learned:
    """Return what was learned, with its calibration by a method and the evaluation rows."""
    # Early stopping may have dropped rounds. The scores of corrective algorithms depend, in their last digits, on whether the
    # training was resumed.
    current = len(learned.ensemble) == learned.n_rounds and not algorithm.corrective
    judged = _Judged.of(algorithm, rows, None if current else learned.ensemble, profile)
    return learned._replace(calibration=judged.calibration(method))


def extrapolated(
    method: str, algorithm: Algorithm, rows: Rows, part: Ensemble, whole: Ensemble, profile: Profile
) -> Calibration:
    """Return the calibration of the `whole` ensemble, from one that has learned from a `part` of the rows and left out others.

    The training rows are those that it has learned from, and the evaluation rows those left out. The scores are those of the
    part. It may have fewer rounds, too. Then its relative temperature after half of them says how it would change.
    """
    half = part.copy(len(part) // 2)
    now, earlier, later = (_Judged.of(algorithm, rows, e, profile) for e in (None, half, whole))
    found, spread, last_spread = now.calibration(method), now.spread(LEARNED), later.spread(LEFT_OUT)
    if not min(spread, last_spread) > 0:  # the scores of one of them are all equal
        return found
    relative = found.temperature / spread
    half_spread = earlier.spread(LEARNED) if len(part) < len(whole) else 0.0
    if half_spread > 0:
        change = relative / (earlier.temperature() / half_spread)
        relative *= growth(change, math.log2(len(whole) / len(part)))
    return replace(found, temperature=min(max(relative * last_spread, LOWEST), HIGHEST))


def growth(change: float, doublings: float) -> float:
    """Return the factor by which the relative temperature changes in so many doublings of the rounds, from that of the last one.

    >>> round(growth(0.5, 1), 3), growth(0.5, 0)
    (0.595, 1.0)
    """
    return float(change ** (DECAY * (1 - DECAY**doublings) / (1 - DECAY)))


def of_contents(
    method: str,
    algorithm: Algorithm,
    contents: Contents,
    ensemble: Ensemble,
    profile: Profile,
    threads: Threads,
) -> Calibration:
    """Return the calibration by a method of an ensemble by a sample of the rows that it has learned from."""
    first = contents.is_first
    X = values_of(contents.selected(first), profile.edges, profile.categories)
    F = algorithm.decoded(ensemble.scores(X, threads))
    entries, weights = np.cumsum(first) - 1, contents.weights

    def sums(wanted: ScoreSums) -> np.ndarray:
        return sums_of_scores(wanted, F, contents.labels, weights, entries)

    return fit_calibration(method, sums, F.shape[1])


def most_contents(n_classes: int) -> int:
    """Return the number of contents in a sample of the training rows: their scores take bounded time.

    >>> most_contents(10), most_contents(1000)
    (2000, 50)
    """
    return min(MOST_CONTENTS, max(MOST_LOGITS // n_classes**2, 50))


def blended(left_out: Calibration, own: Calibration, share: float) -> Calibration:
    """Return a calibration between two, in the logarithm of the temperature; `share` is that of the first."""

    def between(one: Sequence[float] | None, other: Sequence[float] | None) -> tuple[float, ...] | None:
        if one is None or other is None:
            return None
        return tuple(share * a + (1 - share) * b for a, b in zip(one, other, strict=True))

    return Calibration(
        own.method,
        left_out.temperature**share * own.temperature ** (1 - share),
        between(left_out.scales, own.scales),
        between(left_out.shifts, own.shifts),
    )


class _Judged(NamedTuple):
    """The evaluation rows, with the scores of an ensemble."""

    rows: Rows
    n_classes: int
    reduction: EvaluationSums

    @classmethod
    def of(cls, algorithm: Algorithm, rows: Rows, ensemble: Ensemble | None, profile: Profile) -> _Judged:
        """Judge an ensemble; None: the one whose scores are current."""
        steps = None if ensemble is None else tuple(ensemble.steps(range(len(ensemble)), profile.edges))
        missing_bin = rows.n_bins.astype(np.int64)
        reduction = EvaluationSums(_decoder(algorithm), TemperatureSums(()), steps, missing_bin)
        return cls(rows, algorithm.n_classes, reduction)

    def calibration(self, method: str) -> Calibration:
        """Return the calibration of the ensemble by a method."""
        return fit_calibration(method, self._sums, self.n_classes)

    def temperature(self) -> float:
        """Return the temperature of the ensemble."""
        return fit_temperature(self._sums)[0]

    def spread(self, number: int) -> float:
        """Return the mean distance of a row's scores from its largest, in a set of rows."""
        return moments(partial(self._sums, number=number)).spread

    def _sums(self, wanted: ScoreSums, number: int = LEFT_OUT) -> np.ndarray:
        return self.rows.evaluated(replace(self.reduction, wanted=wanted), number).sums


def _decoder(algorithm: Algorithm) -> Callable[[np.ndarray], np.ndarray]:
    """Return `algorithm.decoded`, without the algorithm if it has no codes."""
    return _same if type(algorithm).decoded is Algorithm.decoded else algorithm.decoded


def _same(G: np.ndarray) -> np.ndarray:
    return G
