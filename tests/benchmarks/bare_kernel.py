"""The time of the histogram kernel alone, a lower bound for a round of training."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from distboost.kernels.histogram import MOST_ROWS, RowAddresses, Target, narrow_histogram, tile_for
from distboost.kernels.simd import padded
from distboost.runtime.parts import feature_groups, tiles_of
from distboost.threads import Threads

N_BINS = 256
BLOCK_BYTES = 2**23  # of bins: about what a training run has in one block


def time_histogram(job: dict, mark: Any) -> None:
    """Marks the seconds of one pass over n_rows rows, by one thread and by all; the fastest of several passes."""
    n_rows, n_features = job["n_rows"], job["n_features"]
    n_channels = padded(job["n_classes"] + 1)  # a number for each class, and a count
    random = np.random.default_rng(0)
    bins = random.integers(0, N_BINS, (n_rows, n_features), np.uint8)
    statistics = random.integers(-(2**17), 2**17, (n_rows, n_channels), np.int32)
    order = np.arange(n_rows, dtype=np.int32)
    for n_threads in sorted({1, Threads().n}):
        with Threads(n_threads) as threads:
            run_pass(bins[:1000], order[:1000], statistics[:1000], threads)  # compiles
            seconds = []
            for _ in range(job["repeats"]):
                start = time.perf_counter()
                run_pass(bins, order, statistics, threads)
                seconds.append(time.perf_counter() - start)
        mark("pass", n_threads=n_threads, seconds=min(seconds))


def run_pass(bins: np.ndarray, order: np.ndarray, statistics: np.ndarray, threads: Threads) -> None:
    """The histogram of all rows, as one node, in as many sums as there are threads."""
    n_rows, n_features = bins.shape
    offsets = np.arange(0, (n_features + 1) * N_BINS, N_BINS)
    features, slots, none = np.arange(n_features), np.zeros(1, np.int64), np.zeros(0, np.int64)
    groups = feature_groups(features, offsets, tiles_of(features, offsets, statistics.shape[1]))
    size = max(1024, BLOCK_BYTES // n_features)

    def add(number: int) -> None:
        pool = np.zeros((1, int(offsets[-1]), statistics.shape[1]), np.int64)
        first, last = n_rows * number // threads.n, n_rows * (number + 1) // threads.n
        for start in range(first, last, size):
            spans = np.array([[start]], np.int32), np.array([[min(start + size, last)]], np.int32)
            rows = RowAddresses.of([(bins, order, statistics)])
            for group in groups:
                tile = tile_for(Target(group, offsets, slots, pool, False))
                narrow_histogram(rows, *spans, MOST_ROWS, group, none, offsets, False, tile, slots, pool)

    threads.map(add, range(threads.n))
