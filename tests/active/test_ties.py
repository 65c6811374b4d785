"""Rows that are equally useful."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee


@pytest.mark.parametrize("strategy", ["margin", "entropy", "votes"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_chance_decides_between_equally_useful_rows(strategy, fraction, tmp_path):
    """A pool in the order of its classes, which the committee tells apart: it is as sure of one row as of any other."""
    y = np.repeat([0, 1], 500)
    X = y[:, None] + np.linspace(0, 0.1, 1000)[:, None]
    asked = []
    for pool in (X, zarr.create_array(tmp_path / "x", data=X, chunks=(64, 1))):
        learner = QueryByCommittee(
            GAMBLEClassifier(n_estimators=3), pool, strategy=strategy, pool_fraction=fraction
        )
        learner.teach([0, 999], [0, 1])
        asked.append([learner.query(40), learner.query(40)])
    for rows in asked[0]:
        assert 8 <= y[rows].sum() <= 32  # of 40, half are to be expected
        assert np.any(np.diff(rows) < 0)
    assert len(np.unique(asked[0])) == 80
    np.testing.assert_array_equal(asked[0], asked[1])
