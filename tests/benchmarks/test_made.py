from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from tests.benchmarks.made import MADE, Size, made

SMALL = Size(6000, 3000)


@pytest.mark.parametrize("name", MADE)
def test_made_rows_do_not_depend_on_their_number(name):
    large, small = made(name, SMALL), made(name, Size(2000, 100))
    np.testing.assert_array_equal(large.X[:2000], small.X)
    np.testing.assert_array_equal(large.y[2000:2100], small.y_test)
    assert (len(large.X), len(large.X_test)) == SMALL
    assert large.X.dtype == (np.uint8 if name == "images" else np.float32)
    n_classes = 100 if name == "mixture" else 10
    counts = np.bincount(large.y, minlength=n_classes)
    assert len(counts) == n_classes
    assert np.all(np.abs(counts - 6000 / n_classes) < 5 * np.sqrt(6000 / n_classes))


def test_half_of_the_pixels_are_0():
    X = made("images", SMALL).X
    assert X.shape == (6000, 784)
    assert 0.48 < np.mean(X == 0) < 0.52
    assert 0.2 < np.mean(X.std(axis=0) == 0) < 0.3  # the border
    assert X.max() > 200
    assert np.mean(X == 255) < 0.01


def test_images_are_the_same_on_every_machine():
    digest = sha256(made("images", SMALL).X.tobytes()).hexdigest()
    assert digest == "dad181d8467d33e2ff8bfc0b76f87236c49b0cb50ca2b186b62b00a5acc5c5a4"
