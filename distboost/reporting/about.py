"""What commands and reports say about a fitted estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.estimators.parameters import RUN_PARAMETERS
from distboost.estimators.subclasses import own_parameters


def parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that determine the model."""
    return {key: value for key, value in own_parameters(model).items() if key not in RUN_PARAMETERS}


def rounds(model: Any) -> str:
    """Return the number of rounds, and of those that are kept if these are fewer."""
    done = str(model.n_iter_)
    return (
        done if model.best_iteration_ == model.n_iter_ else f"{done}, the first {model.best_iteration_} kept"
    )


def top_features(model: Any, most: int) -> tuple[list[tuple[Any, float]], int]:
    """Return the features of the largest gain, each with its fraction of all gain, and how many features have a gain."""
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    features, gains = model.learned_.ensemble.gains()
    used = np.flatnonzero(gains > 0)
    first = used[np.argsort(-gains[used], kind="stable")[:most]]
    return [(names[features[i]], float(gains[i] / gains.sum())) for i in first], len(used)
