"""Trainings that keep a checkpoint."""

import os
import re

from distboost.estimators.factory import estimator

# What is carried from round to round: random counters, validation history, the best round, notes, values that are rewritten.
TRAININGS = {
    "random counters": ("gd-mcboost", {"n_estimators": 14, "subsample": 0.7, "max_features": 0.5}),
    "early stopping": ("gd-mcboost", {"n_estimators": 40, "max_depth": 2, "early_stopping_rounds": 6}),
    "notes": ("adaboost-mm", {"n_estimators": 12, "max_depth": 2}),
    "a tree for each class": ("one-vs-all", {"n_estimators": 12}),
    "similarities": ("rebel", {"n_estimators": 8, "weak_learner": "similarity"}),
    "corrective": ("multiboost", {"n_estimators": 10}),
    "corrective, early stopping": ("multiboost", {"n_estimators": 30, "early_stopping_rounds": 5}),
}
EVERY = 2


def made(training, **more):
    algorithm, parameters = TRAININGS[training]
    return estimator(algorithm)(calibration=None, n_jobs=1, **parameters, **more)


def fitted(model, problem, resume=False):
    X, y, Xt, yt = problem
    return model.fit(X, y, eval_set=(Xt, yt), resume=resume)


def rounds(folder):
    """First and last round of each segment that is there."""
    names = [re.match(r"rounds-(\d+)-(\d+)-", name) for name in os.listdir(folder)]
    return sorted((int(name[1]), int(name[2])) for name in names if name)
