"""Find the state from which `fit(..., resume=True)` continues."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from sklearn.exceptions import NotFittedError

from distboost.errors import DataError, ModelFormatError
from distboost.estimators.keeping import load_estimator
from distboost.estimators.parameters import (
    CommonParameters,
    algorithm_of,
    deciding_parameters,
    left_out,
    library_class,
)
from distboost.estimators.validation import set_features
from distboost.message import Message
from distboost.model.checkpoint import is_checkpoint, rounds_at
from distboost.model.learned import Learned
from distboost.warn import warn_user


class Changed(NamedTuple):
    """A parameter that affects the model and has changed."""

    name: str
    before: Any
    now: Any


def what_to_resume(estimator: CommonParameters) -> Learned:
    """Return what the estimator has learned, or else its checkpoint; raise if there is neither, or if it does not fit.

    The names of the features become those of the checkpoint.
    """
    url = None if estimator.checkpoint is None else os.fspath(estimator.checkpoint)
    if hasattr(estimator, "learned_"):
        learned, place = estimator.learned_, "the fitted model"
    elif url is None or not is_checkpoint(url):
        lacks = "has no checkpoint" if url is None else f"{url} has no complete one"
        who = f"``{type(estimator).__name__}``"
        raise NotFittedError(
            Message(
                f"``resume=True`` needs a fitted model or a checkpoint, but this {who} is not fitted and {lacks}. Train without "
                "``resume`` first."
            )
        )
    else:
        kept = load_estimator(url, lambda algorithm: _same_algorithm(estimator, algorithm))
        learned, place = kept.learned_, f"the checkpoint {url}"
    changed = changed_parameter(estimator, learned)
    if changed is not None:
        raise DataError(
            f"{place} was made with ``{changed.name}={changed.before!r}``, not {changed.now!r}.",
            remedy="Set it to the earlier value, or train without ``resume=True``.",
            where=place,
            value=changed.before,
        )
    if learned.n_rounds > estimator.n_estimators:
        raise DataError(
            f"{place} has {learned.n_rounds} rounds, more than ``n_estimators={estimator.n_estimators}``.",
            remedy=f"Pass ``n_estimators`` to {learned.n_rounds} or more, or train without ``resume=True``.",
            where=place,
            value=learned.n_rounds,
        )
    if learned is not getattr(estimator, "learned_", None):
        set_features(estimator, kept.n_features_in_, getattr(kept, "feature_names_in_", None))
    found: Learned = learned
    return found


def _same_algorithm(estimator: CommonParameters, algorithm: str) -> type[CommonParameters]:
    """Return the library's class of the estimator, if `algorithm` is its own."""
    if algorithm != estimator.algorithm_name:
        raise ModelFormatError(
            f"it is a model of the algorithm {algorithm!r}, not of {estimator.algorithm_name!r}, the algorithm of "
            f"``{type(estimator).__name__}``.",
            remedy="Continue it with the estimator that began it, or pass another checkpoint.",
            value=algorithm,
        )
    return library_class(estimator)


def changed_parameter(estimator: CommonParameters, learned: Learned) -> Changed | None:
    """Return the first parameter that affects the model and has changed since then, or None."""
    now = {**left_out(estimator), **deciding_parameters(estimator)}
    before = {**left_out(estimator), **(learned.parameters or {})}
    if "n_estimators" not in algorithm_of(estimator, len(learned.classes)).fixed_parameters:
        del now["n_estimators"]
    del now["calibration"]  # it is found again
    differing = (Changed(name, before[name], value) for name, value in now.items() if value != before[name])
    return next(differing, None)


def warn_of_rounds(checkpoint: str) -> None:
    """Warn the caller of `fit` if the training will replace rounds of an earlier one."""
    rounds = rounds_at(checkpoint)
    if rounds:
        warn_user(
            f"the checkpoint {checkpoint} has {rounds} rounds of an earlier run, which this run will replace. To "
            "continue from them, fit with ``resume=True``; to keep them, set another folder: ``checkpoint=...``"
        )
