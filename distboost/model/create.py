"""Make the ensemble that fits an algorithm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.categories import Categories
from distboost.model.ensemble import Ensemble
from distboost.model.similarities import SimilarityEnsemble
from distboost.model.trees import TreeEnsemble


def new_ensemble(
    algorithm: Algorithm, n_features: int, categories: Mapping[int, Categories] | None = None
) -> Ensemble:
    """Return an empty ensemble for the algorithm's weak learners, on features of which some may have categories."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble(n_features, n_scores)
    ensemble = TreeEnsemble(n_features, n_scores, algorithm.learners_per_round)
    ensemble.categories = categories or {}
    return ensemble


def read_ensemble(
    algorithm: Algorithm,
    arrays: dict[str, np.ndarray],
    n_features: int,
    has_covers: bool,
    categories: Mapping[int, Categories] | None = None,
) -> Ensemble:
    """Return the ensemble of the algorithm that is stored in arrays of a file, with covers if it `has_covers`."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble.from_arrays(arrays, n_features, n_scores)
    per_round = algorithm.learners_per_round
    return TreeEnsemble.from_arrays(
        arrays, n_features, n_scores, per_round, has_covers=has_covers, categories=categories
    )
