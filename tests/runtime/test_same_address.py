"""A worker process that dies between two questions, and is replaced under its address before anyone asks."""

from __future__ import annotations

import logging
import os
import signal
import socket
import time

import pytest
from distributed import Client, LocalCluster

from distboost import AdaBoostMMClassifier
from distboost.runtime import crew

BACK = 40.0  # seconds until the next process has taken the address


def offices_of():
    return os.getpid(), len(crew._offices)


@pytest.fixture
def client():
    """Of a worker whose nanny starts it again on the same port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, host="127.0.0.1", worker_port=port, dashboard_address=":0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_the_successor_of_a_worker_is_not_taken_for_it(client, blobs, saved, caplog):
    """Dask opens the lost worker's office again on the next one, and empty: its answers would be sums over no rows."""
    X, y = blobs

    def model(**parameters):
        return AdaBoostMMClassifier(n_estimators=6, max_depth=1, **parameters)

    before = []

    def replace(progress):
        if progress.round != 3:
            return
        [(address, (pid, n_offices))] = client.run(offices_of).items()
        assert n_offices == 1
        os.kill(pid, signal.SIGKILL)
        last = time.monotonic() + BACK
        while (found := back(address)) is None or found[0] == pid or not found[1]:
            assert time.monotonic() < last, f"nobody has taken {address} within {BACK:.0f} s"
            time.sleep(0.1)
        before.append(pid)

    def back(address):
        try:
            return client.run(offices_of, workers=[address])[address]
        except (OSError, ValueError):  # it is gone, or not there yet
            return None

    alone = model(n_jobs=1).fit(X, y)
    there = model(callbacks=[replace])
    there.client = client
    with caplog.at_level(logging.WARNING, "distboost"):
        there.fit(X, y)
    assert len(before) == 1
    assert "is lost at 'update' of round 5" in caplog.text
    assert saved(there) == saved(alone)
