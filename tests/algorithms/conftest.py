"""The algorithms of the registry, and clusters for them to run on."""

from __future__ import annotations

import pytest
from distributed import Client, LocalCluster


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
