"""Blocks on disk: what is kept of them in a scratch file, how many are in memory at a time, and what fails how."""

from __future__ import annotations

import gc
import mmap
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.data import memory
from distboost.data.blocks import BinnedRows
from distboost.errors import StoreError
from distboost.io import ahead
from distboost.io.ahead import STEP, n_loaded
from distboost.rows import stored_bins
from distboost.rows.messages import NO_SPLITS, HistogramQuestion, RootQuestion, Splits
from distboost.rows.stored_bins import StoredBins
from distboost.rows.sums import Scale
from distboost.runtime import holdings
from distboost.runtime import holdings as window_module
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Grown, Key
from distboost.runtime.holdings import Stream
from distboost.runtime.shard import Shard
from distboost.runtime.streaming.block import StreamedBlock
from distboost.runtime.streaming.scratch import N_FILES, Scratch
from distboost.threads import Threads
from tests import disks
from tests.runtime.streamed_blocks import MISSING_BIN, Alive, N, Writes, grow_and_update, made, rows_of, shard

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="arrays are mapped on Linux only")


@pytest.fixture
def scratch(tmp_path):
    found = Writes(tmp_path)
    yield found
    found.close()


# The scratch file.


def test_arrays_are_read_as_they_were_written(scratch):
    rng = np.random.default_rng(0)
    arrays = [
        array
        for _ in range(N_FILES)
        for array in (
            rng.normal(size=(7, 3)),
            rng.integers(-(2**60), 2**60, 5000),
            rng.normal(size=(1000, 4)).astype("float32"),
            np.zeros((0, 4), np.int32),
            np.array(rng.normal()),
        )
    ]
    extents = [scratch.write(array) for array in arrays]
    for array, extent in reversed([*zip(arrays, extents, strict=True)]):
        found = scratch.read(extent)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert_array_equal(found, array)
        found += 1  # it is the caller's


def test_an_array_takes_its_own_place_again(scratch):
    first = scratch.write(np.zeros(1000))
    second = scratch.write(np.ones(1000))
    size = scratch.size
    for value in (2.0, 3.0):
        assert scratch.write(np.full(1000, value), first) == first
    assert scratch.size == size
    assert_array_equal(scratch.read(first), np.full(1000, 3.0))
    assert_array_equal(scratch.read(second), np.ones(1000))
    other = scratch.write(np.zeros(900), first)  # of another shape
    assert other[:2] not in (first[:2], second[:2])
    assert_array_equal(scratch.read(second), np.ones(1000))


def test_a_scratch_file_has_no_name(scratch, tmp_path):
    scratch.write(np.zeros(1000))
    assert os.listdir(tmp_path) == []


def test_arrays_in_turn_lie_in_different_files(scratch):
    """Otherwise threads would wait for each other: the system has one thread at a time write to a file."""
    extents = [scratch.write(np.full(10, n)) for n in range(2 * N_FILES)]
    assert [extent.file for extent in extents] == [*range(N_FILES)] * 2
    for n, extent in enumerate(extents):
        assert_array_equal(scratch.read(extent), np.full(10, n))


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(getattr(array, "obj", None), mmap.mmap)


@on_linux
def test_an_array_that_stays_as_it_is_is_mapped(scratch):
    extents = [scratch.write(np.arange(n)) for n in (1, 512, 1000, 5000)]
    for extent in extents:
        found = scratch.read(extent, to_change=False)
        assert is_mapped(found)
        assert_array_equal(found, np.arange(*extent.shape))
        found[:] = -1  # changes neither the file nor what others read
        assert_array_equal(scratch.read(extent, to_change=False), np.arange(*extent.shape))
        assert_array_equal(scratch.read(extent), np.arange(*extent.shape))


@pytest.mark.parametrize("n", [0, 1000])
@pytest.mark.parametrize(
    "madvise", [None, lambda *given: -1], ids=["not this system", "pages that cannot be loaded"]
)
def test_an_array_that_cannot_be_mapped_is_read(scratch, monkeypatch, n, madvise):
    monkeypatch.setattr(ahead, "_MADVISE", madvise)
    extent = scratch.write(np.arange(n))
    found = scratch.read(extent, to_change=False)
    assert not is_mapped(found)
    assert_array_equal(found, np.arange(n))


