"""Ingest out of core: whatever the chunks are, each is decoded once in a pass, memory is bounded, and the store is the same."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import ClassVar

import dask.array as da
import numpy as np
import pytest
import zarr
from zarr.storage import WrapperStore

from distboost import GDMCBoostClassifier, REBELClassifier
from distboost.data import ingest
from distboost.data.ingest_plan import least_memory, plan_ingest
from distboost.data.source import Axis
from distboost.data.store.writing import write_store
from distboost.errors import LimitError
from distboost.inputs.choose import adapter_of, dataset_of
from distboost.runtime.cluster.runtime import ClusterRuntime
from distboost.runtime.local import LocalRuntime
from tests.programs import Program

N, D, BLOCK = 1037, 13, 100


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", BLOCK)


@pytest.fixture(scope="module")
def rows():
    """(X, y, weights): features of few and of many values, some missing."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(N, D)) * rng.choice([1, 3, 1000], D), 1)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, rng.integers(0, 4, N), rng.integers(0, 3, N).astype(float)


@pytest.fixture
def work():
    runtime = LocalRuntime(2)
    yield runtime
    runtime.close()


def content(store) -> dict[str, bytes]:
    """The files of a store; the manifest without the fingerprint, which is that of the arrays as they are stored."""
    found = {str(f.relative_to(store)): f.read_bytes() for f in Path(store).rglob("*") if f.is_file()}
    manifest = json.loads(found["zarr.json"])
    del manifest["attributes"]["distboost-binned"]["source"]
    return {**found, "zarr.json": json.dumps(manifest).encode()}


CHUNKS = [(N, D), (N, 1), (50, D), (50, 5), (400, 2), (333, D), (1, D), (23, 1), (600, 4)]
MANY = [(1, D), (23, 1)]  # hundreds
MIXED = [(N, D), (50, 5), (400, 2)]  # one, such as cut rows and columns, such as do so elsewhere
LEAST = "as little memory as possible"


def stored(rows, chunks, kind, folder):
    X, y, w = rows
    if kind == "dask":
        return da.from_array(X, chunks=chunks), da.from_array(y, chunks=90), w
    return (
        zarr.create_array(str(folder / "x"), data=X, chunks=chunks),
        zarr.create_array(str(folder / "y"), data=y, chunks=chunks[:1]),
        zarr.create_array(str(folder / "w"), data=w, chunks=(77,)),
    )


def binned(arrays, url, work, memory=None, keep_values=False):
    data = dataset_of(*arrays)
    if memory == LEAST:
        memory = least_memory(*data.sources, max_bins=32, block=BLOCK, keep_values=keep_values)
    return write_store(data, str(url), 32, seed=0, work=work, memory=memory, keep_values=keep_values)


@pytest.fixture(scope="module")
def expected(rows, tmp_path_factory):
    """The content of the store of the arrays in memory."""
    runtime = LocalRuntime(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "BLOCK_ROWS", BLOCK)
        store = binned(rows, tmp_path_factory.mktemp("expected") / "store", runtime)
    runtime.close()
    return content(store.url)


@pytest.mark.parametrize("memory", [None, LEAST])
@pytest.mark.parametrize("chunks", MIXED, ids=str)
def test_one_store_whatever_the_chunks_of_dask(chunks, memory, rows, expected, work, tmp_path):
    """Hence also one model of it. Those of zarr are below."""
    found = binned(stored(rows, chunks, "dask", tmp_path), tmp_path / "store", work, memory)
    assert content(found.url) == expected


def test_a_model_from_the_store_is_that_from_the_arrays(rows, work, tmp_path, saved):
    store = binned(rows, tmp_path / "store", work)
    model = GDMCBoostClassifier(calibration=None, n_estimators=3, max_bins=32)
    assert saved(model.fit(store.url)) == saved(model.fit(rows[0], rows[1], rows[2]))


@pytest.mark.parametrize("n", [*(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2)), 3])
def test_on_a_cluster(n, rows, expected, clients, tmp_path):
    runtime = ClusterRuntime(clients[n])
    for chunks, kind in (((400, 2), "zarr"), ((333, D), "dask"), ((N, 1), "dask")):
        folder = tmp_path / f"{kind} {chunks}"
        assert (
            content(binned(stored(rows, chunks, kind, folder), folder / "s", runtime, LEAST).url) == expected
        )


