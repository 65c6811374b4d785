"""Names of features: set by `fit`, compared by everything after it, in the words of scikit-learn."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from distboost.data.checks import naming
from distboost.errors import DataError
from distboost.estimators.parameters import CommonParameters
from distboost.warn import warn_user

_MOST = 5  # names that a message lists


def set_features(estimator: CommonParameters, n_features: int, names: np.ndarray | None) -> None:
    """Set `n_features_in_` and `feature_names_in_`, or remove the names of an earlier run."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def columns_named(estimator: CommonParameters) -> AbstractContextManager[None]:
    """Let errors about values name their columns, if the training rows had names."""
    return naming(getattr(estimator, "feature_names_in_", None))


def check_n_features(estimator: CommonParameters, n_features: int, place: str) -> None:
    """Raise DataError if rows have another number of features than those of the training."""
    if n_features != estimator.n_features_in_:
        raise DataError(
            f"{place} has {n_features} features, but ``{type(estimator).__name__}`` is expecting {estimator.n_features_in_} "
            "features as input.",
            where=place,
            value=n_features,
        )


def compare_names(estimator: CommonParameters, names: np.ndarray | None, place: str) -> None:
    """Raise DataError if features have other names than in training; warn if only one of the two has names."""
    known, who = getattr(estimator, "feature_names_in_", None), type(estimator).__name__
    if known is not None and names is not None:
        check_same(known.tolist(), names.tolist(), place)
    elif names is not None:
        warn_user(f"{place} has feature names, but ``{who}`` was fitted without feature names")
    elif known is not None:
        warn_user(f"{place} does not have valid feature names, but ``{who}`` was fitted with feature names")


def check_same(known: list[str] | None, names: list[str], place: str) -> None:
    """Raise DataError if features had other names in training; None: they had none."""
    if known is None or known == names:
        return
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    message = "" if place == "``X``" else f"{place}: "
    message += "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
    if missing:
        message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise DataError(message)


def _listed(names: list[str]) -> str:
    return "".join(f"- {name}\n" for name in names[:_MOST]) + ("- ...\n" if len(names) > _MOST else "")
