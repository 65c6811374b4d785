"""Limits that are too small: what is refused or warned of, and the limit that would do."""

from __future__ import annotations

import re

import numpy as np
import pytest
import zarr
from dask.utils import parse_bytes
from hypothesis import given
from hypothesis import strategies as st

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import LimitError
from distboost.estimators.parameters import algorithm_of
from distboost.inputs.choose import dataset_of
from distboost.runtime.local import LocalRuntime
from distboost.training import memory_plan
from distboost.trees.grower import GrowthLimits
from tests.memory_plan.plans import LARGE, gd, named


def test_the_limit_that_would_do_is_told():
    with pytest.raises(LimitError, match=r"memory_limit is 1 MB per process, but 4200000 rows") as refused:
        distboost.plan(gd(memory_limit=10**6), **LARGE, n_threads=2)
    enough = int(re.search(r"take ([\d]+) MB", str(refused.value))[1])
    assert distboost.plan(gd(memory_limit=f"{enough}MB"), **LARGE, n_threads=2).resident < 10_000
    with pytest.raises(LimitError, match=f"take {enough} MB"):
        distboost.plan(gd(memory_limit=f"{enough - 1}MB"), **LARGE, n_threads=2)


@given(
    n_rows=st.integers(2, 10**7),
    n_features=st.integers(1, 3000),
    n_classes=st.integers(2, 60),
    max_bins=st.integers(2, 255),
    depth=st.integers(1, 12),
    weighted=st.booleans(),
    n_bins=st.none() | st.integers(1, 10**5),
    ingest=st.integers(0, 10**9),
    processes=st.integers(1, 5),
    threads=st.integers(1, 8),
)
def test_the_limit_that_is_named_will_do(
    n_rows, n_features, n_classes, max_bins, depth, weighted, n_bins, ingest, processes, threads
):
    algorithm = algorithm_of(GDMCBoostClassifier(), n_classes)
    task = memory_plan.Task(
        algorithm, GrowthLimits(max_depth=depth), n_rows, n_features, max_bins, 8, weighted, n_bins, ingest
    )
    where = {"n_processes": processes, "n_threads": threads, "on_cluster": processes > 1}
    with pytest.raises(LimitError) as refused:
        memory_plan.plan_memory(task, 1, **where)
    found = memory_plan.plan_memory(task, parse_bytes(named(refused)), **where)
    assert found.n_bytes <= found.limit
    assert found.for_ingest >= ingest


def test_a_limit_below_what_reading_takes_is_refused():
    """Though it would do for the training itself."""
    algorithm = algorithm_of(GDMCBoostClassifier(), 2)
    task = memory_plan.Task(algorithm, GrowthLimits(max_depth=2), 1000, 5, 255, 8, ingest=10**9)
    with pytest.raises(LimitError, match="reading and binning the arrays take 1,330 MB"):
        memory_plan.plan_memory(task, 10**9, n_processes=1, n_threads=1, on_cluster=False)


def test_a_sample_and_a_large_chunk_fit_side_by_side(tmp_path):
    """The sample has 134 MB and a chunk 51 MB, which a read decodes."""
    x, y = str(tmp_path / "x"), str(tmp_path / "y")
    zarr.create_array(x, shape=(10**6, 256), chunks=(50_000, 256), dtype="f4")
    zarr.create_array(y, shape=(10**6,), chunks=(250_000,), dtype="i8")
    model = gd(memory_limit="650MB")
    found = distboost.plan(model, 10**6, 256, 10, n_threads=2)
    assert dataset_of(x, y, None).least_ingest(255, LocalRuntime(2), False) <= found.for_ingest


@pytest.mark.parametrize(
    ("kind", "shape", "n_classes", "weighted"),
    [
        ("numpy", (3000, 5), 2, False),
        ("numpy", (3000, 5), 26, True),
        ("numpy", (100_000, 20), 26, False),
        ("zarr", (3000, 5), 26, False),
        ("zarr", (100_000, 20), 2, True),
        ("zarr", (100_000, 20), 26, True),
    ],
)
def test_a_training_is_refused_once(kind, shape, n_classes, weighted, tmp_path):
    """Whatever decides: the trees of all classes, the rows that stream, or how the arrays are read and binned."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=shape), np.arange(shape[0]) % n_classes
    weights = rng.random(shape[0]) if weighted else None
    if kind == "zarr":
        zarr.create_array(str(tmp_path / "x"), data=X, chunks=(shape[0], 1))
        X = str(tmp_path / "x")

    def fit(limit):
        model = GDMCBoostClassifier(n_estimators=1, memory_limit=limit, scratch=tmp_path / "scratch")
        return model.fit(X, y, weights)

    with pytest.raises(LimitError) as refused:
        fit("10MB")
    found = fit(named(refused)).memory_plan_
    assert found.n_bytes <= found.limit


def test_more_than_the_machine_has_is_warned_of_before_a_row_is_read(in_container):
    """The rows would be refused, if they were read."""
    program = """
import os, warnings
import numpy as np
from distboost import GDMCBoostClassifier
warnings.simplefilter("error", UserWarning)
X = np.full((400, 20_000), np.inf)
def fit():
    try:
        GDMCBoostClassifier(n_estimators=1, max_depth=6).fit(X, np.arange(400) % 3)
    except UserWarning as warning:
        print(warning)
fit()
os.rename("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max")  # as of version 2
fit()
"""
    told = in_container({"memory/memory.limit_in_bytes": 10**9}, program).stdout.splitlines()
    assert len(told) == 2
    for said in told:
        assert re.match(r"this process may take [\d,]+ MB, but this machine or container has 1,000 MB", said)
        for word in ("histograms", "memory_limit", "max_depth", "max_bins"):
            assert word in said


def test_a_training_that_fits_or_has_a_limit_is_not_warned_of(blobs, monkeypatch):
    GDMCBoostClassifier(n_estimators=1).fit(*blobs)  # warnings are errors
    monkeypatch.setattr(memory_plan, "memory_limit", lambda: 10**8)
    GDMCBoostClassifier(n_estimators=1, memory_limit="1GB").fit(*blobs)
    with pytest.warns(UserWarning, match="this machine or container has 100 MB") as warned:
        GDMCBoostClassifier(n_estimators=1).fit(*blobs)
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_the_process_that_leads_may_lack_memory_too(blobs, clients, monkeypatch):
    monkeypatch.setattr(memory_plan, "memory_limit", lambda: 10**8)
    model = GDMCBoostClassifier(n_estimators=1, memory_limit="1GB")
    model.client = clients[2]
    with pytest.warns(
        UserWarning, match="this process may take 4.*, but this machine or container has 100 MB"
    ):
        model.fit(*blobs)
