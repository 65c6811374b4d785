"""Compile the kernels of algorithms ahead: `python -m distboost.estimators.compiling ALGORITHM`."""

from __future__ import annotations

import sys
import time

import numpy as np

from distboost.errors import DistboostError
from distboost.estimators.factory import estimator
from distboost.kernels._jit import n_missed

# Rows of these types are binned by kernels of their own, and predicted.
TYPES = ("float64", "float32")


def compile_kernels(algorithm: str) -> tuple[int, float]:
    """Compile what an algorithm needs at its defaults; return how many kernels were not compiled before, and the seconds.

    They are kept in the folder that `NUMBA_CACHE_DIR` names, or beside the sources.
    """
    began, before = time.perf_counter(), n_missed()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X[:, :4].argmax(axis=1)
    for dtype in TYPES:
        for weights in (None, rng.uniform(0.5, 1.0, len(y))):
            # The update of the first round computes the statistic of the second.
            model = estimator(algorithm)(n_estimators=2)
            rows = X.astype(dtype)
            model.fit(rows, y, weights)
            model.predict_proba(rows)
            model.predict_proba(rows[:1])  # few rows descend the trees
    model.fit(X, y, eval_set=(X, y))
    return n_missed() - before, time.perf_counter() - began


def main(algorithm: str) -> None:
    """Compile, and print the number of kernels and the seconds."""
    try:
        n_kernels, seconds = compile_kernels(algorithm)
    except DistboostError as error:
        sys.exit(str(error))
    print(n_kernels, f"{seconds:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
