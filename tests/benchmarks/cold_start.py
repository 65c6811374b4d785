"""The time from an empty process to the first model, with and without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

_FIRST_FIT = """
import time
start = time.perf_counter()
import numpy as np
from distboost import GDMCBoostClassifier
imported = time.perf_counter()
X = np.random.default_rng(0).normal(size=(200, 4))
model = GDMCBoostClassifier(n_estimators=2, n_jobs=2).fit(X, np.arange(200) % 4)
model.predict(X)
print(imported - start, time.perf_counter() - imported)
"""


def first_fits() -> list[tuple[float, float]]:
    """Seconds to import, and to fit and predict, in one process with an empty kernel cache and in one that follows it."""
    with tempfile.TemporaryDirectory() as cache:
        return [_first_fit({**os.environ, "NUMBA_CACHE_DIR": cache}) for _ in range(2)]


def _first_fit(environment: dict[str, str]) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_FIT], env=environment, check=True, capture_output=True, text=True
    )
    imported, fitted = map(float, done.stdout.split())
    return imported, fitted
