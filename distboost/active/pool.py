"""The pool: the rows that may be asked for, read block by block in this process or on workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np

from distboost.data.categories import resolved
from distboost.data.checks import InfiniteValue, as_numbers, check_finite
from distboost.data.source import Source, load
from distboost.errors import DataError
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import LazyInput, NearInput
from distboost.inputs.choose import adapter_of
from distboost.io.phases import SILENT, Phases
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
