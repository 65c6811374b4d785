from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 4, 150)
    X = rng.normal(size=(150, 3)) + np.eye(4, 3)[y]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y
