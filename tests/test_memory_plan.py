"""What a training is promised to take, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from dask.utils import parse_bytes
from distributed import Client, LocalCluster
from hypothesis import given
from hypothesis import strategies as st

import distboost
from distboost import GAMBLEClassifier, GDMCBoostClassifier, StagewiseBoostClassifier
from distboost.algorithms.mcboost import GDMCBoost
from distboost.algorithms.stagewise import StagewiseBoost
from distboost.algorithms.tables import LARGEST_TABLE, table_size
from distboost.cli import main
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.data.parts import ZarrPart
from distboost.errors import LimitError, StoreError
from distboost.estimators.parameters import algorithm_of
from distboost.io.units import megabytes
from distboost.runtime.cluster.runtime import ClusterRuntime
from distboost.runtime.local import LocalRuntime
from distboost.training import memory_plan
from distboost.trees.grower import GrowthLimits

LARGE = {"n_rows": 4_200_000, "n_features": 256, "n_classes": 5}


def gd(**parameters):
    return GDMCBoostClassifier(max_depth=6, **parameters)


def test_parts_add_up_to_no_more_than_the_limit():
    for limit in ("700MB", "1GB", "1.5GB"):
        found = distboost.plan(gd(memory_limit=limit), **LARGE, n_threads=2)
        assert found.n_bytes == sum(part.n_bytes for part in found.parts) <= found.limit
        assert found.resident + found.streamed == LARGE["n_rows"]
        assert found.window >= 2


def planned(n_threads=1, n_workers=None, weighted=False, **parameters):
    """A plan for a million rows of 100 features and 10 classes: its rows, its parts, and those of the process that leads."""
    sizes = {"n_rows": 10**6, "n_features": 100, "n_classes": 10}
    where = {"n_threads": n_threads, "n_workers": n_workers, "weighted": weighted}
    found = distboost.plan(GDMCBoostClassifier(**parameters), **sizes, **where)
    rows = (found.resident, found.streamed, found.room, found.window, found.store_bytes, found.scratch_bytes)
    return rows, [tuple(part)[1:] for part in found.parts], [tuple(part)[1:] for part in found.leader]


HISTOGRAM = (
    8 * 100 * 256 * 12
)  # 100 features of 255 bins and one for missing values; 10 sums, a count: 12 channels
LIBRARIES = "interpreter, libraries, compiled kernels"


def test_a_plan_in_full():
    rows, parts, leader = planned(n_threads=4, max_depth=6)
    assert rows == (10**6, 0, 10**6, 0, 0, 0)
    assert parts == [
        (410_000_000, LIBRARIES),
        (32 * HISTOGRAM, "32 nodes of 2.5 MB"),
        ((4 + 2) * 8 * 64 * 10**2, "0.051 MB for each of 4 threads, 2 more for the result"),
        (10**6 * 252, "1000000 rows of 252 B: bins 100, scores 80, statistic 64, label, weight and place 8"),
        (0, "0 rows, 0 blocks of 30.4 MB at a time"),
    ]
    assert leader == []


def test_rows_drawn_by_weight_take_memory():
    _, parts, _ = planned(n_threads=4, max_depth=6, subsample=0.1, sampling="weight")
    drawn = (
        8 + 4 + 30
    )  # a tenth of the rows, with room for a tenth more: 0.11 (100 + 80 + 64 + 4 + 8 + 8 + 8)
    assert parts[3] == (
        10**6 * (252 + drawn),
        "1000000 rows of 294 B: bins 100, scores 80, statistic 64, drawn rows 42, label, weight and place 8",
    )


def test_a_plan_of_rows_that_stream():
    block = 2**16 * (264 + 2 * 100 + 12)
    fixed = 410_000_000 + 32 * HISTOGRAM + 4 * 8 * 64 * 10**2
    resident = (650_000_000 - fixed - 4 * block) // 264
    rows, parts, leader = planned(n_threads=2, weighted=True, max_depth=6, memory_limit="650MB")
    assert rows == (resident, 10**6 - resident, resident, 4, 10**6 * 112, (10**6 - resident) * 160)
    assert parts[2:] == [
        (4 * 8 * 64 * 10**2, "0.051 MB for each of 2 threads, 2 more for the result"),
        (
            resident * 264,
            f"{resident} rows of 264 B: bins 100, scores 80, statistic 64, label, weight and place 20",
        ),
        (4 * block, f"{10**6 - resident} rows, 4 blocks of 31.2 MB at a time"),
    ]
    assert leader == []
    # All rows may stay from the limit on at which they fit, and no earlier.
    enough = fixed + 10**6 * 264
    stay, stream = (
        planned(n_threads=2, weighted=True, max_depth=6, memory_limit=n)[0][:2] for n in (enough, enough - 1)
    )
    assert stay == (10**6, 0)
    assert stream[1] > 0


def test_a_plan_of_workers():
    rows, parts, leader = planned(n_workers=2, max_depth=2)
    assert rows == (500_000, 0, 500_000, 0, 0, 0)
    assert parts[:4] == [
        (260_000_000, LIBRARIES),
        (
            # 1 node of its own rows; half of 2 nodes; up to 4 pieces of half a node sent, and 2 received, at a time
            HISTOGRAM + HISTOGRAM + (4 + 2) * HISTOGRAM // 2,
            "1 node of 2.5 MB, 2.5 MB of all workers' for the features it owns, 7.4 MB under way",
        ),
        (5 * 8 * 4 * 10**2, "0.0032 MB for each of 1 thread, 4 more for the result"),
        (
            500_000 * 252,
            "500000 rows of 252 B: bins 100, scores 80, statistic 64, label, weight and place 8",
        ),
    ]
    assert leader == [
        (410_000_000, LIBRARIES),
        (0, "the workers own them"),
        (3 * 8 * 4 * 10**2, "0.0032 MB for each of 1 answer, 2 more for the result"),
    ]


def test_a_plan_of_workers_with_small_histograms():
    """They are sent to the process that leads."""
    task = {"n_rows": 10**6, "n_features": 4, "n_classes": 2}
    found = distboost.plan(distboost.GDMCBoostClassifier(max_depth=2), **task, n_workers=2)
    node = 8 * 4 * 4 * 256
    assert found.parts[1][1:] == (node, f"1 node of {megabytes(node)}")
    assert [tuple(part)[1:] for part in found.leader[1:3]] == [
        (2 * node, f"2 nodes of {megabytes(node)}"),
        (2 * 2 * node, "histograms of 1 node in 2 answers, as they arrive"),
    ]


def test_without_a_limit_all_rows_stay_in_memory():
    found = distboost.plan(gd(), **LARGE)
    assert (found.limit, found.streamed, found.window) == (None, 0, 0)
    assert (found.store_bytes, found.scratch_bytes) == (0, 0)
    assert found.allotment(None) is None


def test_more_memory_keeps_more_rows():
    resident = [
        distboost.plan(gd(memory_limit=limit), **LARGE, n_threads=2).resident
        for limit in (7 * 10**8, 10**9, 15 * 10**8, 4 * 10**9)
    ]
    assert resident == sorted(resident)
    assert resident[-1] == LARGE["n_rows"] > resident[0]


def test_the_limit_that_would_do_is_told():
    with pytest.raises(LimitError, match=r"memory_limit is 1 MB per process, but 4200000 rows") as refused:
        distboost.plan(gd(memory_limit=10**6), **LARGE, n_threads=2)
    enough = int(re.search(r"take ([\d]+) MB", str(refused.value))[1])
    assert distboost.plan(gd(memory_limit=f"{enough}MB"), **LARGE, n_threads=2).resident < 10_000
    with pytest.raises(LimitError, match=f"take {enough} MB"):
        distboost.plan(gd(memory_limit=f"{enough - 1}MB"), **LARGE, n_threads=2)


def named(refused) -> str:
    """The limit that a refusal asks for."""
    return re.search(r"takes? ([\d,]+ MB)", str(refused.value))[1].replace(",", "")


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
    assert RawDataset.of(x, y, None).least_ingest(255, LocalRuntime(2), False) <= found.for_ingest


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


def test_classes_that_nobody_has_counted_may_take_more(blobs, tmp_path, monkeypatch):
    zarr.create_array(str(tmp_path / "y"), data=blobs[1], chunks=(100,))
    monkeypatch.setattr(RawDataset, "least_ingest", lambda *_: 0)
    with pytest.raises(LimitError, match=r"at least 2 classes take [\d,]+ MB or more.* to that or more,"):
        GDMCBoostClassifier(memory_limit="10MB", max_depth=12).fit(np.zeros((240, 2)), str(tmp_path / "y"))


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


def test_workers_share_the_rows_and_the_caller_has_a_plan_of_its_own():
    one = distboost.plan(gd(), **LARGE)
    two = distboost.plan(gd(), **LARGE, n_workers=2)
    assert (one.leader, one.resident) == ((), LARGE["n_rows"])
    assert two.resident == LARGE["n_rows"] // 2
    assert two.leader_bytes > 0


def test_weights_take_memory():
    plain, weighted = (distboost.plan(gd(), **LARGE, weighted=w).n_bytes for w in (False, True))
    balanced = distboost.plan(gd(class_weight="balanced"), **LARGE).n_bytes
    assert plain < weighted == balanced


@pytest.mark.parametrize(
    ("parameters", "nodes"),
    [
        ({"max_depth": 1}, 1),
        ({"max_depth": 6}, 32),
        ({"max_depth": None, "max_leaf_nodes": 15}, 14),
        ({"max_depth": 3, "max_leaf_nodes": 15}, 4),
        ({"max_depth": None, "min_samples_leaf": 210_000}, 13),
    ],
)
def test_histograms_kept_at_a_time(parameters, nodes):
    found = distboost.plan(GDMCBoostClassifier(**parameters), **LARGE)
    assert found.parts[1].n_bytes == nodes * 256 * 256 * 8 * 8


def test_a_sum_per_class_costs_what_it_takes():
    """GAMBLE's rows add one number to a histogram, GD-MCBoost's one for each class: 8 bytes of a row, not 8 K."""
    gamble, residuals = (
        distboost.plan(model, n_rows=10**6, n_features=16, n_classes=26).parts[3]
        for model in (GAMBLEClassifier(), GDMCBoostClassifier())
    )
    assert gamble.n_bytes < residuals.n_bytes


def test_fit_keeps_its_plan(blobs):
    model = GDMCBoostClassifier(n_estimators=1, memory_limit="1GB").fit(*blobs)
    assert model.memory_plan_.resident == 240
    assert model.memory_plan_.n_bytes <= 10**9


def test_more_rows_than_the_limit_holds_stream(blobs, tmp_path, monkeypatch, saved):
    """The limit is no parameter of the model: the file is the same."""
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 20)
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=16)
    small = {"n_estimators": 3, "max_bins": 16, "max_depth": 2, "n_jobs": 1}
    expected = saved(GDMCBoostClassifier(**small).fit(store))
    model = GDMCBoostClassifier(memory_limit=21_000, **small).fit(store)
    assert 0 < model.memory_plan_.streamed < 240
    assert saved(model) == expected


def test_workers_stream_what_does_not_fit(blobs, tmp_path, monkeypatch, saved, clients):
    monkeypatch.setattr(memory_plan, "WORKER_BYTES", 0)
    monkeypatch.setattr(memory_plan, "_check_leader", lambda *_: None)  # it has libraries
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 20)
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=16)
    small = {"n_estimators": 3, "max_bins": 16, "max_depth": 2}
    expected = saved(GDMCBoostClassifier(**small).fit(store))
    model = GDMCBoostClassifier(memory_limit=11_000, **small)
    model.client = clients[2]
    model.fit(store)
    assert 0 < model.memory_plan_.streamed < 120
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
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield place
    subprocess.run(["umount", str(place)], timeout=20, check=True)


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
    model = AdaBoostMMClassifier(n_estimators=1, max_depth=6, n_jobs=1)
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
    assert taken < 0.8 * promised


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
    row = before.parts[3].n_bytes / before.resident
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


def test_few_rows_have_few_bins_and_few_nodes():
    few = distboost.plan(gd(), n_rows=30, n_features=1000, n_classes=5)
    assert few.parts[1].n_bytes == 20 * 1000 * 31 * 8 * 8
    assert few.n_bytes < distboost.plan(gd(), n_rows=60, n_features=1000, n_classes=5).n_bytes


# On the command line.


def output(*arguments):
    done = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["plan", *map(str, arguments)])
    return done.exit_code, done.output


def test_plan_as_a_table():
    code, text = output(
        "--algorithm", "gd-mcboost", "--rows", 4_200_000, "--features", 256, "--classes", 5,
        "--memory-limit", "1GB", "--threads", 2,
    )  # fmt: skip
    assert code == 0
    for word in (
        "libraries",
        "histograms",
        "32 nodes",
        "sums",
        "resident rows",
        "streamed rows",
        "in all",
        "1,000 MB",
    ):
        assert word in text
    assert "of 4,200,000 rows stay in memory, the others stream from disk." in text


def test_plan_of_arrays_reads_no_row(blobs, tmp_path):
    """Neither labels nor features: chunks that were never written do not matter."""
    zarr.create_array(str(tmp_path / "x"), shape=(10**9, 40), chunks=(10**5, 40), dtype="f4")
    code, text = output("--algorithm", "gamble", "--x", tmp_path / "x", "--classes", 3, "--workers", 4)
    assert code == 0
    assert "each worker" in text
    assert "the process that calls fit" in text
    assert "250,000,000 of 250,000,000 rows stay in memory." in text


def test_plan_of_a_store_knows_the_classes(blobs, tmp_path):
    store = distboost.bin(*blobs, str(tmp_path / "store"))
    code, text = output("--algorithm", "rebel", "--x", store)
    assert code == 0
    assert "240 of 240 rows stay in memory." in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", 10, "--features", 2), "Missing option '--classes'"),
        *(
            ((*sizes, "--classes", 2), "Give an array with --x, or its sizes with --rows and --features")
            for sizes in ((), ("--rows", 10), ("--features", 2))
        ),
        (("--rows", 10, "--features", 2, "--classes", 2, "--memory-limit", "1MB"), "Raise the limit"),
        (
            ("--rows", 10, "--features", 2, "--classes", 2, "--memory-limit", "much"),
            "is 'much'. Give a number of bytes",
        ),
    ],
)
def test_what_a_plan_needs(arguments, message):
    code, text = output("--algorithm", "gd-mcboost", *arguments)
    assert code != 0
    assert message in text


def test_sizes_are_written_as_limits_are_given():
    assert megabytes(10**9) == "1,000 MB"
    assert np.isclose(float(megabytes(123_456).split()[0]), 0.12)


WIDE = {"n_rows": 50_000, "n_features": 1000, "n_classes": 100}


@pytest.mark.parametrize("where", [{}, {"n_workers": 4}, {"n_workers": 16}, {"n_workers": 1}], ids=str)
def test_histograms_that_do_not_fit_are_summed_a_few_features_at_a_time(where):
    """All nodes of a level would take 6.8 GB. Half of the memory that they and the rows may take is theirs at least."""
    found = distboost.plan(gd(memory_limit="800MB"), **WIDE, n_threads=1, **where)
    histograms = found.parts[1]
    assert "features at a time, in " in histograms.what
    assert found.window_bytes <= histograms.n_bytes <= 540 * 10**6
    assert found.n_bytes <= found.limit
    if where.get("n_workers", 1) > 1:
        assert found.leader_bytes < 600 * 10**6
    enough = distboost.plan(gd(memory_limit="24GB"), **WIDE, n_threads=1, **where)
    assert enough.window_bytes is None
    assert enough.streamed == 0


def test_rows_stay_in_memory_before_windows_grow():
    """As long as the windows have half of what is left."""
    plans = [distboost.plan(gd(memory_limit=limit), **WIDE) for limit in ("560MB", "800MB", "1GB")]
    assert [found.streamed > 0 for found in plans] == [True, False, False]
    assert plans[0].window_bytes < plans[1].window_bytes < plans[2].window_bytes


def test_the_process_that_leads_keeps_to_the_limit_too():
    """Though workers need less."""
    small = {"n_rows": 10_000, "n_features": 4, "n_classes": 2, "n_workers": 2}
    with pytest.raises(LimitError, match=r"the process that calls fit takes ([\d,]+) MB") as refused:
        distboost.plan(gd(memory_limit="350MB"), **small)
    found = distboost.plan(gd(memory_limit=named(refused)), **small)
    assert found.leader_bytes <= found.limit