class Counting(WrapperStore):
    """Counts the reads of each chunk."""

    reads: ClassVar[Counter] = Counter()

    async def get(self, key, *args, **kwargs):
        if key.startswith("c/"):
            Counting.reads[str(self._store), key] += 1
        return await super().get(key, *args, **kwargs)


@pytest.mark.parametrize(
    ("chunks", "memory"),
    [
        pytest.param(chunks, memory, marks=[pytest.mark.soak] * (memory is None and chunks not in MIXED))
        for chunks in CHUNKS
        for memory in (None, LEAST)
        if chunks not in MANY
    ]
    + [((23, 1), LEAST)],
    ids=str,
)
def test_one_store_whatever_the_chunks_which_are_decoded_once_in_each_pass(
    chunks, memory, rows, expected, work, tmp_path
):
    """Once to scan and once to bin; once more in each where a chunk lies across two cells."""
    written = stored(rows, chunks, "zarr", tmp_path)
    arrays = [zarr.open_array(Counting(array.store), mode="r") for array in written]
    Counting.reads.clear()
    found = binned(arrays, tmp_path / "store", work, memory)
    assert content(found.url) == expected
    assert len(Counting.reads) == sum(array.nchunks for array in written)
    for array in written:
        counts = [n for (store, _), n in Counting.reads.items() if store == str(array.store)]
        assert min(counts) == 2
        assert max(counts) <= (2 if array.ndim == 2 and array.chunks[0] in (1, 50, N) else 4)


def test_a_chunk_too_large_for_the_limit(rows, work, tmp_path):
    arrays = stored(rows, (N, D), "zarr", tmp_path)
    with pytest.raises(
        LimitError,
        match=rf"limited to 1000000 bytes.*takes at least \d+ .*\({N}, {D}\) of X \(.*x\), has {N * D * 8} bytes\. Rechunk",
    ):
        binned(arrays, tmp_path / "store", work, 1_000_000)
    assert not (tmp_path / "store").exists()


def test_the_plan_keeps_to_the_limit(rows, work):
    data = dataset_of(da.from_array(rows[0], chunks=(100, 3)), *rows[1:])
    least = least_memory(*data.sources, max_bins=255, block=BLOCK)
    for memory in (least, least + 10**6, 3 * least, 100 * least):
        plan = data.plan(255, work, memory)
        assert plan.least <= plan.takes <= memory
    with pytest.raises(LimitError, match=r"at least .*the largest chunk, \(100, 3\) of X, has 2400 bytes"):
        data.plan(255, work, least - 1)


