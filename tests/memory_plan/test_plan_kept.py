"""Trainings keep to their plan: rows stream, sums and histograms take what it says."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import zarr
from dask.utils import parse_bytes
from distributed import Client, LocalCluster

import distboost
from distboost import GDMCBoostClassifier, StagewiseBoostClassifier
from distboost.algorithms.mcboost import GDMCBoost
from distboost.algorithms.stagewise import StagewiseBoost
from distboost.algorithms.tables import LARGEST_TABLE, table_size
from distboost.data import ingest
from distboost.data.stored import ZarrPart
from distboost.errors import LimitError, StoreError
from distboost.runtime.cluster.runtime import ClusterRuntime
from distboost.training import memory_plan
from tests import disks
from tests.memory_plan.plans import LARGE, gd, named


def test_fit_keeps_its_plan(blobs):
    model = GDMCBoostClassifier(n_estimators=1, memory_limit="1GB").fit(*blobs)
    assert model.memory_plan_.resident == 240
    assert model.memory_plan_.n_bytes <= 10**9


@pytest.mark.parametrize(("block", "limit", "at_once"), [(20, 21_000, 1), (3, 12_000, 2)])
def test_more_rows_than_the_limit_holds_stream(block, limit, at_once, blobs, tmp_path, monkeypatch, saved):
    """The limit is no parameter of the model: the file is the same."""
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", block)
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=16)
    small = {"n_estimators": 3, "max_bins": 16, "max_depth": 2, "n_jobs": 1}
    expected = saved(GDMCBoostClassifier(**small).fit(store))
    model = GDMCBoostClassifier(memory_limit=limit, **small).fit(store)
    assert 0 < model.memory_plan_.streamed < 240
    assert model.memory_plan_.at_once == at_once
    assert saved(model) == expected


@pytest.mark.parametrize(("block", "limit", "at_once"), [(20, 11_000, 1), (2, 6000, 2)])
def test_workers_stream_what_does_not_fit(
    block, limit, at_once, blobs, tmp_path, monkeypatch, saved, clients
):
    monkeypatch.setattr(memory_plan, "WORKER_BYTES", 0)
    monkeypatch.setattr(memory_plan._Planner, "leader", lambda *_: ())  # it has libraries
    monkeypatch.setattr(ingest, "BLOCK_ROWS", block)
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=16)
    small = {"n_estimators": 3, "max_bins": 16, "max_depth": 2}
    expected = saved(GDMCBoostClassifier(**small).fit(store))
    model = GDMCBoostClassifier(memory_limit=limit, **small)
    model.client = clients[2]
    model.fit(store)
    assert 0 < model.memory_plan_.streamed < 120
    assert model.memory_plan_.at_once == at_once
    assert saved(model) == expected


def test_workers_stay_below_what_dask_lets_them_have():
    """Unless it has limits to tell."""
    quiet = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0", "processes": False}
    for limit, allowed in (("600MB", 420_000_000), (0, None)):
        with (
            LocalCluster(memory_limit=limit, **quiet) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            where = ClusterRuntime(client)
            assert where.limit(None) == allowed
            assert where.limit(10**8) == 10**8
            assert where.limit(10**12) == (allowed or 10**12)


def test_tall_chunks_are_decoded_once_though_all_rows_stay_in_memory(blobs, tmp_path, monkeypatch, saved):
    """A column of the array is one chunk: binned block by block, it would be decoded for each block."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 20)
    X, y = blobs
    zarr.create_array(str(tmp_path / "x"), data=np.ascontiguousarray(X), chunks=(240, 1))
    decoded = []
    read = ZarrPart.load
    monkeypatch.setattr(ZarrPart, "load", lambda part: decoded.append(part) or read(part))
    model = GDMCBoostClassifier(n_estimators=2, scratch=tmp_path / "scratch").fit(str(tmp_path / "x"), y)
    assert len(decoded) <= 2 * 4
    assert list((tmp_path / "scratch").iterdir()) == []
    assert saved(model) == saved(GDMCBoostClassifier(n_estimators=2).fit(X, y))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    with disks.small_disk(tmp_path / "small", "64k") as place:
        yield place


@pytest.mark.parametrize("raw", [True, False], ids=["bins", "scores"])
def test_a_disk_too_small_for_what_streams(raw, small_disk, tmp_path, monkeypatch):
    """Told before the first round: where, how much is needed and how much is free. Nothing is left there."""
    n, limit = (1_000_000, "60MB") if raw else (20_000, "400kB")
    rng = np.random.default_rng(0)
    x, y = str(tmp_path / "x"), str(tmp_path / "y")
    zarr.create_array(x, data=rng.normal(size=(n, 4)).astype("f4"), chunks=(50_000, 4))
    zarr.create_array(y, data=rng.integers(0, 3, n), chunks=(50_000,))
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 65_536 if raw else 500)
    model = GDMCBoostClassifier(max_depth=2, max_bins=16, n_jobs=1, scratch=small_disk, memory_limit=limit)
    rows = (x, y) if raw else (distboost.bin(x, y, str(tmp_path / "store"), max_bins=16),)
    with pytest.raises(StoreError, match=rf"{re.escape(str(small_disk))}.*(need|takes about).* free"):
        model.fit(*rows)
    assert list(small_disk.iterdir()) == []


