from __future__ import annotations

import numpy as np
import pytest

from tests.similarity.similarities import CASES


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.choice(4, 150, p=[0.4, 0.3, 0.2, 0.1])
    X = rng.normal(size=(150, 3)) + 1.5 * np.eye(4, 3)[y]
    return X, y


@pytest.fixture(params=CASES)
def parameters(request):
    return CASES[request.param]
