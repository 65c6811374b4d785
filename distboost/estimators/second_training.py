"""The default calibration: a second training, on some of the rows, judged by others."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace

import numpy as np

from distboost.data.blocks import BinnedSet
from distboost.data.contents import contents_of
from distboost.data.division import Divided, by_content
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
from distboost.model.calibration import Calibration
from distboost.model.history import Watch
from distboost.model.learned import Learned
from distboost.rows.messages import RowCounts
from distboost.threads import Threads
from distboost.training.calibration import (
    Extent,
    Repetition,
    blended,
    extrapolated,
    most_contents,
    of_contents,
)
from distboost.training.loop import Schedule
from distboost.training.run import run
from distboost.training.staging import Staging

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
    extent = Extent.of(repetition.weight, len(learned.ensemble), repetition.multiplicity)
    share, found = repetition.share_left_out(extent), None
    if share > 0:
        parts = by_content(training, extent.learn, extent.judge, n_classes, staging.runtime)
        if parts.n_judge.any():
            log.info("calibration: %d rounds on %d rows", extent.n_rounds, parts.n_learn.sum())
            try:
                found = _second_training(estimator, staging, parts, profile, learned, extent)
            except LimitError as error:  # steps that overshoot may diverge on some of the rows only
                if estimator.calibration != "auto":
                    raise
                _warn_of_failure(error)
                return learned
        elif estimator.calibration == "auto":
            return learned
        else:
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


def _second_training(
    estimator: CommonParameters,
    staging: Staging,
    parts: Divided,
    profile: Profile,
    learned: Learned,
    extent: Extent,
) -> Calibration:
    """Train on one side of the rows, and return the calibration that follows from the other."""
    algorithm = algorithm_of(estimator, len(profile.classes))
    algorithm.check()
    schedule = Schedule(
        growth_limits(estimator),
        extent.n_rounds,
        estimator.learning_rate,
        stops_when_separated=estimator.on_separation == "stop",
        watch=Watch(("left out",)),
    )
    weights = class_weights(estimator.class_weight, profile)
    with staging.placed([parts.learn, parts.judge], profile, algorithm, weights) as rows:
        with staging.runtime.phases.begin("calibrate", extent.n_rounds, "rounds") as advance:
            schedule = replace(schedule, callbacks=[lambda progress: advance(1)])
            part = run(algorithm, rows, profile, schedule, None, None, lambda learned: None).ensemble
        return extrapolated(calibration_method(estimator), algorithm, rows, part, learned.ensemble, profile)


def _warn_of_failure(error: LimitError) -> None:
    warnings.warn(
        f"the probabilities are not calibrated: in the second training, {error} Give an eval_set, or calibration=None.",
        UserWarning,
        stacklevel=5,
    )
