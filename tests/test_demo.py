"""The demonstration, short."""

import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import zarr

from examples import demo
from tests.scripts import run_example


@contextmanager
def running(client):
    """In place of a cluster whose processes are started for the demonstration: tests/test_cluster_command.py has that."""
    yield SimpleNamespace(address=client.scheduler.address)


def test_demo(tmp_path, clients, monkeypatch):
    """Arrays and models of an earlier run are in the way of nobody."""
    monkeypatch.setattr(
        "distboost.cluster.local.local_cluster", lambda n_workers: running(clients[n_workers])
    )
    group = demo.write_arrays(tmp_path)
    zarr.create_array(f"{group}/predicted", data=np.arange(3))
    for name in ("cluster", "alone"):
        (tmp_path / f"{name}.dboost").write_text("of an earlier run")
    done = run_example("demo", "--rounds", "3", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    digests = re.findall(r"sha256 ([0-9a-f]{64})", done.stdout)
    assert len(digests) == 2
    assert digests[0] == digests[1]
    assert re.search(r"time per round +[\d.]+ s on the cluster, [\d.]+ s in one process alone", done.stdout)
    largest, together = re.search(
        r"(\d+) MiB in the largest process, ([\d,]+) MiB in all", done.stdout
    ).groups()
    assert int(largest) <= int(together.replace(",", ""))
    assert float(re.search(r"test accuracy +([\d.]+)%", done.stdout)[1]) > 60
