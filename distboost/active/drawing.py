"""Rows of the pool that are drawn at random: whole chunks, and of their rows those with the smallest random numbers.

So what is not drawn is not read. The draw depends on the pool's chunks and on the random numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np

from distboost.active.pool import Pool
from distboost.active.selection import RankedRows
from distboost.kernels.random import uniforms

MOST_READ = 1.2  # rows of the drawn chunks, as a multiple of the rows wanted
ROUNDING = 1e-9  # of a number of chunks
RANDOM_ROWS = 2**20  # rows whose random numbers are in memory at a time
SAMPLED_FRACTION, FEWEST_CHUNKS = 0.01, 10  # of a pool, from which a sample comes

Span = tuple[int, int]


class Drawn(NamedTuple):
    """A part of a pool.

    Attributes
    ----------
    spans : list of tuple of int
        The first and last (exclusive) rows of the chunks, ascending.
    share : float
        Of their rows, those whose random number is below this.
    """

    spans: list[Span]
    share: float

    @classmethod
    def of(cls, pool: Pool, fraction: float, draw: np.uint64) -> Self:
        """Draw a fraction of a pool: one of each run of neighbouring chunks, and some of their rows."""
        chunks = pool.chunks
        n = fraction * len(chunks)
        m = max(min(math.ceil(n - ROUNDING), int(MOST_READ * n)), 1)
        first = np.arange(m + 1) * len(chunks) // m
        place = first[:-1] + (uniforms(draw, pool.n_rows, m) * np.diff(first)).astype(np.int64)
        return cls([chunks[i] for i in place.tolist()], min(n / m, 1.0))

    @classmethod
    def with_open(
        cls, pool: Pool, fraction: float, draw: np.uint64, excluded: np.ndarray, wanted: int
    ) -> Self:
        """Draw a fraction of a pool. It doubles until so many rows of it are not `excluded`, which takes no reading."""
        while True:
            drawn = cls.of(pool, fraction, draw)
            if fraction == 1 or drawn._has(draw, excluded, wanted):
                return drawn
            fraction = min(2 * fraction, 1.0)

    def _has(self, draw: np.uint64, excluded: np.ndarray, wanted: int) -> bool:
        found = 0
        for first, stop in self.spans:
            found += len(open_rows(first, stop - first, excluded, draw, self.share))
            if found >= wanted:
                return True
        return False


def sampled_rows(pool: Pool, excluded: np.ndarray, draw: np.uint64, n: int) -> np.ndarray:
    """Return n random rows of a pool, except those `excluded`, to be read: of all rows in memory, else of a few chunks."""
    fraction = max(SAMPLED_FRACTION, MOST_READ * n / pool.n_rows, FEWEST_CHUNKS / len(pool.chunks))
    drawn = Drawn.with_open(pool, min(fraction, 1.0), draw, excluded, n)
    return random_rows(drawn.spans, excluded, draw, n)


def random_rows(spans: Iterable[Span], excluded: np.ndarray, draw: np.uint64, n: int) -> np.ndarray:
    """Return the n rows of these spans with the smallest random numbers, except those `excluded` (ascending)."""
    best = RankedRows.empty()
    for start, stop in spans if n else ():
        for first in range(start, stop, RANDOM_ROWS):
            size = min(RANDOM_ROWS, stop - first)
            rows = open_rows(first, size, excluded)
            lot = uniforms(draw, first, size)[rows - first]
            best = best.merged(RankedRows(-lot, lot, rows, np.zeros((len(rows), 0)))).best(n)
    return best.rows


def open_rows(
    first: int, n: int, excluded: np.ndarray, draw: np.uint64 | None = None, share: float = 1.0
) -> np.ndarray:
    """Return rows first .. first + n - 1 without those excluded, and of these the ones whose random number is below `share`."""
    is_open = np.ones(n, bool) if share == 1 or draw is None else uniforms(draw, first, n) < share
    is_open[rows_between(excluded, first, first + n) - first] = False
    return first + np.flatnonzero(is_open)


def rows_between(rows: np.ndarray, first: int, stop: int) -> np.ndarray:
    """Return those of the rows (ascending) that lie in first .. stop - 1."""
    return rows[np.searchsorted(rows, first) : np.searchsorted(rows, stop)]
