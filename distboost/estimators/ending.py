"""Warn of a training run that ended before its rounds."""

from __future__ import annotations

from distboost.algorithms.base import CONVERGED, NO_BETTER_THAN_CHANCE, NO_SPLIT, SEPARATED
from distboost.errors import TrainingEndedWarning
from distboost.warn import warn_user

# Ends that the caller asked for.
_WANTED = frozenset({"rounds", "early stopping", "callback"})

_REASONS = {
    SEPARATED: "a weak learner makes no error on the training rows. Pass ``on_separation='continue'`` to train all rounds, or "
    "allow only smaller trees",
    NO_SPLIT: "no split lowers the loss: rows of different classes have equal features, or the limits of the trees forbid every "
    "split. Check the features, ``min_samples_leaf`` and ``min_weight_fraction_leaf``, or train fewer rounds",
    CONVERGED: "no weak learner lowers the loss faster than the penalty allows. Set a smaller penalty (nu or penalty) or a "
    "larger C, or train fewer rounds",
    NO_BETTER_THAN_CHANCE: "the weak learner's error is too large to be of use. Allow larger trees (``max_depth``), or train "
    "``SAMMEClassifier``, which needs less of its weak learners",
}


def warn_of_end(outcome: str, rounds: int, wanted: int) -> None:
    """Warn the caller of `fit` if the training ended after `rounds` of the `wanted` rounds, unless the caller asked for it."""
    if rounds >= wanted or outcome in _WANTED:
        return
    reason = _REASONS.get(outcome, "the algorithm ended it")
    warn_user(
        f"training ended as {outcome!r} after {rounds} of {wanted} rounds: {reason}.",
        TrainingEndedWarning,
    )
