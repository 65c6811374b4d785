"""Shards whose rows stream: what they hold, and what a round reads and writes."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.errors import StoreError
from distboost.kernels import gains
from distboost.rows.sums import Reduced
from distboost.runtime import holdings
from distboost.runtime.streaming.scratch import N_FILES
from distboost.threads import Threads
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.margin import ClassPairs, MarginWeights, Residuals
from tests.runtime.streamed_blocks import Alive, N, Writes, grow_and_update, rows_of, shard


def test_a_shard_holds_its_window(monkeypatch, tmp_path):
    """Whatever it is asked: and its resident blocks."""
    alive = Alive()
    monkeypatch.setattr(holdings, "Block", alive)
    with Threads(2) as threads:
        found = shard(threads, 12, str(tmp_path), resident=250, window=3)
        assert len(found.blocks) == 2
        grow_and_update(found)
        assert 2 < alive.most <= 2 + 3
        found.close()


def test_blocks_that_stream_share_the_accumulators_of_the_threads(monkeypatch, tmp_path):
    """More threads read blocks than there are accumulators."""
    found, add = [], ClassPairs.add

    def initial(self, n_leaves, n_classes):
        found.append(np.zeros(self.shape(n_leaves, n_classes), np.int64))
        return Reduced(found[-1], np.zeros(0))

    def slowly(*arguments):
        time.sleep(0.01)
        add(*arguments)

    monkeypatch.setattr(ClassPairs, "initial", initial)
    monkeypatch.setattr(ClassPairs, "add", slowly)
    with Threads(2) as threads:
        streamed = shard(threads, 20, str(tmp_path), window=6)
        rows = grow_and_update(streamed)
        T = rows.sums(ClassPairs(MarginWeights(0.5)), np.array([0]))
        assert 1 <= len(found) <= 2
        found.clear()
        streamed.close()
        resident = shard(threads, 20, str(tmp_path), resident=20 * N)
        assert_array_equal(grow_and_update(resident).sums(ClassPairs(MarginWeights(0.5)), np.array([0])), T)
        resident.close()


class Counted:
    """Rows that count which arrays are used."""

    def __init__(self, rows, reads):
        self._rows, self._reads = rows, reads

    def __getattr__(self, name):
        if name in ("bins", "labels", "weights", "values"):
            self._reads[name] += 1
        found = getattr(self._rows, name)
        setattr(self, name, found)
        return found


def test_what_a_round_reads_and_writes(monkeypatch, tmp_path):
    """As docs/design.md says, for each block: no array is read or written that a pass does not use."""
    n_blocks, reads, files = 6, Counter(), []

    class File(Writes):
        def __init__(self, directory, *how):
            super().__init__(directory)
            files.append(self)

    monkeypatch.setattr(holdings, "Scratch", File)
    weighting = MarginWeights(0.5)
    with Threads(2) as threads:
        found = shard(threads, n_blocks, str(tmp_path), read=lambda number: Counted(rows_of(number), reads))
        rows = grow_and_update(found)
        reads.clear()
        files[0].loaded.clear()
        files[0].written.clear()
        statistic, grow = Residuals(weighting), TreeGrower(rows, GrowthLimits(max_depth=2))
        tree = grow(statistic, gains.DIRECTION)  # one pass: the update has summed the root
        rows.sums(ClassPairs(weighting), tree.leaves)
        rows.update([tree.step(np.ones((tree.n_leaves, 4)))], next_root=grow.next_root(statistic))
        found.close()
    scores, vectors, order = (N, 4), (N, 8), (N,)
    per_block = {name: n / n_blocks for name, n in reads.items()}
    assert per_block == {"bins": 3, "labels": 2}
    loaded, written = (
        {shape: n / n_blocks for shape, n in Counter(shapes).items()}
        for shapes in (files[0].loaded, files[0].written)
    )
    assert loaded == {vectors: 1, scores: 2, order: 3}
    assert written == {vectors: 1, scores: 1, order: 3}


def test_a_closed_shard_leaves_no_thread_and_no_file(tmp_path):
    def left():
        links = [link for link in map(_link, os.listdir("/proc/self/fd")) if link.startswith(str(tmp_path))]
        return links, [t.name for t in threading.enumerate() if t.name.startswith("distboost-stream")]

    with Threads(1) as threads:
        found = shard(threads, 6, str(tmp_path))
        grow_and_update(found)
        files, running = left()
        assert len(files) == N_FILES
        assert running
        found.close()
    assert left() == ([], [])
    assert os.listdir(tmp_path) == []


def _link(descriptor):
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # closed meanwhile
        return ""


def test_a_block_that_cannot_be_read_fails_the_question(tmp_path):
    broken = []

    def read(number):
        if number in broken:
            raise StoreError(f"rows {number * N} to {number * N + N - 1} cannot be read")
        return rows_of(number)

    with Threads(2) as threads:
        found = shard(threads, 8, str(tmp_path), resident=200, read=read)
        broken.append(5)
        with pytest.raises(StoreError, match="rows 500 to 599 cannot be read"):
            grow_and_update(found)
        broken.clear()
        assert grow_and_update(found).calls["update"] == 2
        found.close()
