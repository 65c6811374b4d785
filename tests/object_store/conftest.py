"""An S3 server of its own on this machine, for all tests of a process."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
import zarr

from tests.lines import DEADLINE
from tests.object_store.s3 import forget_connections


@pytest.fixture(scope="session")
def server():
    """The URL of an S3 server in a process of its own."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(url)
        yield url
        forget_connections()
    finally:
        process.kill()
        process.wait()


def _wait_for(url):
    end = time.monotonic() + DEADLINE
    while True:
        try:
            with urllib.request.urlopen(f"{url}/moto-api/"):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@pytest.fixture
def environment(server, monkeypatch):
    """It leads to the server."""
    for name, value in {
        "AWS_ENDPOINT_URL": server,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def bucket(environment, request):
    """The URL of a new bucket."""
    from s3fs import S3FileSystem

    name = f"b{abs(hash(request.node.nodeid))}"
    S3FileSystem().mkdir(name)
    return f"s3://{name}"


@pytest.fixture
def arrays(bucket, blobs):
    """URLs of the blobs' features and labels."""
    zarr.create_array(f"{bucket}/data/x", data=np.asarray(blobs[0]), chunks=(60, 2))
    zarr.create_array(f"{bucket}/data/y", data=np.asarray(blobs[1]), chunks=(100,))
    return f"{bucket}/data/x", f"{bucket}/data/y"
