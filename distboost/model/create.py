"""Make the ensemble that fits an algorithm."""

from __future__ import annotations

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.model.ensemble import Ensemble
from distboost.model.similarities import SimilarityEnsemble
from distboost.model.trees import TreeEnsemble


def new_ensemble(algorithm: Algorithm, n_features: int) -> Ensemble:
    """Return an empty ensemble for the algorithm's weak learners."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble(n_features, n_scores)
    return TreeEnsemble(n_features, n_scores, algorithm.learners_per_round)


def read_ensemble(
    algorithm: Algorithm, arrays: dict[str, np.ndarray], n_features: int, has_covers: bool
) -> Ensemble:
    """Return the ensemble of the algorithm that is stored in arrays of a file, with covers if it `has_covers`."""
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    if algorithm.needs_values:
        return SimilarityEnsemble.from_arrays(arrays, n_features, n_scores)
    return TreeEnsemble.from_arrays(arrays, n_features, n_scores, algorithm.learners_per_round, has_covers)
