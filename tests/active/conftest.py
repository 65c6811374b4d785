from __future__ import annotations

import numpy as np
import pytest
import zarr

from distboost.active import ledger
from distboost.active import pool as pool_module


@pytest.fixture(scope="session")
def problem():
    """(X, y): 300 rows of 6 features and 4 classes, in no order, with some values missing and some rows equal."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 4, 300)
    X = np.round(rng.normal(size=(300, 6)) + 1.3 * np.eye(4, 6)[y], 1)
    X[rng.random(X.shape) < 0.04] = np.nan
    X[200:220], y[200:220] = X[100:120], y[100:120]
    X.flags.writeable = y.flags.writeable = False
    return X, y


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 20 rows, if the chunks allow it."""
    monkeypatch.setattr(pool_module, "BLOCK_BYTES", 20 * 6 * 8)


class Clock:
    def __init__(self):
        self.now = 1.8e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of the logs, which stands."""
    found = Clock()
    monkeypatch.setattr(ledger, "clock", found)
    return found


@pytest.fixture(scope="session")
def data(tmp_path_factory, blobs):
    """A folder with a pool x of 160 rows, its labels y, the others as eval-x and eval-y, and names of features."""
    X, y = blobs
    folder = tmp_path_factory.mktemp("data")
    arrays = {"x": X[:160], "y": y[:160], "eval-x": X[160:], "eval-y": y[160:]}
    for name, values in arrays.items():
        zarr.create_array(folder / name, data=values, chunks=(30, *values.shape[1:]))
    named = zarr.create_array(folder / "named", data=X[:160].astype("f4"), chunks=(30, 4))
    named.attrs["feature_names"] = ["length", "width", "height", "row"]
    return folder


@pytest.fixture
def files(tmp_path):
    """The options --log and --out of a new log."""
    return ("--log", tmp_path / "labels.log", "--out", tmp_path / "ask.csv")
