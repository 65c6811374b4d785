"""A trace of Huang 2009, algorithm 4, that was made by an independent, naive implementation with exact splits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zarr

from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee
from distboost.active import committee as committee_module

TRACE = Path(__file__).with_name("trace.npz")


@pytest.fixture(scope="module")
def trace():
    """X has at most 200 values in a feature, so that bins are exact. Unused places of `working_sets` are -1."""
    with np.load(TRACE) as file:
        return dict(file)


@pytest.mark.parametrize("n_workers", [0, 2])
def test_the_same_rows_are_taught(n_workers, trace, clients, tmp_path, monkeypatch):
    X, y = trace["X"], trace["y"].astype(int)
    estimator = GAMBLEClassifier(
        n_estimators=int(trace["rounds"]), max_leaf_nodes=int(trace["leaves"]), n_jobs=1
    )
    if n_workers:
        monkeypatch.setattr(committee_module, "ONE_THREAD_VALUES", 0)
        estimator.client = clients[n_workers]
        X = zarr.create_array(str(tmp_path / "pool"), data=X, chunks=(30, 6))
    learner = QueryByCommittee(estimator, X, batch_size=int(trace["batch"]))
    learner.teach(trace["initial"], y[trace["initial"]])
    first, *others = trace["working_sets"]
    assert set(learner.labelled_) == set(first[first >= 0])
    assert len(others) == 3
    for expected in others:
        rows = learner.query()
        learner.teach(rows, y[rows])
        assert set(learner.labelled_) == set(expected[expected >= 0])
