"""The recipe of cluster/ssh, with a shell of this machine in place of a connection."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import zarr

from distboost import GDMCBoostClassifier

SCRIPT = Path(__file__).parents[2] / "cluster" / "ssh" / "train.sh"


@pytest.fixture
def places(blobs, tmp_path):
    for name, values in zip("xy", blobs, strict=True):
        zarr.create_array(tmp_path / name, data=values, chunks=(50, *values.shape[1:]))
    shared = tmp_path / "a folder"
    shared.mkdir()
    return {
        "X": f"{tmp_path}/x",
        "Y": f"{tmp_path}/y",
        "MODEL": f"{tmp_path}/model",
        "SHARED": str(shared),
        "LOCAL": str(shared),
        "HOSTS": "one two",
        "ADDRESS": "127.0.0.1",
        "THREADS": "1",
        "MEMORY": "2GiB",
    }


def test_two_machines(places, tmp_path, blobs, saved):
    connection = tmp_path / "connection"
    connection.write_text('#!/bin/bash\necho "$1" >> ' + f'{tmp_path}/hosts\nexec bash -c "exec $2"\n')
    connection.chmod(0o755)
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [SCRIPT, "--set", "n_estimators=3", "--set", "calibration=null"],
        env={**os.environ, **places, "SSH": str(connection), "PATH": path},
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 Dask workers" in done.stderr
    assert "tls://" in done.stderr
    assert ":8787" not in done.stderr  # pages are for the machine itself
    assert sorted((tmp_path / "hosts").read_text().split()) == ["one", "two"]
    expected = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(*blobs)
    assert (tmp_path / "model").read_bytes() == saved(expected)
    assert not list((tmp_path / "a folder").glob("scheduler-*.json"))
