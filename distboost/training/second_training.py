"""The default calibration: a second training, on some of the rows, judged by others."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from distboost.data.blocks import BinnedSet
from distboost.data.contents import Contents, contents_of
from distboost.data.division import JUDGE, LEARN, AnyContentSide, ByContent, ContentFold, Divided, by_content
from distboost.data.row_weights import WeightRule
from distboost.errors import DataError, LimitError
from distboost.io.phases import SILENT, Advance
from distboost.model.calibration import Calibration
from distboost.model.ensemble import Ensemble
from distboost.model.history import NO_WATCH, Watch
from distboost.model.learned import Learned
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
from distboost.training.training import Training
from distboost.warn import warn_user

log = logging.getLogger("distboost")


def calibrated_by_second_training(training: Training, learned: Learned, counts: RowCounts) -> Learned:
    """Return what was `learned` from the training rows, with a calibration: by a second training, and by rows that repeat.

    There is none if the rows are too few. A row of whole weight w counts as w rows.
    """
    settings, profile = training.staging.settings, training.problem.profile
    # With another algorithm: that of the run may have changed in its rounds.
    problem = training.staging.problem(profile)
    training = replace(training, problem=problem)
    n_classes = len(profile.classes)
    whole = all(scan.whole_weights for scan in profile.class_scans) and settings.class_weight is None
    contents = contents_of(training.sets[0], most_contents(n_classes), training.staging.runtime)
    unit = WeightRule.of(np.ones(n_classes), profile.class_scans).scale if whole else None
    repetition = Repetition.of(contents, counts.n_rows if unit is None else counts.weight / unit, unit)
    has_all = contents.n_rows.sum() == counts.n_rows
    extent = Extent.of(repetition.weight, len(learned.ensemble), repetition.multiplicity, has_all)
    share, found = repetition.share_left_out(extent), None
    if share > 0:
        second = _SecondTraining(training, learned.ensemble, extent)
        try:
            found = second.extrapolated() if extent.n_trainings == 1 else second.cross_fitted(contents)
        except LimitError as error:  # steps that overshoot may diverge on some of the rows only
            if settings.calibration != "auto":
                raise
            warn_user(
                f"the probabilities are not calibrated: in the second training, {error.marked} Pass ``eval_set=(X, y)``, or "
                "``calibration=None``."
            )
            return learned
        if found is None and settings.calibration == "auto":
            return learned
        if found is None:
            raise DataError(
                f"``calibration={settings.calibration!r}`` needs rows to leave out of a second training, but there are only "
                f"{counts.n_rows} rows. Pass ``eval_set=(X, y)``, or ``calibration=None``."
            )
    if share < 1:
        with Threads(settings.n_threads) as threads:
            own = of_contents(
                settings.calibration_method, problem.algorithm, contents, learned.ensemble, profile, threads
            )
        found = own if found is None else blended(found, own, share)
    log.info("calibration: %s", found)
    return learned._replace(calibration=found)


class _SecondTraining(NamedTuple):
    """Training runs on some of the rows that an ensemble has learned from."""

    training: Training
    ensemble: Ensemble
    extent: Extent

    def extrapolated(self) -> Calibration | None:
        """Train on one side of the rows, and return the calibration that follows from the other; None if it has no rows."""
        extent, problem = self.extent, self.training.problem
        parts, _ = self._divided(ByContent(extent.learn, extent.judge))
        if not parts.n_judge.any():
            return None
        log.info("calibration: %d rounds on %d rows", extent.n_rounds, parts.n_learn.sum())
        with self._phase() as advance:
            part = self._on([parts.learn, parts.judge], advance, Watch(("left out",)))
            with part.placed() as rows:
                return extrapolated(
                    self._method,
                    problem.algorithm,
                    rows,
                    part.run(rows).ensemble,
                    self.ensemble,
                    problem.profile,
                )

    def cross_fitted(self, contents: Contents) -> Calibration | None:
        """Leave out each row of one of several runs, and return the calibration that follows from all.

        `contents` are those of all rows. None: no rows can be left out.
        """
        extent, problem = self.extent, self.training.problem
        log.info("calibration: %d runs of %d rounds", extent.n_trainings, extent.n_rounds)
        found = []
        with self._phase() as advance:
            for number in range(extent.n_trainings):
                parts, side = self._divided(ContentFold(number, FOLDS))
                if not parts.n_judge.any():
                    continue
                part = self._on([parts.learn], advance, NO_WATCH).rounds().learned.ensemble
                sides = side(contents)
                seen, left_out = (contents.selected(sides == one) for one in (LEARN, JUDGE))
                with Threads(self.training.staging.settings.n_threads) as threads:
                    scorer = Scorer(problem.algorithm, problem.profile, threads)
                    found.append(scorer.left_out(left_out, seen, part, self.ensemble))
        if not found:
            return None
        return cross_fitted(self._method, found, extent.n_rounds, len(self.ensemble))

    @property
    def _method(self) -> str:
        return self.training.staging.settings.calibration_method

    def _divided(self, side: AnyContentSide) -> tuple[Divided, AnyContentSide]:
        training = self.training
        n_classes = len(training.problem.profile.classes)
        return by_content(training.sets[0], side, n_classes, training.staging.runtime)

    def _phase(self) -> AbstractContextManager[Advance]:
        n_rounds = self.extent.n_trainings * self.extent.n_rounds
        return self.training.staging.runtime.phases.begin("calibrate", n_rounds, "rounds")

    def _on(self, sets: list[BinnedSet], advance: Advance, watch: Watch) -> Training:
        callbacks = [lambda progress: advance(1)]
        return self.training.on_parts(
            sets,
            n_rounds=self.extent.n_rounds,
            patience=None,
            callbacks=callbacks,
            watch=watch,
            metrics=(),
            phases=SILENT,
        )
