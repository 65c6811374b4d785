"""The default calibration: a second training, on some of the rows, judged by others."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.blocks import BinnedSet
from distboost.data.contents import Contents, contents_of
from distboost.data.division import JUDGE, LEARN, AnyContentSide, ByContent, ContentFold, Divided, by_content
from distboost.data.profile import Profile
from distboost.data.row_weights import WeightRule, class_weights
from distboost.errors import DataError, LimitError
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    calibration_method,
    growth_limits,
    n_threads,
)
from distboost.io.phases import Advance
from distboost.model.calibration import Calibration
from distboost.model.ensemble import Ensemble
from distboost.model.history import NO_WATCH, Watch
from distboost.model.learned import Learned
from distboost.rows.interface import Rows
from distboost.rows.messages import RowCounts
from distboost.threads import Threads
from distboost.training.calibration import (
    FOLDS,
    Extent,
    Repetition,
    blended,
    extrapolated,
    most_contents,
    of_contents,
)
from distboost.training.cross_fitting import Scorer, cross_fitted
from distboost.training.loop import Schedule
from distboost.training.run import run
from distboost.training.staging import Staging
from distboost.warn import warn_user

log = logging.getLogger("distboost")


def calibrated_by_second_training(
    estimator: CommonParameters,
    staging: Staging,
    training: BinnedSet,
    profile: Profile,
    learned: Learned,
    counts: RowCounts,
) -> Learned:
    """Return what was `learned` from the training rows, with a calibration: by a second training, and by rows that repeat.

    There is none if the rows are too few. A row of whole weight w counts as w rows.
    """
    n_classes = len(profile.classes)
    whole = all(scan.whole_weights for scan in profile.class_scans) and estimator.class_weight is None
    contents = contents_of(training, most_contents(n_classes), staging.runtime)
    unit = WeightRule.of(np.ones(n_classes), profile.class_scans).scale if whole else None
    repetition = Repetition.of(contents, counts.n_rows if unit is None else counts.weight / unit, unit)
    has_all = contents.n_rows.sum() == counts.n_rows
    extent = Extent.of(repetition.weight, len(learned.ensemble), repetition.multiplicity, has_all)
    share, found = repetition.share_left_out(extent), None
    if share > 0:
        second = _SecondTraining(estimator, staging, training, profile, learned)
        try:
            found = (
                second.calibration(extent)
                if extent.n_trainings == 1
                else second.cross_fitted(extent, contents)
            )
        except LimitError as error:  # steps that overshoot may diverge on some of the rows only
            if estimator.calibration != "auto":
                raise
            _warn_of_failure(error)
            return learned
        if found is None and estimator.calibration == "auto":
            return learned
        if found is None:
            raise DataError(
                f"calibration={estimator.calibration!r} needs rows to leave out of a second training, but there are only "
                f"{counts.n_rows} rows. Give an eval_set, or calibration=None."
            )
    if share < 1:
        with Threads(n_threads(estimator)) as threads:
            algorithm = algorithm_of(estimator, n_classes)
            own = of_contents(
                calibration_method(estimator), algorithm, contents, learned.ensemble, profile, threads
            )
        found = own if found is None else blended(found, own, share)
    log.info("calibration: %s", found)
    return learned._replace(calibration=found)


@dataclass(frozen=True)
class _SecondTraining:
    """A training on some of the rows that an estimator has learned from."""

    estimator: CommonParameters
    staging: Staging
    training: BinnedSet
    profile: Profile
    learned: Learned

    @cached_property
    def algorithm(self) -> Algorithm:
        algorithm = algorithm_of(self.estimator, len(self.profile.classes))
        algorithm.check()
        return algorithm

    def calibration(self, extent: Extent) -> Calibration | None:
        """Train on one side of the rows, and return the calibration that follows from the other; None if it has no rows."""
        parts, _ = self._divided(ByContent(extent.learn, extent.judge))
        if not parts.n_judge.any():
            return None
        log.info("calibration: %d rounds on %d rows", extent.n_rounds, parts.n_learn.sum())
        method = calibration_method(self.estimator)
        with self._phase(extent) as advance, self._placed([parts.learn, parts.judge]) as rows:
            part = self._trained(rows, extent.n_rounds, advance, Watch(("left out",)))
            return extrapolated(method, self.algorithm, rows, part, self.learned.ensemble, self.profile)

    def cross_fitted(self, extent: Extent, contents: Contents) -> Calibration | None:
        """Leave out each row of one of several trainings, and return the calibration that follows from all.

        `contents` are those of all rows. None: no rows can be left out.
        """
        log.info("calibration: %d trainings of %d rounds", extent.n_trainings, extent.n_rounds)
        found = []
        with self._phase(extent) as advance:
            for number in range(extent.n_trainings):
                parts, side = self._divided(ContentFold(number, FOLDS))
                if not parts.n_judge.any():
                    continue
                with self._placed([parts.learn]) as rows:
                    part = self._trained(rows, extent.n_rounds, advance)
                sides = side(contents)
                seen, left_out = (contents.selected(sides == one) for one in (LEARN, JUDGE))
                with Threads(n_threads(self.estimator)) as threads:
                    scorer = Scorer(self.algorithm, self.profile, threads)
                    found.append(scorer.left_out(left_out, seen, part, self.learned.ensemble))
        if not found:
            return None
        method = calibration_method(self.estimator)
        return cross_fitted(method, found, extent.n_rounds, len(self.learned.ensemble))

    def _divided(self, side: AnyContentSide) -> tuple[Divided, AnyContentSide]:
        return by_content(self.training, side, len(self.profile.classes), self.staging.runtime)

    def _phase(self, extent: Extent) -> AbstractContextManager[Advance]:
        n_rounds = extent.n_trainings * extent.n_rounds
        return self.staging.runtime.phases.begin("calibrate", n_rounds, "rounds")

    def _placed(self, sets: list[BinnedSet]) -> AbstractContextManager[Rows]:
        weights = class_weights(self.estimator.class_weight, self.profile)
        return self.staging.placed(sets, self.profile, self.algorithm, weights)

    def _trained(self, rows: Rows, n_rounds: int, advance: Advance, watch: Watch = NO_WATCH) -> Ensemble:
        estimator = self.estimator
        schedule = Schedule(
            growth_limits(estimator),
            n_rounds,
            estimator.learning_rate,
            stops_when_separated=estimator.on_separation == "stop",
            watch=watch,
            callbacks=[lambda progress: advance(1)],
        )
        learned = run(self.algorithm, rows, self.profile, schedule, None, None, lambda learned: None)
        return learned.ensemble


def _warn_of_failure(error: LimitError) -> None:
    warn_user(
        f"the probabilities are not calibrated: in the second training, {error} Give an eval_set, or calibration=None."
    )
