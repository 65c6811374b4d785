"""Imported once by the process that workers are forked from: they need not import and compile each by itself."""

import numpy as np
from distributed import Worker  # noqa: F401

from distboost import AdaBoostMMClassifier, GDMCBoostClassifier

_rng = np.random.default_rng(0)
_X, _y = _rng.normal(size=(60, 3)), _rng.integers(0, 3, 60)
for _make in (GDMCBoostClassifier, AdaBoostMMClassifier):
    _make(n_estimators=1, max_depth=2, n_jobs=1).fit(_X, _y, eval_set=(_X, _y))
