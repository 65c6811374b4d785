"""The pool: the rows that may be asked for, read block by block in this process or on workers.

Rows are drawn from it at random: whole chunks, and of their rows those with the smallest random numbers. So what is not drawn is
not read. The draw depends on the pool's chunks and on the random numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from distboost.active.selection import RankedRows
from distboost.data.categories import resolved
from distboost.data.checks import InfiniteValue, as_numbers, check_finite
from distboost.data.source import Source, load
from distboost.errors import DataError
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import LazyInput, NearInput
from distboost.inputs.choose import adapter_of
from distboost.io.phases import SILENT, Phases
from distboost.kernels.random import uniforms
from distboost.runtime.base import Runtime
from distboost.runtime.choose import IN_PROCESS, open_runtime

BLOCK_BYTES = 2**24  # size of the rows that one task holds, unless a single chunk is larger
MOST_CHUNKS = 1024  # that rows are drawn by


class Pool:
    """The rows of anything that `fit` takes.

    Parameters
    ----------
    X : anything that `fit` takes, of shape (n_rows, n_features)
    categorical_features : as of an estimator
        The columns of a data frame that have labels, beside those of a categorical dtype.

    Attributes
    ----------
    names : ndarray of shape (n_features,), object, or None
        The names of the features.
    labels : mapping of int to tuple
        The labels of such columns. The rows that are scored have codes in their place, those that are taken the labels.
    categorical : tuple of int
        The columns that have categories.
    """

    def __init__(self, X: Any, categorical_features: Any = "from_dtype"):
        self._given = adapter_of(X, "pool")
        coded = self._given.coded(categorical_features)
        self.source = coded.features()
        self.names, self.labels = self._given.names, coded.labels
        if self.labels and isinstance(self._given, LazyInput):
            raise DataError(
                f"the column {X.columns[min(self.labels)]!r} of the pool has labels, and the pool is a data frame of Dask, "
                "whose rows are taken without labels.",
                remedy="Pass pool.compute(), or codes in place of labels.",
                value=X.columns[min(self.labels)],
            )
        if len(self.source.shape) != 2 or 0 in self.source.shape:
            raise DataError(
                f"{self.source.place} has the shape {self.source.shape}, expected (rows, features), at least 1 of each.",
                where=self.source.place,
                value=self.source.shape,
            )
        self.n_rows, self.n_features = self.source.shape
        named = resolved(categorical_features, self.n_features, self.names)
        self.categorical = tuple(sorted({*named, *self.labels}))
        self.place = self.source.place
        if self.source.array is not None:
            as_numbers(self.source.array[:1], "pool")  # raises DataError unless it holds numbers

    @property
    def is_local(self) -> bool:
        """Whether the rows are in the memory of this process. Then it scores them itself."""
        return self.source.is_near

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """The first and last (exclusive) row of each chunk, or of neighbouring ones together, if there are very many.

        Rows in memory are one chunk.
        """
        if self.is_local:
            return [(0, self.n_rows)]
        return list(self.source.axes[0].spans(0, self.n_rows, self.n_rows // MOST_CHUNKS))

    def spans(
        self, width: int = 1, within: Iterable[tuple[int, int]] | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield the first and last (exclusive) row of each block, of all rows or `within` some chunks.

        Blocks are small enough that `width` further numbers per row fit beside the values.
        """
        axis = self.source.axes[0]
        size = max(BLOCK_BYTES // (8 * max(self.n_features, width)), 1)
        most = max(self.source.rows_at_once(BLOCK_BYTES), size)
        for first, last in [(0, self.n_rows)] if within is None else within:
            for start, stop in axis.spans(first, last, size):
                yield from ((a, min(a + most, stop)) for a in range(start, stop, most))

    def runtime(self, estimator: Any, phases: Phases = SILENT) -> AbstractContextManager[Runtime]:
        """The runtime that scores the rows: this process if they are in its memory, else where the estimator trains."""
        client = IN_PROCESS if self.is_local else estimator.client
        n_jobs = estimator.n_jobs if estimator.n_jobs != -1 else None
        return open_runtime(client, n_jobs, estimator.worker_timeout, phases=phases)

    def take(self, rows: np.ndarray, runtime: Runtime, *, coded: bool = False) -> NearInput:
        """Return these rows, in this order, (n, n_features), with the names of their features.

        `coded`: as numbers, with codes in place of labels.
        """
        array = self.source.array
        found = as_numbers(take_rows(self.source, rows, runtime) if array is None else array[rows], "pool")
        infinite = np.argwhere(np.isinf(found))
        if len(infinite):
            row, column = map(int, infinite[0])
            name = None if self.names is None else self.names[column]
            raise InfiniteValue(self.place, int(rows[row]), column, float(found[row, column])).error(name)
        return (None if coded else self._given.taken(rows)) or ArrayInput(found, "X", self.names)


def take_rows(source: Source, rows: np.ndarray, runtime: Runtime) -> np.ndarray:
    """Return these rows of an array that is not in memory, in this order."""
    order = np.argsort(rows, kind="stable")
    found = np.concatenate(list(runtime.each(_load_rows, _read_plan(source, rows[order]))))
    taken = np.empty_like(found)
    taken[order] = found
    return taken


def _read_plan(source: Source, rows: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Yield what to read to get `rows`, ascending: parts of single chunks, each with the offsets of the rows wanted of it."""
    most = max(source.rows_at_once(BLOCK_BYTES), 1)
    start = 0
    while start < len(rows):
        first = int(rows[start])
        end = min(source.axes[0].end(first, 1), first + most)
        stop = int(np.searchsorted(rows, end))
        wanted = rows[start:stop] - first
        yield source.part(first, first + int(wanted[-1]) + 1), wanted
        start = stop


def _load_rows(part: Any, wanted: np.ndarray) -> np.ndarray:
    found: np.ndarray = load(part)[wanted]
    return found


def finite_rows(part: Any, place: str, first: int) -> np.ndarray:
    """Return the rows of a part as numbers (n, n_features); raise DataError if one is infinite. NaN is a missing value."""
    X = as_numbers(load(part), place)
    check_finite(X, place, first)
    return X


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
