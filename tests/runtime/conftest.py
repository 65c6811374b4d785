"""Real clusters: worker processes on this machine."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster

from distboost.runtime.cluster import ClusterRuntime
from distboost.runtime.local import LocalRuntime


@pytest.fixture(scope="session")
def clients():
    """Clients of clusters of 1, 2 and 3 workers."""
    found = {}
    for n in (1, 2, 3):
        cluster = LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0")
        found[n] = Client(cluster, set_as_default=False)
    yield found
    for client in found.values():
        client.close(timeout=30)
        client.cluster.close(timeout=30)


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
