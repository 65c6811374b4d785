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

from distboost.active import pool as pool_module
from distboost.data.source import Source
from distboost.inputs.choose import adapter_of
from tests.active.sessions import committee, learner


class CountingStore(WrapperStore):
    """A store that knows how often each chunk was read."""

    def __init__(self, store):
        super().__init__(store)
        self.reads = Counter()

    async def get(self, key, prototype, byte_range=None):
        if re.match(r"c/", key):
            self.reads[key] += 1
        return await super().get(key, prototype, byte_range)


CHUNKS = [(50, 6), (50, 2), (7, 3), (300, 6)]
WAYS = [{}, {"strategy": "entropy"}, {"strategy": "votes"}, {"diversity": 5}, {"pool_fraction": 0.4}]


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
