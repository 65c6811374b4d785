"""Rows that a runtime holds, for tests."""

from __future__ import annotations

import numpy as np

from distboost.data.row_weights import WeightRule
from distboost.inputs.choose import dataset_of
from distboost.runtime.base import Layout
from distboost.trees.grower import GrowthLimits
from distboost.weights.margin import MarginWeights

WEIGHTING = MarginWeights(0.5)


def place(runtime, X, y, weights=None, evaluation=None, n_scores=None, values=False):
    data = dataset_of(X, y, weights)
    profile = data.profile(255, 0, runtime)
    sets = [
        data.binned(profile, WeightRule.of(np.ones(len(profile.classes)), profile.class_scans), 7, values)
    ]
    if evaluation is not None:
        sets.append(
            dataset_of(*evaluation, None).binned(
                profile, WeightRule.alone(len(profile.classes), None), 5, values
            )
        )
    n_classes = len(profile.classes)
    return runtime.place(sets, Layout(profile.n_bins, n_classes, n_scores or n_classes, "float64")), profile


def updates_of(rows):
    """The list that each update will be added to, with its answer."""
    asked, update = [], rows._update

    def kept(question):
        answer = update(question)
        asked.append((question, answer[0]))
        return answer

    rows._update = kept
    return asked


STUMPS, DEPTH_2, DEPTH_3 = (GrowthLimits(max_depth=depth) for depth in (1, 2, 3))
