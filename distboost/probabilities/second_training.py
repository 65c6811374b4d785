"""The default calibration: a second run learns from some of the rows, and the temperature is fitted on the others.

With fewer rows, scores grow faster. But the *relative* temperature hardly depends on the number of rows: T divided by the spread,
the mean distance of a row's scores from its largest. So T is the relative temperature times the spread of the whole ensemble.
Scores of rows that an ensemble has learned from are further apart than others, and the whole ensemble has learned from all rows.
So both spreads are those of rows learned from. The second run has fewer rounds, too: its relative temperature after half of them
says how it would change. The scales and shifts of the classes (`vector`) are relative to T.

With few rows, three runs leave out different rows, and all of these tell one relative temperature.

The rows left out are judged in a sample of the distinct rows (`contents`). Equal rows are left out together, so the second run is
judged by rows of which it has seen none. Where rows repeat, the model has seen most rows that it will predict, and its own rows
tell part of the temperature (`Repetition`).
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from distboost.data.division import LEARN, ByContent, by_content
from distboost.data.row_weights import WeightRule
from distboost.data.source import spans
from distboost.errors import DataError, LimitError
from distboost.io.phases import SILENT, Phase, Phases
from distboost.model.ensemble import Ensemble
from distboost.model.learned import NO_WATCH, Calibration, Learned, Progress
from distboost.probabilities.contents import Contents, contents_of, values_of
from distboost.probabilities.methods import fit_calibration, sums_of_scores
from distboost.probabilities.temperature import HIGHEST, LOWEST, fit_temperature, moments
from distboost.rows.messages import RowCounts
from distboost.threads import Threads
from distboost.training.loop import Callback
from distboost.training.training import Training
from distboost.warn import warn_user

log = logging.getLogger("distboost")

# From so many rows on, a second run has fewer rows and rounds; with so few, several runs leave out different rows.
MANY_ROWS, FEW_ROWS = 100_000, 1_000
RUNS = 3
FEWEST_ROUNDS = 10
FEWEST_JUDGED = 12  # contents; with fewer, rows that repeat often are not left out
OFTEN = 8

# A content repeated so many times more tells as much by its own rows as by those left out.
EQUAL_REPEATS = 20
LEAST_MIXED = 0.01  # of the contents have several labels, if repeated rows tell anything

# The sample of the rows: this bounds the time and the memory that its scores and its values take.
MOST_ENTRIES, MOST_SCORES, MOST_VALUES = 8_000, 2**23, 2**25
PIECE_VALUES = 2**20  # that are in memory at a time

# Each doubling of the rounds changes the logarithm of the relative temperature by this factor of the last change.
DECAY = 0.75


class Extent(NamedTuple):
    """The extent of a second run: the share of the rows to learn from, the number of rounds, and how many such runs there are."""

    learn: float
    n_rounds: int
    n_runs: int = 1

    @classmethod
    def of(cls, weight: float, n_rounds: int) -> Extent:
        """Return the extent for rows of this total weight, and an ensemble of so many rounds.

        >>> Extent.of(20_000, 100), Extent.of(10**6, 100)
        (Extent(learn=0.67, n_rounds=34, n_runs=1), Extent(learn=0.3, n_rounds=17, n_runs=1))
        >>> Extent.of(500, 100), Extent.of(500, 20)
        (Extent(learn=0.67, n_rounds=34, n_runs=3), Extent(learn=0.67, n_rounds=10, n_runs=2))
        """
        learn, part = (0.3, 6) if weight >= MANY_ROWS else (0.67, 3)
        n_runs = min(max(n_rounds // FEWEST_ROUNDS, 1), RUNS) if weight < FEW_ROWS else 1
        return cls(learn, min(max(-(-n_rounds // part), FEWEST_ROUNDS), n_rounds), n_runs)


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

    def share_left_out(self, learn: float) -> float:
        """Return the share of the rows left out in the logarithm of the temperature. The other part is that of all rows.

        Copies of a row without another label may be mere copies, and whole weights need not be copies at all. Then the rows that
        a run has learned from tell nothing about others.

        >>> Repetition(20_000, 1.0, 0.0).share_left_out(0.5)
        1.0
        >>> Repetition(20_000, 21.0, 0.4).share_left_out(0.5)
        0.5
        >>> Repetition(20_000, 1000.0, 0.0).share_left_out(0.5)
        0.0
        """
        if self.multiplicity >= OFTEN and self.weight / self.multiplicity * (1 - learn) < FEWEST_JUDGED:
            return 0.0
        if self.mixed < LEAST_MIXED:
            return 1.0
        return EQUAL_REPEATS / (EQUAL_REPEATS + self.multiplicity - 1)


class Shown(NamedTuple):
    """What second runs have shown, whatever the ensemble of the whole run is.

    Attributes
    ----------
    contents : Contents
        A sample of the training rows.
    repetition : Repetition
    extent : Extent
    left_out : list of LeftOut
        Of the runs that have left out rows of the sample.
    """

    contents: Contents
    repetition: Repetition
    extent: Extent
    left_out: list[LeftOut]


class LeftOut(NamedTuple):
    """Rows left out of a second run, with their scores, (n, n_classes) float64.

    Attributes
    ----------
    contents : Contents
    now, earlier : ndarray
        Scores by the ensemble of the run, and by the first half of its rounds, relative to the spread of each in the rows that
        it has learned from.
    """

    contents: Contents
    now: np.ndarray
    earlier: np.ndarray


class SecondTraining:
    """The second run for the calibration of a training run. It runs beside the first one if that leaves cores idle.

    Otherwise, or if the first run has other rounds than expected, it runs afterwards.

    Parameters
    ----------
    training : Training
        The first run.
    beside : bool, default=False
        Whether there is memory to run beside the first one.
    """

    def __init__(self, training: Training, beside: bool = False):
        # With another algorithm: that of the run changes in its rounds.
        staging = training.staging
        self._training = replace(training, problem=staging.problem(training.problem.profile))
        self._running: Future[Shown] | None = None
        # The progress of a run beside, for after the first one.
        self._told: SimpleQueue[Phase | None] = SimpleQueue()
        phases, n_threads = Phases(self._told.put), staging.settings.n_threads
        self._beside = staging.runtime.beside(n_threads, phases) if beside else None
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(1, "distboost-calibrate")

    def __enter__(self) -> SecondTraining:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        if self._beside is not None:
            self._beside.close()

    def begin(self, counts: RowCounts) -> None:
        """Begin beside the first run, whose training rows have these counts."""
        if self._beside is None:
            return
        training = replace(self._training, staging=replace(self._training.staging, runtime=self._beside))
        n_rounds = training.schedule.n_rounds
        self._running = self._pool.submit(copy_context().run, _show, training, counts, n_rounds, self._ended)
        self._running.add_done_callback(lambda _: self._told.put(None))

    def calibrated(self, learned: Learned, counts: RowCounts) -> Learned:
        """Return what the first run has `learned` from rows of these counts, with a calibration; without if rows are too few.

        It is that of the rows which second runs leave out, and of rows that repeat. A row of whole weight w counts as w rows.
        """
        settings = self._training.staging.settings
        try:
            shown = self._shown(counts, len(learned.ensemble))
        except LimitError as error:  # steps that overshoot may diverge on some of the rows only
            if settings.calibration != "auto":
                raise
            warn_user(
                f"the probabilities are not calibrated: in the second training, {error.args[0].marked} Pass ``eval_set=(X, y)``, "
                "or ``calibration=None``."
            )
            return learned
        share = shown.repetition.share_left_out(shown.extent.learn)
        calibration = None
        if shown.left_out:
            calibration = _by_rows_left_out(self._training, learned.ensemble, shown)
        elif share > 0:
            if settings.calibration == "auto":
                return learned
            raise DataError(
                f"``calibration={settings.calibration!r}`` needs rows to leave out of a second training, but there are only "
                f"{counts.n_rows} rows.",
                remedy="Pass ``eval_set=(X, y)``, or ``calibration=None``.",
                value=settings.calibration,
            )
        if share < 1:
            (F,) = _scores(self._training, shown.contents, [learned.ensemble])
            own = _calibration(settings.calibration_method, shown.contents, F)
            calibration = own if calibration is None else blended(calibration, own, share)
        log.info("calibration: %s", calibration)
        return learned._replace(calibration=calibration)

    def _shown(self, counts: RowCounts, n_rounds: int) -> Shown:
        """Return what second runs show, for an ensemble of so many rounds."""
        if self._running is None or n_rounds != self._training.schedule.n_rounds:
            self._ended.set()
            return _show(self._training, counts, n_rounds, threading.Event())
        for phase in iter(self._told.get, None):
            self._training.staging.runtime.phases.tell(phase)
        return self._running.result()


def _show(training: Training, counts: RowCounts, n_rounds: int, ended: threading.Event) -> Shown:
    """Do second runs, until they are `ended`."""
    settings, profile, runtime = training.staging.settings, training.problem.profile, training.staging.runtime
    n_classes = len(profile.classes)
    whole = all(scan.whole_weights for scan in profile.class_scans) and settings.class_weight is None
    contents = contents_of(training.sets[0], most_entries(n_classes, profile.n_features), runtime)
    unit = WeightRule.of(np.ones(n_classes), profile.class_scans).scale if whole else None
    repetition = Repetition.of(contents, counts.n_rows if unit is None else counts.weight / unit, unit)
    extent = Extent.of(repetition.weight, n_rounds)
    if not repetition.share_left_out(extent.learn) > 0:
        return Shown(contents, repetition, extent, [])

    with runtime.phases.begin("calibrate", extent.n_runs * extent.n_rounds, "rounds") as advance:

        def tell(_: Progress) -> bool:
            advance(1)
            return ended.is_set()

        turns = [number / extent.n_runs for number in range(extent.n_runs)]
        found = [_left_out(training, contents, extent, turn, tell) for turn in turns]
    return Shown(contents, repetition, extent, [one for one in found if one is not None])


def _left_out(
    training: Training, contents: Contents, extent: Extent, turn: float, tell: Callback
) -> LeftOut | None:
    """Learn from a part of the rows, and return the others that are in the sample; None: there are none."""
    n_classes, runtime = len(training.problem.profile.classes), training.staging.runtime
    parts, side = by_content(training.sets[0], ByContent(extent.learn, 0.0, turn=turn), n_classes, runtime)
    is_seen = side(contents) == LEARN
    left_out, seen = contents.selected(~is_seen), contents.selected(is_seen)
    if not len(left_out.labels):
        return None
    log.info("calibration: %d rounds on %d rows", extent.n_rounds, parts.n_learn.sum())
    run = training.on_parts(
        [parts.learn],
        n_rounds=extent.n_rounds,
        patience=None,
        callbacks=[tell],
        watch=NO_WATCH,
        metrics=(),
        phases=SILENT,
    )
    part = run.rounds().learned.ensemble
    half = part.copy(len(part) // 2)
    spreads = [_spread(seen, F) or 1.0 for F in _scores(training, seen, [part, half])]
    now, earlier = _scores(training, left_out, [part, half])
    return LeftOut(left_out, now / spreads[0], earlier / spreads[1])


def _by_rows_left_out(training: Training, whole: Ensemble, shown: Shown) -> Calibration:
    """Return the calibration of the whole ensemble that follows from the rows left out of second runs."""
    scores = [(one.now, one.earlier, *_scores(training, one.contents, [whole])) for one in shown.left_out]
    labels, weights = (
        np.concatenate([getattr(one.contents, name) for one in shown.left_out])
        for name in ("labels", "weights")
    )
    F, *others = (np.concatenate(each) for each in zip(*scores, strict=True))
    now, earlier, later = (partial(sums_of_scores, F=each, codes=labels, w=weights) for each in (F, *others))
    calibration = fit_calibration(training.staging.settings.calibration_method, now, F.shape[1])
    if not min(moments(now).spread, moments(later).spread) > 0:  # the scores of one of them are all equal
        return calibration
    relative, n_rounds = calibration.temperature, shown.extent.n_rounds
    if n_rounds < len(whole) and moments(earlier).spread > 0:
        change = relative / fit_temperature(earlier)[0]
        relative *= growth(change, math.log2(len(whole) / n_rounds))
    T = relative * moments(later).spread
    return replace(calibration, temperature=min(max(T, LOWEST), HIGHEST))


def growth(change: float, doublings: float) -> float:
    """Return the factor by which the relative temperature changes in so many doublings of the rounds, from that of the last one.

    >>> round(growth(0.5, 1), 3), growth(0.5, 0)
    (0.595, 1.0)
    """
    return float(change ** (DECAY * (1 - DECAY**doublings) / (1 - DECAY)))


def most_entries(n_classes: int, n_features: int) -> int:
    """Return the number of rows in a sample of the training rows.

    >>> most_entries(10, 100), most_entries(5000, 100)
    (8000, 1677)
    """
    return max(min(MOST_ENTRIES, MOST_SCORES // n_classes, MOST_VALUES // n_features), 50)


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


def _scores(training: Training, contents: Contents, ensembles: Sequence[Ensemble]) -> list[np.ndarray]:
    """Return the scores of contents by each ensemble, (n, n_classes) float64."""
    profile = training.problem.profile
    n, step = len(contents.labels), max(PIECE_VALUES // profile.n_features, 1)
    pieces = []
    with Threads(training.staging.settings.n_threads) as threads:
        for a, b in spans(0, n, step):
            X = values_of(contents.selected(slice(a, b)), profile.edges, profile.categories)
            pieces.append([ensemble.scores(X, threads) for ensemble in ensembles])
    decoded = training.problem.algorithm.decoded
    return [decoded(np.concatenate(each)) for each in zip(*pieces, strict=True)]


def _calibration(method: str, contents: Contents, F: np.ndarray) -> Calibration:
    """Return the calibration of the scores F, (n, n_classes), of contents."""
    sums = partial(sums_of_scores, F=F, codes=contents.labels, w=contents.weights)
    return fit_calibration(method, sums, F.shape[1])


def _spread(contents: Contents, F: np.ndarray) -> float:
    """Return the mean distance of a row's scores from its largest."""
    return moments(partial(sums_of_scores, F=F, codes=contents.labels, w=contents.weights)).spread
