"""How often the pool is read."""

from __future__ import annotations

import re
import weakref
from collections import Counter

import dask.array as da
import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, WrapperStore

from distboost.active import labelling as labelling_module
from distboost.active import pool as pool_module
from distboost.active import query as query_module
from distboost.data.source import Source
from distboost.inputs.choose import adapter_of
from tests.active.sessions import committee, learner


class CountingStore(WrapperStore):
    """A store that knows how often each chunk was read, and how many bytes."""

    def __init__(self, store):
        super().__init__(store)
        self.reads = Counter()
        self.n_bytes = 0

    async def get(self, key, prototype, byte_range=None):
        found = await super().get(key, prototype, byte_range)
        if re.match(r"c/", key):
            self.reads[key] += 1
            self.n_bytes += len(found)
        return found


CHUNKS = [(50, 6), (50, 2), (7, 3), (300, 6)]
WAYS = [{}, {"strategy": "entropy"}, {"strategy": "averaged-margin"}, {"diversity": 5}]


@pytest.fixture
def counted(problem, tmp_path):
    """counted(chunks): the pool, and a counter of what is read of it."""

    def made(chunks):
        store = CountingStore(LocalStore(tmp_path))
        array = zarr.create_array(store, data=problem[0], chunks=chunks)
        return array, store.reads

    return made


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_a_query_reads_each_chunk_once(chunks, way, counted, problem):
    pool, reads = counted(chunks)
    found = learner(pool, **way).teach(range(40), problem[1][:40])
    assert found.estimator_.n_iter_ == 3
    assert reads
    for _ in range(2):
        reads.clear()
        found.query()
        assert set(reads.values()) == {1}
        assert len(reads) == np.prod([-(-n // size) for n, size in zip(pool.shape, chunks, strict=True)])


@pytest.fixture
def large(tmp_path):
    """A pool of 8,000 rows in 200 chunks, its labels, and the store that counts what is read of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 6))
    store = CountingStore(LocalStore(tmp_path))
    pool = zarr.create_array(store, data=X, chunks=(40, 6), compressors=None)
    store.reads.clear()
    return pool, (X[:, 0] > 0) + (X[:, 1] > 0), store


def chunks_of(reads) -> list[int]:
    return sorted(int(key.split("/")[1]) for key in reads)


@pytest.mark.parametrize("form", ["zarr", "dask"])
def test_what_a_fraction_reads(form, large):
    """A tenth of the pool: some of its chunks, all over the pool, each once, and others for the next query."""
    pool, y, store = large
    found = learner(da.from_zarr(pool) if form == "dask" else pool, pool_fraction=0.1)
    found.teach(range(40), y[:40]).estimator_  # noqa: B018 (trains)
    read = []
    for _ in range(3):
        store.reads.clear()
        store.n_bytes = 0
        rows = found.query()
        assert store.n_bytes <= 0.12 * pool.nbytes
        assert set(store.reads.values()) == {1}
        chunks = chunks_of(store.reads)
        assert set(rows // 40) <= set(chunks)
        assert [chunk // 10 for chunk in chunks] == list(range(20))
        read.append(tuple(chunks))
    assert len(set(read)) == 3


@pytest.mark.parametrize("fraction", [1e-9, 0.001, 0.3])
def test_a_fraction_with_too_few_open_rows_is_widened_before_it_is_read(fraction, large):
    pool, y, store = large
    found = learner(pool, pool_fraction=fraction, diversity=1).teach(range(0, 8000, 2), y[::2])
    found.estimator_  # noqa: B018 (trains)
    store.reads.clear()
    assert len(found.query(900)) == 900
    assert set(store.reads.values()) == {1}
    assert 45 <= len(store.reads) <= 120  # of 20 open rows each
    store.reads.clear()
    assert len(found.query(3100)) == 3100
    assert found.n_open_ == 0
    assert set(store.reads.values()) == {1}


def test_a_fraction_of_one_chunk_is_drawn_row_by_row(problem, tmp_path):
    X, y = problem
    pools = X, zarr.create_array(str(tmp_path / "x"), data=X, chunks=(300, 2))
    rows, same = (learner(pool, pool_fraction=0.3).teach(range(40), y[:40]).query() for pool in pools)
    assert rows.tolist() == same.tolist()
    assert set(rows) != set(learner(X).teach(range(40), y[:40]).query())


def test_the_first_rows_are_read_of_few_chunks(large, monkeypatch):
    pool, _, store = large
    monkeypatch.setattr(query_module, "START_ROWS", 80)
    rows = learner(pool).query()
    chunks = chunks_of(store.reads)
    assert set(store.reads.values()) == {1}
    assert [chunk // 20 for chunk in chunks] == list(range(10))
    assert set(rows // 40) <= set(chunks)
    assert learner(pool).query().tolist() == rows.tolist()
    assert learner(pool, random_state=1).query().tolist() != rows.tolist()
    store.reads.clear()
    monkeypatch.setattr(query_module, "START_ROWS", 2000)
    learner(pool).query()
    assert 50 <= len(store.reads) <= 60


def test_the_rows_that_say_when_to_stop_are_read_of_few_chunks(large, monkeypatch):
    pool, y, store = large
    monkeypatch.setattr(labelling_module, "STOP_ROWS", 100)
    found = learner(pool, pool_fraction=0.01, start="random").teach(range(40), y[:40])
    found.run(y, max_labels=50, stabilised=0.99)
    assert len(store.reads) <= 1 + 10 + 2 + 10  # taught, compared, searched, taught


def test_a_query_reads_each_chunk_once_of_a_dask_array(problem):
    reads = Counter()

    def load(block, block_info=None):
        reads[tuple(block_info[0]["chunk-location"])] += 1
        return block

    pool = da.from_array(problem[0], chunks=(40, 3)).map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    found = learner(pool).teach(range(40), problem[1][:40])
    assert found.estimator_.n_iter_ == 3
    assert sorted(reads) == [(0, 0), (0, 1)]  # those of the rows taught
    reads.clear()
    found.query()
    assert set(reads.values()) == {1}
    assert len(reads) == 8 * 2


def test_training_reads_the_chunks_of_new_rows_once(counted, problem):
    pool, reads = counted((10, 6))
    y = problem[1]
    found = learner(pool).teach([5, 203, 1, 299], y[[5, 203, 1, 299]])
    assert found.estimator_.n_iter_ == 3
    assert reads == {"c/0/0": 1, "c/20/0": 1, "c/29/0": 1}
    reads.clear()
    found.teach([101, 2], y[[101, 2]])
    assert found.estimator_.n_iter_ == 3
    assert reads == {"c/0/0": 1, "c/10/0": 1}
    reads.clear()
    assert found.estimator_.n_iter_ == 3
    assert not reads


def test_random_rows_read_nothing(counted, problem):
    pool, reads = counted((50, 6))
    initial = learner(pool, start="random")
    initial.query()
    initial.query(7)  # nothing has been taught
    control = learner(pool, strategy="random").teach(range(40), problem[1][:40])
    control.query()
    one_class = learner(pool, start="random").teach([1, 2], [0, 0])
    one_class.query()
    assert not reads


class Block(np.ndarray):
    """An array that can be referred to weakly."""


def test_one_block_is_held_at_a_time(problem, small_blocks):
    """In one thread, of a pool that is computed while it is read."""
    blocks, held = [], []

    def load(block):
        made = block.copy().view(Block)
        blocks.append(weakref.ref(made))
        held.append(sum(known() is not None for known in blocks))
        return made

    pool = da.from_array(problem[0], chunks=(30, 6)).map_blocks(load, dtype=float, meta=np.empty((0, 0)))
    found = learner(pool, committee()).teach(range(20), problem[1][:20])
    assert found.estimator_.n_iter_ == 3
    held.clear()
    found.query()
    assert held == [1] * 10


@pytest.mark.parametrize(
    ("block_bytes", "expected"),
    [
        (2**24, [(5, [0, 45, 94]), (100, [0, 99]), (250, [0])]),  # within a chunk
        (
            30 * 3 * 8,
            [(5, [0]), (50, [0]), (99, [0]), (100, [0]), (199, [0]), (250, [0])],
        ),  # of a chunk that is too large
    ],
)
def test_rows_are_read_in_parts_of_single_chunks(block_bytes, expected, monkeypatch):
    monkeypatch.setattr(pool_module, "BLOCK_BYTES", block_bytes)
    if block_bytes < 2**24:
        monkeypatch.setattr(Source, "rows_at_once", lambda source, limit: limit // (source.shape[1] * 8))
    X = np.arange(900).reshape(300, 3)
    source = adapter_of(da.from_array(X, chunks=(100, 2)), "X").column()
    rows = np.array([5, 50, 99, 100, 199, 250])
    found = list(pool_module._read_plan(source, rows))
    assert [(part.shape[0], wanted.tolist()) for part, wanted in found] == [
        (wanted[-1] + 1, wanted) for _, wanted in expected
    ]
    loaded = [pool_module._load_rows(part, wanted) for part, wanted in found]
    np.testing.assert_array_equal(np.concatenate(loaded), X[rows])
    assert [first[0, 0] // 3 for first in loaded] == [first for first, _ in expected]