# The bytes that the caller holds; those of the sample; rows, columns and bytes of a call that reads labels, scans, bins or
# merges. 100,000 rows.
PLANS = {
    "whole blocks": (
        (40, 10, float, False),
        {},
        (163_200, 40_000_192, (100_000, 1, 30_777_216), (90_000, 40, 116_380_528), (100_000, 40, 137_224_448), None),
    ),
    "a limit": (
        (40, 10, float, True),
        {"memory": 200 * 2**20},
        (163_200, 40_000_192, (100_000, 1, 50_754_432), (90_000, 40, 117_820_528), (100_000, 40, 137_224_448), None),
    ),
    "two at a time": (
        (40, 10, float, False),
        {"n_parallel": 2},
        (163_200, 40_000_192, (100_000, 1, 30_777_216), (30_000, 40, 58_720_528), (65_536, 40, 102_760_448), None),
    ),
    "bands": (
        (400, 1, "float32", False),
        {"memory": 200 * 2**20},
        (1_632_000, 29_443_584, (100_000, 1, 30_777_216), (100_000, 32, 132_284_448), (131_072, 21, 102_301_696),
         (65_536, 400, 117_440_512)),
    ),
    "bands of two at a time on a worker": (
        (400, 1, "float32", False),
        {"memory": 400 * 2**20, "n_parallel": 2, "caller_apart": True},
        (0, 0, (100_000, 1, 30_777_216), (100_000, 65, 290_322_028), (131_072, 49, 209_190_912),
         (131_072, 400, 143_654_912)),
    ),
    "values are kept": (
        (40, 1, float, False),
        {"memory": 250 * 2**20, "keep_values": True, "caller_apart": True},
        (0, 0, (100_000, 1, 30_777_216), (100_000, 40, 189_990_528), (100_000, 40, 224_274_688), None),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_in_full(name):
    (n_features, columns, dtype, weighted), options, expected = PLANS[name]
    X = da.zeros((100_000, n_features), dtype, chunks=(100_000 if columns == 1 else 30_000, columns))
    y, weights = da.zeros(100_000, int, chunks=50_000), da.zeros(100_000, chunks=30_000) if weighted else None
    found = plan_ingest(*dataset_of(X, y, weights).sources, 255, 2**16, **options)
    assert (found.held, found.sample, found.labels, found.scan, found.bins, found.merge) == expected


@pytest.mark.parametrize("columns", [256, 1], ids=["one band", "many"])
def test_threads_find_edges_where_there_is_room(columns):
    """While the next band is read, or afterwards in its place."""
    X = da.zeros((10**6, 256), "float32", chunks=(50_000, columns))
    sources = dataset_of(X, da.zeros(10**6, int, chunks=250_000), None).sources
    least = least_memory(*sources, max_bins=255, block=2**15)
    found = [plan_ingest(*sources, 255, 2**15, n_parallel=4, memory=least + more) for more in (0, 2**30)]
    assert [plan.edge_threads for plan in found] == [4 if columns == 256 else 1, 4]
    for plan in found:
        assert plan.held + plan.sample + plan.scan.memory <= plan.least <= plan.takes <= plan.memory


def test_calls_may_be_endless(work):
    """Calls are drawn as they are needed, and few are under way."""
    drawn = []

    def calls():
        for i in range(10**9):
            drawn.append(i)
            yield (i,)

    found = work.each(abs, calls(), at_once=2)
    assert [next(found) for _ in range(5)] == list(range(5))
    found.close()
    assert len(drawn) <= 8


def running(folder, name):
    """Notes how many calls run at once in this process."""
    import time

    (Path(folder) / f"{os.getpid()}-{name}").touch()
    n = len(list(Path(folder).glob(f"{os.getpid()}-*")))
    time.sleep(0.02)
    (Path(folder) / f"{os.getpid()}-{name}").unlink()
    return n


@pytest.mark.parametrize("at_once", [1, 2])
def test_few_at_once_on_each_worker(at_once, clients, tmp_path):
    runtime = ClusterRuntime(clients[3])
    found = runtime.map(running, ((str(tmp_path), i) for i in range(20)), at_once=at_once)
    assert max(found) <= at_once
    assert len(found) == 20


def test_cuts_of_an_axis():
    regular, irregular = Axis(100, 30), Axis(100, 60, (0, 10, 70, 80, 100))
    assert list(regular.spans(0, 100, 65)) == [(0, 60), (60, 100)]
    assert list(regular.spans(10, 95, 1)) == [(10, 30), (30, 60), (60, 90), (90, 95)]
    assert list(irregular.spans(0, 100, 30)) == [(0, 10), (10, 70), (70, 100)]


@pytest.mark.parametrize("chunks", [(N, 1), (50, D)], ids=str)
def test_values_are_kept_for_similarities(chunks, rows, work, tmp_path, saved):
    X, y = np.nan_to_num(rows[0]), rows[1]
    arrays = (*stored((X, y, rows[2]), chunks, "zarr", tmp_path)[:2], None)
    store = binned(arrays, tmp_path / "store", work, LEAST, keep_values=True)
    model = REBELClassifier(calibration=None, n_estimators=2, weak_learner="similarity", max_bins=32)
    assert saved(model.fit(store.url)) == saved(model.fit(X, y))


LIMIT = 90 * 2**20
MEASURE = """
import sys, resource, zarr
from distboost.inputs.choose import adapter_of, dataset_of
from distboost.data.store.writing import write_store
from distboost.runtime.local import LocalRuntime
folder, chunks, limit = sys.argv[1:]
work = LocalRuntime(2)
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024
small = dataset_of(f"{folder}/small", f"{folder}/y-small", None)
write_store(small, f"{folder}/warm-{chunks}", 255, seed=0, work=work)
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
data = dataset_of(f"{folder}/{chunks}", f"{folder}/y", None)
write_store(data, f"{folder}/store-{chunks}", 255, seed=0, work=work, memory=int(limit))
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak can't be reset here")
def test_memory_stays_within_the_limit(tmp_path):
    """128 MB of raw values, 32 MB of bins, in a process of its own: whatever the chunks, the peak is below 90 MiB."""
    n, d = 1_000_000, 32
    rng = np.random.default_rng(0)
    zarr.create_array(str(tmp_path / "small"), data=rng.normal(size=(500, d)).astype("f4"), chunks=(100, 3))
    zarr.create_array(str(tmp_path / "y-small"), data=rng.integers(0, 3, 500))
    zarr.create_array(str(tmp_path / "y"), data=rng.integers(0, 3, n), chunks=(100_000,))
    band, peaks = rng.normal(size=(n, 4)).astype("f4"), {}
    for name, chunks in {"rows": (32_768, d), "columns": (n, 1), "tall": (250_000, 4)}.items():
        x = zarr.create_array(str(tmp_path / name), shape=(n, d), chunks=chunks, dtype="f4", compressors=None)
        for first in range(0, n, 250_000):
            x[first : first + 250_000] = np.tile(band[first : first + 250_000], d // 4)
        done = Program(MEASURE, tmp_path, name, LIMIT)
        said, errors = done.communicate(timeout=100)
        assert done.returncode == 0, errors
        peaks[name] = int(said)
    assert max(peaks.values()) <= LIMIT, peaks


TRAIN = """
import resource, sys
from distboost import GDMCBoostClassifier
folder, limit = sys.argv[1:]
model = GDMCBoostClassifier(calibration=None, n_estimators=1, n_jobs=2, memory_limit=int(limit), scratch=f"{folder}/scratch")
model.fit(f"{folder}/x", f"{folder}/y")
print(model.memory_plan_.streamed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.soak
def test_a_whole_process_stays_within_its_limit(tmp_path):
    """Chunks of 51 MB beside a sample of 134 MB, libraries included."""
    n, d, chunk, limit = 300_000, 256, 50_000, 650 * 10**6
    rng = np.random.default_rng(0)
    x = zarr.create_array(str(tmp_path / "x"), shape=(n, d), chunks=(chunk, d), dtype="f4")
    for first in range(0, n, chunk):
        x[first : first + chunk] = rng.normal(size=(chunk, d))
    zarr.create_array(str(tmp_path / "y"), data=rng.integers(0, 10, n), chunks=(n,))
    done = Program(TRAIN, tmp_path, limit)
    said, errors = done.communicate(timeout=200)
    assert done.returncode == 0, errors
    streamed, peak = map(int, said.split())
    assert streamed > 0
    assert peak <= limit


def test_what_the_command_says(rows, tmp_path, capsys):
    """A complete store of the same data is used as it is, one of other data is not."""
    from distboost.cli.commands import main

    stored(rows, (50, 5), "zarr", tmp_path)
    arguments = ["bin", "--x", str(tmp_path / "x"), "--y", str(tmp_path / "y"), "--out", str(tmp_path / "s")]
    for said in ("binning takes up to", "complete and was made from the same data"):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--memory-limit", "600MB"])
        assert ended.value.code == 0
        shown = capsys.readouterr()
        assert said in shown.err
        assert "1037 rows of 13 features binned" in shown.out


@pytest.mark.parametrize(
    ("n_rows", "chunk", "n_parallel", "sizes"),
    [
        (1_000_000, None, 2, [62_500] * 16),
        (1_000_000, None, 7, [62_500] * 16),
        (100, None, 3, [34, 34, 32]),
        (65_537, None, 1, [32_769, 32_768]),
        (100_000, 10_000, 1, [50_000, 50_000]),
        (130_000, 30_000, 1, [60_000, 60_000, 10_000]),
        (130_000, 100_000, 1, [65_000, 65_000]),
        (0, None, 2, []),
    ],
)
def test_blocks_are_about_equally_long(n_rows, chunk, n_parallel, sizes, tmp_path, monkeypatch):
    """If chunks are smaller than blocks, blocks end where chunks do."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 65_536)
    X = np.zeros((n_rows, 1), "u1")
    if chunk is not None:
        X = zarr.create_array(tmp_path / "x", data=X, chunks=(chunk, 1))
    found = ingest.block_spans(adapter_of(X, "X").features(), n_parallel)
    assert [stop - first for first, stop in found] == sizes
    assert [first for first, _ in found] == [0, *np.cumsum(sizes)[:-1]][: len(sizes)]
