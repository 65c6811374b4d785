"""The runtimes that are tested alike."""

from __future__ import annotations

import pytest

from distboost.runtime.cluster import ClusterRuntime
from distboost.runtime.local import LocalRuntime

RUNTIMES = ["1 thread", "2 threads", "1 worker", "3 workers"]


@pytest.fixture(params=RUNTIMES)
def runtime(request):
    """Every runtime there is; what is tested with it is the contract of `Rows`."""
    n, kind = request.param.split()
    if kind.startswith("thread"):
        chosen = LocalRuntime(int(n))
    else:
        chosen = ClusterRuntime(request.getfixturevalue("clients")[int(n)])
    yield chosen
    chosen.close()
