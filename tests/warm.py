"""Imported once by the process that others are forked from: they need not import and compile each by itself."""

# ruff: noqa: E402
import gc

gc.disable()  # as in conftest.py: before all other imports

import dask.utils  # noqa: F401
import numpy as np
from distributed import LocalCluster, Worker  # noqa: F401

import distboost.cli.commands  # noqa: F401
import distboost.prediction.streamed  # noqa: F401
import distboost.training.binning  # noqa: F401
from distboost import AdaBoostMMClassifier, GAMBLEClassifier, GDMCBoostClassifier
from distboost.active import QueryByCommittee

_rng = np.random.default_rng(0)
_X, _y = _rng.normal(size=(60, 3)), _rng.integers(0, 3, 60)
for _make in (GDMCBoostClassifier, AdaBoostMMClassifier):
    _make(n_estimators=1, max_depth=2, n_jobs=1).fit(_X, _y, eval_set=(_X, _y))

_learner = QueryByCommittee(GAMBLEClassifier(n_estimators=1, n_jobs=1), _X, n_initial=20, batch_size=10)
_learner.teach(range(20), _y[:20]).query()

# Forked processes look for garbage among what they make, and copy no memory of what is here.
gc.freeze()
gc.enable()
