from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def parts():
    """Training rows and two sets of evaluation rows, the second with weights."""
    X, y = load_digits(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    return (X[:900], y[:900]), (X[900:1100], y[900:1100]), (X[1100:1500], y[1100:1500], weights)