@on_linux
def test_mapped_arrays_take_the_place_of_memory_that_waits_for_the_next_ones(scratch, tmp_path):
    """Unless the plan has counted both."""
    with memory.returned_when_freed():
        extents = [scratch.write(np.full(memory.LARGE, n, np.uint8)) for n in range(3)]
        copies = [scratch.read(extent) for extent in extents[:2]]
        del copies
        assert [len(arrays) for arrays in memory._spare.values()] == [2]
        for n, left in ((0, 1), (1, 0), (2, 0)):
            assert_array_equal(scratch.read(extents[n], to_change=False), np.full(memory.LARGE, n))
            assert len(memory._spare[memory.LARGE]) == left
        roomy = Scratch(str(tmp_path), can_map=True)
        extent = roomy.write(np.zeros(memory.LARGE, np.uint8))
        roomy.read(extent)
        assert is_mapped(roomy.read(extent, to_change=False))
        assert len(memory._spare[memory.LARGE]) == 1
        roomy.close()


@pytest.mark.parametrize("to_change", [False, True])
def test_a_truncated_scratch_file(scratch, tmp_path, to_change):
    kept, cut = scratch.write(np.zeros(1000)), scratch.write(np.zeros(1000))
    os.ftruncate(scratch._files[cut.file].fileno(), cut.offset + 4000)
    assert_array_equal(scratch.read(kept, to_change), np.zeros(1000))
    with pytest.raises(StoreError, match=rf"{tmp_path} ends at byte {cut.offset + 4000}: it was truncated"):
        scratch.read(cut, to_change)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    with disks.small_disk(tmp_path / "small", "1m") as place:
        yield place


