"""`model.client` may be the address of a scheduler: the connection lasts as long as the call."""

from __future__ import annotations

import asyncio

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

import distboost
from distboost import GAMBLEClassifier
from distboost.errors import ClusterError


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster


def model():
    return GAMBLEClassifier(n_estimators=3, calibration=None)


def n_clients(cluster) -> int:
    return sum(not key.startswith("fire-and-forget") for key in cluster.scheduler.clients)


def test_training_at_an_address(cluster, blobs, saved):
    """Nothing stays connected, and the current client is as before."""
    before = n_clients(cluster)
    for client in (cluster.scheduler_address, cluster):
        far = model()
        far.client = client
        far.fit(*blobs)
        assert cluster.scheduler_address in far.runtime_
        assert saved(far) == saved(model().fit(*blobs))
        assert n_clients(cluster) == before
    with pytest.raises(ValueError, match="No clients"):
        Client.current()


def test_an_error_closes_the_connection(cluster, blobs):
    before = n_clients(cluster)
    far = model()
    far.client = cluster.scheduler_address
    far.callbacks = [lambda progress: 1 / 0]
    with pytest.raises(ZeroDivisionError):
        far.fit(*blobs)
    assert n_clients(cluster) == before


def test_evaluation_and_binning_at_an_address(cluster, blobs, tmp_path):
    fitted = model().fit(*blobs)
    expected = distboost.evaluate(fitted, *map(np.asarray, blobs))
    fitted.client = cluster.scheduler_address
    assert str(distboost.evaluate(fitted, *blobs)) == str(expected)
    distboost.bin(*blobs, str(tmp_path / "store"), client=cluster.scheduler_address)
    assert model().fit(str(tmp_path / "store")).digest() == fitted.digest()


def test_an_asynchronous_client(cluster, blobs, saved):
    """It is refused at once in the thread of its event loop, which would wait for itself; another thread may use it."""

    async def train(refused: bool):
        async with Client(cluster.scheduler_address, asynchronous=True) as client:
            far = model()
            far.client = client
            return far.fit(*blobs) if refused else await asyncio.to_thread(far.fit, *blobs)

    with pytest.raises(ClusterError, match=r"is asynchronous: .* asyncio\.to_thread"):
        asyncio.run(train(refused=True))
    assert saved(asyncio.run(train(refused=False))) == saved(model().fit(*blobs))


@pytest.mark.parametrize("given", ["tcp://127.0.0.1:1", "no address", 7, object()])
def test_no_scheduler_there(given, blobs):
    lost = model()
    lost.client = given
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200ms"}),
        pytest.raises(
            ClusterError, match=r"client is .*no Dask scheduler answers there .*distributed.Client\("
        ),
    ):
        lost.fit(*blobs)
