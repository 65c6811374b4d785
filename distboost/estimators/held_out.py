"""`validation_fraction`: rows that a training run leaves out, to judge each round by."""

from __future__ import annotations

from distboost.data.blocks import BinnedSet
from distboost.data.division import ByContent, by_content
from distboost.data.work import TaskRunner
from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters

NAME = "validation"


def check_judged(estimator: CommonParameters, has_eval_set: bool) -> None:
    """Raise DataError unless early stopping has rows to judge by, from one source."""
    fraction, rounds = estimator.validation_fraction, estimator.early_stopping_rounds
    if fraction is not None and has_eval_set:
        raise DataError(
            f"``validation_fraction={fraction}`` would leave out training rows, but there is an ``eval_set`` to judge by.",
            remedy="Pass ``validation_fraction=None``, or omit the ``eval_set``.",
        )
    if rounds is not None and fraction is None and not has_eval_set:
        raise DataError(
            f"``early_stopping_rounds={rounds}`` needs rows to judge by.",
            remedy="Pass ``eval_set=(X, y)``, or pass ``validation_fraction=0.1`` to leave out a tenth of the training rows.",
        )


def held_out(training: BinnedSet, fraction: float, n_classes: int, work: TaskRunner) -> list[BinnedSet]:
    """Return the rows to learn from, and those to judge by."""
    parts, _ = by_content(training, ByContent(1 - fraction, fraction), n_classes, work)
    if not parts.n_judge.any():
        raise DataError(
            f"``validation_fraction={fraction}`` leaves out none of {parts.n_rows} rows: there are too few, or too few that "
            "differ, and some rows of each class are kept.",
            remedy=f"Set a {'smaller' if fraction > 0.5 else 'larger'} fraction, or pass an eval_set.",
        )
    return [parts.learn, parts.judge]
