"""Folds of tiles: neighbouring cells are in the same fold."""

import numpy as np
import pytest

from distboost import GDMCBoostClassifier, cross_validate, search
from distboost.errors import DataError
from tests.cubes.made import SHAPE, dataset, labels, stacked


@pytest.mark.parametrize(("size", "by_hand"), [(8, (8, 8)), ({"y": 5, "x": 9}, (5, 9)), ({"x": 4}, (30, 4))])
def test_a_tile_is_a_group(size, by_hand):
    model = GDMCBoostClassifier(n_estimators=2)
    found = cross_validate(model, dataset(), labels(), folds=3, groups="tiles", tile_size=size)
    grid = [-(-n // step) for n, step in zip(SHAPE, by_hand, strict=True)]
    y, x = np.indices(SHAPE)
    numbers = np.ravel_multi_index((y // by_hand[0], x // by_hand[1]), grid).reshape(-1)
    X, classes = stacked(dataset(), labels())
    groups = numbers[labels().notnull().values.reshape(-1)]
    expected = cross_validate(model, X, classes, folds=3, groups=groups)
    np.testing.assert_array_equal(found["test_accuracy"], expected["test_accuracy"])


def test_a_search_takes_tiles():
    found = search(
        GDMCBoostClassifier(n_estimators=2), {"max_depth": [1, 2]}, dataset(), labels(), folds=2, groups="tiles", tile_size=8
    )  # fmt: skip
    assert found.best_estimator_.n_iter_ == 2


@pytest.mark.parametrize(
    ("rows", "parameters"),
    [
        (dataset, {"groups": "tiles"}),
        (dataset, {"tile_size": 4}),
        (dataset, {"groups": "tiles", "tile_size": 0}),
        (dataset, {"groups": "tiles", "tile_size": {"z": 4}}),
        (None, {"groups": "tiles", "tile_size": 4}),
    ],
)
def test_what_cannot_be_tiles(rows, parameters):
    X, y = stacked(dataset(), labels()) if rows is None else (rows(), labels())
    with pytest.raises(DataError, match=r"tile_size|tiles"):
        cross_validate(GDMCBoostClassifier(n_estimators=2), X, y, folds=2, **parameters)
