"""What `fit(..., resume=True)` goes on from."""

from __future__ import annotations

import os
import warnings
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError

from distboost.errors import DataError
from distboost.estimators.keeping import load_estimator
from distboost.estimators.parameters import CommonParameters, algorithm_of, deciding_parameters
from distboost.model.checkpoint import is_checkpoint, rounds_at
from distboost.model.learned import Learned


class Changed(NamedTuple):
    """A deciding parameter that is not what it was."""

    name: str
    before: Any
    now: Any


def what_to_resume(estimator: CommonParameters) -> Learned:
    """What the estimator has learned, or else its checkpoint; raises if there is neither, or with other parameters."""
    url = None if estimator.checkpoint is None else os.fspath(estimator.checkpoint)
    if hasattr(estimator, "learned_"):
        learned, place = estimator.learned_, "the fitted model"
    elif url is None:
        raise NotFittedError(
            f"resume=True goes on from a fitted model or from a checkpoint, but this {type(estimator).__name__} is not fitted "
            "and has none. Call fit without it first."
        )
    elif not is_checkpoint(url):
        raise NotFittedError(
            f"resume=True goes on from a checkpoint, but none was completed in {url}. Call fit without it first."
        )
    else:
        kept = load_estimator(url, {estimator.algorithm_name: type(estimator)}.__getitem__)
        learned, place = kept.learned_, f"the checkpoint {url}"
    changed = changed_parameter(estimator, learned)
    if changed is not None:
        raise DataError(
            f"{place} was made with {changed.name}={changed.before!r}, not {changed.now!r}. Set it to that, or train anew, "
            "without resume=True."
        )
    found: Learned = learned
    return found


def changed_parameter(estimator: CommonParameters, learned: Learned) -> Changed | None:
    """The first deciding parameter of the estimator that is not what it was when this was learned."""
    now, before = deciding_parameters(estimator), learned.parameters or {}
    if "n_estimators" not in algorithm_of(estimator, len(learned.classes)).fixed_parameters:
        del now["n_estimators"]
    differing = (Changed(name, before[name], value) for name, value in now.items() if value != before[name])
    return next(differing, None)


def warn_of_rounds(checkpoint: str) -> None:
    """Warns the caller of `fit` if the training will replace rounds of an earlier one."""
    rounds = rounds_at(checkpoint)
    if rounds:
        warnings.warn(
            f"the checkpoint {checkpoint} holds {rounds} rounds of an earlier training, which the first write of this one will "
            "replace. To go on from them, fit with resume=True; to keep them, give another place: checkpoint=...",
            UserWarning,
            stacklevel=3,
        )
