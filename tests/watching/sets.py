"""A quick estimator that is watched, and metrics by their formulas."""

from __future__ import annotations

import numpy as np

from distboost import GDMCBoostClassifier


def make(**more):
    return GDMCBoostClassifier(
        **{"n_estimators": 5, "max_depth": 2, "n_jobs": 1, "calibration": None, **more}
    )


def brier(labels, P):
    """The Brier score of each row."""
    Q = P.copy()
    Q[np.arange(len(P)), labels] -= 1
    return np.square(Q).sum(axis=1)


def own_loss(labels, P):
    return -np.log(P[np.arange(len(P)), labels])
