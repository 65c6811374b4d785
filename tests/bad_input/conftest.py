"""Models that refuse bad input, and data to spoil."""

import numpy as np
import pytest

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from tests.bad_input.forms import FORMS


@pytest.fixture(params=[GDMCBoostClassifier, GAMBLEClassifier], ids=["gd-mcboost", "gamble"])
def model(request):
    return request.param(n_estimators=2)


@pytest.fixture
def data(blobs):
    """(X, y) to be spoilt."""
    return np.array(blobs[0]), np.array(blobs[1])


@pytest.fixture(params=FORMS.values(), ids=FORMS)
def stored(request, tmp_path):
    """stored(array, name): the array as NumPy, zarr or dask."""
    return lambda array, name: request.param(array, tmp_path / name)
