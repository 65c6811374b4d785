from __future__ import annotations

import numpy as np
import pytest

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