def test_a_full_disk(small_disk):
    scratch = Scratch(str(small_disk))
    kept = scratch.write(np.arange(50_000))
    said = rf"the disk of {small_disk} is full: .* need at least \d\.\d MB there, but .* are free\. .*scratch=\.\.\."
    with pytest.raises(StoreError, match=said):
        scratch.write(np.zeros(100_000))
    assert_array_equal(scratch.read(kept), np.arange(50_000))
    scratch.close()
    with Threads(1) as threads:
        found = shard(threads, 400, str(small_disk), n_rows=10_000)
        with pytest.raises(StoreError, match=said):
            grow_and_update(found)
        found.close()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_no_place_for_a_scratch_file(place, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(
        StoreError, match=rf"cannot create a scratch file in {re.escape(str(tmp_path / place))}, "
    ):
        Scratch(str(tmp_path / place))


# Blocks.


def test_a_tree_of_many_nodes():
    """Split one leaf after another: there is a place for the span of every node."""
    block = made(BinnedRows(0, np.arange(80, dtype=np.uint8)[:, None], np.zeros(80, np.int32), np.ones(80)))
    block.start_tree(None)
    for n in range(70):  # the right child is split again
        block.split(Splits.of([(2 * n, 0, n, False, 2 * n + 1, 2 * n + 2)]), np.array([255]))
        assert len(block.spans) > 2 * n + 2
    expected = [[0, 80], *(span for n in range(70) for span in ([n, n + 1], [n + 1, 80]))]
    assert_array_equal(block.spans[:141], expected)
    assert_array_equal(block.order, np.arange(80))


def test_a_block_keeps_what_was_changed(scratch):
    streamed = StreamedBlock(lambda: rows_of(0), made, scratch)
    block = streamed.open()
    assert block.buffers == {}  # nothing is made before it is asked for
    assert_array_equal(block.scores, np.zeros((N, 4)))
    streamed.put_back(block)
    assert scratch.written == []  # nor written before it is changed

    block = streamed.open()
    block.scores[:] = 1.5
    block.changed.add("scores")
    block.start_tree(np.arange(0, N, 2), Grown(is_gathered=False))
    of_node = Splits.of([(0, 1, 4, False, 1, 2)])
    block.split(of_node, MISSING_BIN)
    block.buffer("statistics", (N, 8), np.int64, overwrite=True)[:] = np.arange(8)
    order = block.order.copy()
    in_leaves = [array.copy() for array in block.rows_in(np.array([1, 2]))]
    assert_array_equal(in_leaves, [np.arange(N), block.bins[:, 1] > 4])  # those that were not drawn, too
    streamed.put_back(block)
    assert sorted(scratch.written) == [(N // 2,), (N, 4), (N, 8)]
    scratch.written.clear()

    block = streamed.open()
    assert scratch.loaded == []
    assert_array_equal(block.spans[:3], [[0, N // 2], [0, (block.bins[::2, 1] <= 4).sum()],
                                         [(block.bins[::2, 1] <= 4).sum(), N // 2]])  # fmt: skip
    assert_array_equal(block.kept("statistics"), np.tile(np.arange(8), (N, 1)))
    assert scratch.loaded == [(N, 8)]  # what is not asked for is not read
    assert_array_equal(block.order, order)
    assert_array_equal(block.rows_in(np.array([1, 2])), in_leaves)
    assert_array_equal(block.scores, np.full((N, 4), 1.5, "float32"))
    assert block.scores.dtype == np.float32
    block.scores[0] = 7.0
    streamed.put_back(block)
    assert scratch.written == []
    size = scratch.size
    for value in (2.0, 3.0):
        block = streamed.open()
        block.scores[:] = value
        block.changed.add("scores")
        streamed.put_back(block)
    assert scratch.written == [(N, 4)] * 2
    assert scratch.size == size
    assert_array_equal(streamed.open().scores, np.full((N, 4), 3.0))


def test_a_buffer_made_anew_is_not_read(scratch):
    """Another one is as it was left."""
    streamed = StreamedBlock(lambda: rows_of(0), made, scratch)
    block = streamed.open()
    block.buffer("distances", (N, 2), np.float64)[:, 1] = 4.0
    block.buffer("binarized", (N,), np.float64, overwrite=True)[:] = 5.0
    streamed.put_back(block)
    block = streamed.open()
    block.buffer("binarized", (N,), np.float64, overwrite=True)
    assert scratch.loaded == []
    assert_array_equal(block.buffer("distances", (N, 2), np.float64)[:, 1], np.full(N, 4.0))
    assert scratch.loaded == [(N, 2)]


def test_an_array_that_stays_in_memory_is_not_written(scratch):
    streamed = StreamedBlock(lambda: rows_of(0), made, scratch, {"order"})
    block = streamed.open()
    block.start_tree(None)
    block.split(Splits.of([(0, 1, 4, False, 1, 2)]), MISSING_BIN)
    block.scores[:] = 1.0
    block.changed.add("scores")
    order = block.order.copy()
    streamed.put_back(block)
    assert scratch.written == [(N, 4)]
    block = streamed.open(["order"])
    assert block.loaded == {"order"}
    assert_array_equal(block.order, order)
    block.start_tree(np.arange(0, N, 2), Grown(is_gathered=False))
    streamed.put_back(block)
    assert_array_equal(streamed.open().order, np.arange(0, N, 2))
    assert scratch.loaded == []


class ReadWhenUsed:
    """Rows that count how often their bins are read."""

    def __init__(self):
        self._rows, self.n_read = rows_of(0), 0

    def __getattr__(self, name):
        self.n_read += name == "bins"
        return getattr(self._rows, name)


@pytest.mark.parametrize("few", [True, False])
def test_few_bins_are_read_from_the_store_once(few, scratch, monkeypatch):
    monkeypatch.setattr(stored_bins, "FEWEST_FEATURES", 1)
    monkeypatch.setattr(stored_bins, "MOST_STORED", few)
    rows = ReadWhenUsed()
    streamed = StreamedBlock(lambda: rows, made, scratch, usual=np.array([3, 0, 9], np.uint8))
    streamed.put_back(streamed.open())
    before = rows.n_read
    for _ in range(2):
        block = streamed.open()
        assert isinstance(block.held, StoredBins) == few
        assert_array_equal(block.bins, rows_of(0).bins)
        assert block.n_rows == N
        streamed.put_back(block)
    assert (rows.n_read == before) == few
    assert scratch.written == [(stored_bins.PACKED_STEP,)] * few


def test_as_many_places_stay_in_memory_as_are_allotted(tmp_path, monkeypatch):
    """The places in the tree of the rows of two blocks. If one of them is gone, those of another."""
    scratch_files = []
    monkeypatch.setattr(
        holdings, "Scratch", lambda *given: scratch_files.append(Writes(given[0])) or scratch_files[0]
    )
    allotment = Allotment(0, 2, str(tmp_path), ordered=2 * N + N // 2)
    readings = [Reading(rows_of, (number,), N) for number in range(5)]
    with Threads(2) as threads:
        found = Shard([readings[:4]], Layout(MISSING_BIN, 4, 4, "float64"), threads, allotment)

        def written():
            scratch_files[0].written.clear()
            found.histogram(HistogramQuestion(RootQuestion(None, Scale(0.0, 0), None, 0.0), NO_SPLITS), None)
            return scratch_files[0].written

        assert written() == [(N,)] * 2
        found.drop([Key(0, 1), Key(0, 3)])
        assert written() == [(N,)]
        found.take([(Key(0, 4), readings[4])])
        assert written() == [(N,)]
        found.close()


# Streams.


def test_loads_from_a_disk_are_counted(tmp_path):
    """But for a file system without a disk, such as one in memory. What is in the system's cache is not loaded."""
    path = tmp_path / "file"
    path.write_bytes(bytes(2**22))
    before = n_loaded()
    path.read_bytes()
    assert n_loaded() == before
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    path.read_bytes()
    on_disk = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True)
    assert n_loaded() > before or on_disk.stdout.strip() in ("tmpfs", "overlayfs")


def test_the_system_loads_what_will_be_read_if_the_last_pass_has_read_from_the_disk(
    scratch, tmp_path, monkeypatch
):
    n_loaded = iter([5, 5, 5, 9, 9])
    monkeypatch.setattr(window_module, "n_loaded", lambda: next(n_loaded))
    paths = [tmp_path / str(number) for number in range(5)]
    for path in paths:
        path.write_bytes(bytes(2 * STEP + 9))
    streamed = Alive(lambda number: rows_of(number)._replace(files=(paths[number],))).streamed(scratch, 5)
    stream, ahead = Stream(2, 2), []

    def noted(file, offset, n_bytes, advice):
        assert advice == os.POSIX_FADV_WILLNEED
        ahead.append((os.path.basename(os.readlink(f"/proc/self/fd/{file}")), offset, n_bytes))

    def work(number, block):
        block.scores[:] += 1.0
        block.changed.add("scores")
        return block.scores[0, 0]

    monkeypatch.setattr(os, "posix_fadvise", noted)
    for n_visits in (1.0, 2.0):
        assert stream.map(work, streamed) == [n_visits] * 5
        assert ahead == []
    paths[3].unlink()  # whoever reads it says so
    assert stream.map(work, streamed) == [3.0] * 5
    n_ahead = len(ahead)
    assert stream.map(work, streamed) == [4.0] * 5
    assert len(ahead) == n_ahead
    stream.close()
    parts = [(0, STEP), (STEP, STEP), (2 * STEP, 9)]
    of_files = sorted(part for part in ahead if part[0] in "01234")
    assert of_files == [(name, *part) for name in "24" for part in parts]
    of_scores = [(offset, n) for name, offset, n in ahead if name not in "01234"]
    assert of_scores
    assert {n for _, n in of_scores} == {N * 4 * 4}


def test_what_a_pass_does_not_change_may_be_mapped_while_it_is_in_the_cache(scratch, monkeypatch):
    n_loaded = iter([5, 5, 5, 5, 5, 9])
    monkeypatch.setattr(window_module, "n_loaded", lambda: next(n_loaded))
    streamed = Alive().streamed(scratch, 5)
    stream = Stream(2, 1)

    def write(number, block):
        block.scores = np.full((N, 4), 2.0, np.float32)
        block.buffer("statistics", (N, 8), np.int32)[:] = 3

    def add(number, block):
        block.scores[:] += block.kept("statistics")[:, :4]
        block.changed.add("scores")
        return block.scores[0, 0]

    stream.map(write, streamed, "write")
    stream.map(write, streamed, "write")
    assert stream.map(add, streamed, "add") == [5.0] * 5  # nobody knows yet what this work changes
    assert scratch.unchanged == []
    assert stream.map(add, streamed, "add") == [8.0] * 5
    assert scratch.unchanged == [(N, 8)] * 5
    assert stream.map(add, streamed, "add") == [11.0] * 5  # the pass before has read from the disk
    assert scratch.unchanged == [(N, 8)] * 5
    stream.close()


@on_linux
def test_a_mapped_array_that_is_changed_after_all_is_written_back(scratch, monkeypatch):
    monkeypatch.setattr(window_module, "n_loaded", lambda: 5)
    streamed = Alive().streamed(scratch, 5)
    with closing(Stream(2, 1)) as stream:

        def write(number, block):
            block.buffer("statistics", (N, 8), np.int32)[:] = 3

        def change_the_last(number, block):
            found = block.kept("statistics")
            if block.first == 4 * N:
                assert is_mapped(found)
                found += 1
                block.changed.add("statistics")

        stream.map(write, streamed)
        stream.map(lambda *_: None, streamed, "reads")
        stream.map(change_the_last, streamed, "reads")
        assert stream.map(lambda _, block: block.kept("statistics").max(), streamed) == [3, 3, 3, 3, 4]


def test_a_system_that_cannot_read_ahead(scratch, monkeypatch):
    extent = scratch.write(np.ones(10))

    def fails(*given):
        raise OSError("not supported")

    monkeypatch.setattr(os, "posix_fadvise", fails)
    scratch.read_ahead(extent)
    monkeypatch.delattr(os, "posix_fadvise")
    scratch.read_ahead(extent)
    assert_array_equal(scratch.read(extent), np.ones(10))


@pytest.fixture
def stream():
    found = Stream(3, 2)
    yield found
    found.close()


def test_blocks_come_in_order_and_are_kept(stream, scratch):
    streamed = Alive().streamed(scratch, 20)

    def work(number, block):
        time.sleep(0.002 * (block.first // N % 3))
        block.scores[:] += block.first
        block.changed.add("scores")
        return block.first, float(block.scores[0, 0])

    for visit in (1, 2):
        assert stream.map(work, streamed) == [(number * N, visit * number * N) for number in range(20)]


def test_no_more_blocks_are_in_memory_than_the_window_holds(scratch, tmp_path):
    """And no more are processed than there are threads."""
    at_work, lock = [], threading.Lock()

    def work(number, block):
        with lock:
            at_work.append(number)
            assert len(at_work) <= n_threads
        time.sleep(0.002)
        with lock:
            at_work.remove(number)

    for window, n_threads, most in ((2, 2, 2), (3, 1, 3), (5, 2, 5), (1, 4, 2)):
        alive, stream = Alive(), Stream(window, n_threads)
        stream.map(work, alive.streamed(scratch, 20))
        gc.collect()
        assert alive.most == most
        assert all(ref() is None for ref in alive.refs)
        stream.close()


def test_what_one_block_needs_is_read_before_the_next_is_processed(scratch):
    stream, streamed = Stream(2, 1), Alive().streamed(scratch, 4)
    for _, block in streamed:
        opened = block.open()
        opened.scores[:] = 1.0
        opened.changed.add("scores")
        opened.buffer("distances", (N, 2), np.float64)
        block.put_back(opened)
    stream.map(lambda number, block: block.scores.sum(), streamed)
    there = stream.map(lambda number, block: (set(block.buffers), block.scores.sum())[0], streamed)
    assert there[0] == set()
    assert there[2:] == [{"scores"}] * 2
    stream.close()


@pytest.mark.parametrize("place", ["reading", "work"])
def test_a_failure_reaches_the_caller_and_leaves_no_thread_at_work(stream, scratch, place):
    at_work, lock, fails = [0], threading.Lock(), threading.Event()

    def read(number):
        if place == "reading" and number == 4:
            fails.set()
            raise StoreError("block 4 is damaged")
        return rows_of(number)

    def work(number, block):
        with lock:
            at_work[0] += 1
        if place == "work" and block.first == 4 * N:
            fails.set()
            raise StoreError("block 4 is damaged")
        if block.first > 4 * N:  # on a busy machine, the thread of block 4 may be late
            fails.wait(0.5)
            time.sleep(0.05)
        with lock:
            at_work[0] -= 1
        done.append(block.first)

    done = []
    with pytest.raises(StoreError, match="block 4 is damaged") as caught:
        stream.map(work, Alive(read).streamed(scratch, 30))
    assert caught.value.block == 0  # the key that `Alive` gives to all
    assert set(done) >= {0, N, 2 * N, 3 * N}
    assert len(done) < 20
    assert at_work[0] == (1 if place == "work" else 0)  # the one that failed
    # Nothing is left over of it.
    good = Alive().streamed(scratch, 5)
    assert stream.map(lambda number, block: block.first, good) == [0, N, 2 * N, 3 * N, 4 * N]
