"""Compiles what the tests need, on all cores: `make test` runs it before them.

A kernel takes up to six seconds to compile, and each process compiles anew what several kernels call. The processes of the tests
would wait for one another, too.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np

from distboost import GDMCBoostClassifier, registry
from tests.algorithms.subjects import OF_EACH_KIND, SUBJECTS, sampled

_FIRST = ("rebel", "gd-mcboost", "cd-mcboost", "adaboost-mm")  # they take longest


def rows() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(90, 5)).round(2)
    return X, X[:, :4].argmax(axis=1)


def train(model: Any, X: np.ndarray, y: np.ndarray, *weights: np.ndarray) -> None:
    """Of the second round, the update before computes the statistics: that is a kernel of its own."""
    model.set_params(n_estimators=2, calibration=None).fit(X, y, *weights, eval_set=(X, y)).predict_proba(X)


def modules() -> None:
    """Compile the modules of the tests: pytest changes their assertions, and keeps what it has compiled."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


def algorithm(name: str) -> None:
    """Compile for each variant, and for scores of both types."""
    X, y = rows()
    for subject in [subject for subject in SUBJECTS if subject.algorithm == name]:
        train(subject.make(), X, y)
        if not subject.variant or str(subject) in OF_EACH_KIND:
            train(subject.make(score_dtype="float32"), X, y)
            train(subject.make(**sampled(subject)), X, y, np.ones(len(y)))


def draws() -> None:
    """Compile what draws rows by their weight, and what compresses statistics."""
    for parameters in (
        {"subsample": 0.5, "sampling": "weight"},
        {"sketch": 2, "statistic_bits": 4},
        {"sketch": 2, "statistic_bits": 4, "score_dtype": "float32"},
    ):
        train(GDMCBoostClassifier(max_depth=2, random_state=0, **parameters), *rows())


def types() -> None:
    """Compile for features of each type, with few bins and with many."""
    X, y = rows()
    for dtype in ("float32", "int64", "uint8"):
        for max_bins in (4, 255):
            train(GDMCBoostClassifier(max_bins=max_bins), (8 * abs(X)).astype(dtype), y)


def main() -> None:
    names = sorted(registry.ALGORITHMS, key=lambda name: name not in _FIRST)
    jobs: list[Callable[[], None]] = [modules, *(partial(algorithm, name) for name in names), draws, types]
    context = get_context("forkserver")
    context.set_forkserver_preload(["distboost.estimators", "tests.algorithms.subjects"])
    # Compilers leave little garbage, and look at many objects to find it.
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=gc.disable) as pool:
        for done in [pool.submit(job) for job in jobs]:
            done.result()


if __name__ == "__main__":
    main()
