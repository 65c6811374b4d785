"""Blocks and shards with rows of a scratch file."""

from __future__ import annotations

import os
import threading
import weakref

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.kernels import gains
from distboost.runtime.base import Allotment, Layout, Reading
from distboost.runtime.block import Block
from distboost.runtime.local import LocalRows
from distboost.runtime.shard import Shard
from distboost.runtime.streaming.block import StreamedBlock
from distboost.runtime.streaming.scratch import Scratch
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.margin import MarginWeights, Residuals

N = 100  # rows of a block
MISSING_BIN = np.full(3, 9)


class Writes(Scratch):
    """A scratch file that tells what was written to it and read from it."""

    def __init__(self, directory):
        super().__init__(str(directory))
        self.written, self.loaded = [], []
        self.unchanged = []  # those of `loaded` that will not be changed

    def write(self, array, extent=None):
        self.written.append(array.shape)
        return super().write(array, extent)

    def read(self, extent, to_change=True):
        self.loaded.append(extent.shape)
        if not to_change:
            self.unchanged.append(extent.shape)
        return super().read(extent, to_change)

    @property
    def size(self):
        return sum(os.fstat(file.fileno()).st_size for file in self._files)


def rows_of(number):
    rng = np.random.default_rng(number)
    bins = rng.integers(0, 10, (N, 3)).astype(np.uint8)
    return BinnedRows(number * N, bins, rng.integers(0, 4, N).astype(np.int32), np.ones(N))


def made(rows, **how):
    return Block(rows, **{"n_classes": 4, "n_scores": 4, "score_dtype": "float32", **how})


class Alive:
    """How many blocks of those made are in memory."""

    def __init__(self, read=rows_of):
        self.read, self.refs, self.most, self.lock = read, [], 0, threading.Lock()

    def __call__(self, rows, **how):
        with self.lock:
            block = made(rows, **how)
            self.refs = [ref for ref in self.refs if ref() is not None] + [weakref.ref(block)]
            self.most = max(self.most, len(self.refs))
        return block

    def streamed(self, scratch, n):
        return [
            (0, StreamedBlock(lambda number=number: self.read(number), self, scratch)) for number in range(n)
        ]


def shard(threads, n_blocks, directory, resident=0, window=2, n_rows=N, read=rows_of):
    rng = np.random.default_rng(0)
    bins = rng.integers(0, 10, (n_rows, 3)).astype(np.uint8)

    def rows(number):
        if n_rows == N:
            return read(number)
        return BinnedRows(number * n_rows, bins, bins[:, 0].astype(np.int32) // 3, np.ones(n_rows))

    readings = [Reading(rows, (number,), n_rows) for number in range(n_blocks)]
    return Shard(
        [readings], Layout(MISSING_BIN, 4, 4, "float64"), threads, Allotment(resident, window, directory)
    )


def grow_and_update(found):
    rows = LocalRows(found, Layout(MISSING_BIN, 4, 4, "float64"))
    rows.begin(MarginWeights(0.5))
    grow = TreeGrower(rows, GrowthLimits(max_depth=2))
    statistic = Residuals(MarginWeights(0.5))
    for _ in range(2):
        tree = grow(statistic, gains.DIRECTION)
        rows.update([tree.step(np.ones((tree.n_leaves, 4)))], next_root=grow.next_root(statistic))
    return rows
