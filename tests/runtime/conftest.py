"""The runtimes that are tested alike."""

from __future__ import annotations

import numpy as np
import pytest

from distboost.runtime.base import Allotment
from distboost.runtime.cluster.runtime import ClusterRuntime
from distboost.runtime.local import LocalRuntime

RUNTIMES = ["1 thread", "2 threads", "2 threads streaming", "1 worker", "3 workers", "3 workers streaming"]
HALF = {"thread": 300, "worker": 100}  # resident rows of a process, if the others stream


ALONE = "1 worker"  # has nothing to add up


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.soak] * (name == ALONE)) for name in RUNTIMES])
def runtime(request, tmp_path, monkeypatch):
    """Every runtime there is; what is tested with it is the contract of `Rows`."""
    n, kind, *streaming = request.param.split()
    if kind.startswith("thread"):
        chosen = LocalRuntime(int(n))
    else:
        chosen = ClusterRuntime(request.getfixturevalue("clients")[int(n)])
    if streaming:
        allotment = Allotment(HALF[kind.removesuffix("s")], 2, str(tmp_path))
        place = chosen.place
        monkeypatch.setattr(chosen, "place", lambda sets, layout: place(sets, layout, allotment))
    yield chosen
    chosen.close()


@pytest.fixture
def n_streamed(request):
    """Of 700 training rows in blocks of 100."""
    return 400 if "streaming" in request.node.callspec.params["runtime"] else 0


@pytest.fixture(scope="session")
def problem():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 30, (700, 6)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.integers(0, 9, 700)).astype(int) // 16
    weights = rng.integers(0, 4, 700).astype(float)
    return X, y, weights
