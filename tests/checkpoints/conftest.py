"""What the tests of checkpoints share."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def problem():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 5)) + 0.7 * np.eye(3, 5)[y]
    return X[:140], y[:140], X[140:], y[140:]