def test_features_without_number_take_what_the_plan_says(tmp_path):
    """As many histograms as there are nodes to split, not twice as many when room is made for more; bins that there are."""
    program = """
import sys
import numpy as np
from distboost import AdaBoostMMClassifier
rng = np.random.default_rng(0)
def trained(X):
    model = AdaBoostMMClassifier(n_estimators=1, max_depth=6, n_jobs=1, calibration=None)
    return model.fit(X, np.arange(len(X)) % 3).memory_plan_
trained(rng.normal(size=(100, 3)))  # compiles
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
before = peak()
X = rng.normal(size=(400, 3000))
plan = trained(X)
print(peak() - before - X.nbytes, plan.n_bytes - plan.parts[0].n_bytes, plan.parts[1].n_bytes)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    taken, promised, histograms = map(int, done.stdout.split())
    assert histograms == 32 * 3000 * 256 * 4 * 8
    assert taken < 0.85 * promised


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    ("classifier", "size"),
    [
        (lambda **given: GDMCBoostClassifier(max_depth=5, **given), 32 * 60**2),
        (lambda **given: StagewiseBoostClassifier(loss="logistic", **given), 2 * 60**2 * 19),
    ],
    ids=["table of a tree", "logistic slopes"],
)
def test_sums_take_what_the_plan_says(classifier, size, n_threads, monkeypatch):
    """The sums of all threads, and the result: the most that is allocated while a round learns."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 100)
    taken = []

    def measured(learn):
        def traced(*arguments):
            tracemalloc.start()
            try:
                found = learn(*arguments)
                taken.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
            return found

        return traced

    for algorithm in (GDMCBoost, StagewiseBoost):
        monkeypatch.setattr(algorithm, "learn", measured(algorithm.learn))
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 60
    X = rng.normal(size=(2000, 3)) + y[:, None]
    model = classifier(calibration=None, n_estimators=3, max_bins=16, n_jobs=n_threads).fit(X, y)
    [sums] = [part for part in model.memory_plan_.parts if part.name == "sums"]
    assert sums.n_bytes == (n_threads + 2) * 8 * size
    # The first round also compiles kernels and allocates the histograms of a tree.
    assert 0.4 * sums.n_bytes < max(taken[1:]) < 1.1 * sums.n_bytes


def test_a_larger_reduction_leaves_less_room_for_rows(monkeypatch):
    def planned(limit):
        return distboost.plan(gd(memory_limit=limit), **LARGE, n_threads=2)

    def refused():
        with pytest.raises(LimitError) as error:
            planned("1MB")
        return parse_bytes(named(error))

    before, least = planned("1GB"), refused()
    monkeypatch.setattr(GDMCBoost, "reduction_size", lambda *arguments: 10**7)
    after = planned("1GB")
    sums = [next(part.n_bytes for part in found.parts if part.name == "sums") for found in (before, after)]
    assert sums == [4 * 8 * 64 * 5**2, 4 * 8 * 10**7]
    assert after.n_bytes <= after.limit
    row = (
        before.parts[3].n_bytes / before.resident - 4
    )  # the places of rows stay in memory, those of streamed ones too
    assert before.resident - after.resident == pytest.approx((sums[1] - sums[0]) / row, abs=2)
    assert abs(refused() - least - (sums[1] - sums[0])) <= 10**6


def test_workers_add_up_their_sums():
    model = StagewiseBoostClassifier(loss="logistic")
    size = 8 * 2 * 100**2 * 19
    found = distboost.plan(model, n_rows=10**6, n_features=16, n_classes=100, n_workers=3, n_threads=2)
    of_worker, of_leader = (
        next(part.n_bytes for part in parts if part.name == "sums") for parts in (found.parts, found.leader)
    )
    assert (of_worker, of_leader) == ((2 + 4) * size, 3 * size)


@pytest.mark.parametrize("n_classes", [2, 26, 300, 3000])
def test_a_table_has_as_many_leaves_as_it_may(n_classes):
    """Trees of fewer leaves have larger tables than those whose tables are too large."""
    for n_leaves in (1, 2, 3, 64, 10**6):
        largest = 0
        for n in {2, *range(1, min(n_leaves, 200) + 1), max(LARGEST_TABLE // n_classes**2, 1), n_leaves}:
            if n <= max(n_leaves, 2):
                whole = n * n_classes**2
                parts = max(2 * n * n_classes, 2 * n_classes**2)
                largest = max(largest, whole if whole <= LARGEST_TABLE else parts)
        assert table_size(n_leaves, n_classes) == max(largest, 2 * n_classes**2)
