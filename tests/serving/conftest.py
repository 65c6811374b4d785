from __future__ import annotations

import numpy as np
import pytest
import zarr

from tests.serving.servers import Server

SMALL = ("--n-initial", 12, "--final", "gamble", "--audit", 0.2)


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    """(path, y): 240 rows of 4 features, named, in three classes; a missing value."""
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 4)) + 4 * np.eye(3, 4)[y]
    X[5, 3] = np.nan
    path = tmp_path_factory.mktemp("pool") / "x.zarr"
    made = zarr.create_array(path, data=X, chunks=(60, 4))
    made.attrs["feature_names"] = ["length", "width", "<b>height</b>", "depth"]
    return path, y


@pytest.fixture
def server_of(tmp_path, pool):
    """Starts servers of a new log."""
    started = []

    def start(*options, **more):
        started.append(Server(tmp_path / "labels.log", "--x", pool[0], *SMALL, *options, **more))
        return started[-1]

    yield start
    for server in started:
        server.kill()
