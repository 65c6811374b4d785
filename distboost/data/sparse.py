"""Rows in compressed form, as CSR: an entry that is not stored is 0. They become dense a few at a time, where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.data.checks import InfiniteValue, as_real
from distboost.data.source import ArraySource, Axis, Source, spans
from distboost.errors import DataError
from distboost.kernels import sparse
from distboost.rows.stored_bins import held_bytes

DENSE_BYTES = 2**24  # of rows that are dense at a time
PIECE_ENTRIES = 2**20  # stored entries that are converted together
LEAST_ROWS = 64


@dataclass(frozen=True)
class SparseRows:
    """Some rows and columns.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array or csr_matrix of shape (n, n_columns)
        A row may store its columns in any order. StoredEntries of one column add up.
    place : str
        The name of the rows in messages.
    """

    matrix: Any
    place: str

    @property
    def shape(self) -> tuple[int, int]:
        n_rows, n_columns = self.matrix.shape
        return n_rows, n_columns

    @property
    def dtype(self) -> np.dtype:
        found: np.dtype = self.matrix.dtype
        return found

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        """Return some rows, dense."""
        found: np.ndarray = self.matrix[rows].toarray()
        return found

    def cut(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> SparseRows:
        """Return the rows start .. stop - 1 of these, and all columns or columns[0] .. columns[1] - 1."""
        some = self.matrix[start:stop]
        return SparseRows(some if columns is None else some[:, slice(*columns)], self.place)

    def chosen(self, rows: np.ndarray) -> SparseRows:
        """Return the rows of which `rows`, (n,) bool, says so."""
        return SparseRows(self.matrix[np.flatnonzero(rows)], self.place)

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield some dense rows at a time, with their position."""
        for start, stop in spans(0, len(self), rows_together(self, len(self))):
            yield (start, 0), self[start:stop]

    def load(self) -> np.ndarray:
        """Return all rows, dense."""
        return self[:]

    def entries(self) -> Iterator[tuple[int, StoredEntries]]:
        """Yield the stored entries of some rows at a time, with the number of the first row."""
        indptr, start = self.matrix.indptr, 0
        while start < len(self):
            reach = np.searchsorted(indptr, int(indptr[start]) + PIECE_ENTRIES, side="right") - 1
            stop = max(int(reach), start + 1)
            yield start, StoredEntries.of(self.matrix[start:stop], self.place)
            start = stop

    def stores_twice(self) -> bool:
        """Whether a row stores some column twice."""
        return any(
            sparse.stores_twice(found.indptr, found.columns, self.shape[1]) for _, found in self.entries()
        )


def most_held(indptr: np.ndarray, n_columns: int, block: int) -> int:
    """Return the most bytes of a row's bins in blocks of so many rows, of which bins of 0 need not be stored."""
    firsts = np.arange(0, len(indptr) - 1, max(block, 1))
    n_rows = np.diff([*firsts, len(indptr) - 1])
    stored = -(-np.diff(indptr[[*firsts, -1]]).astype(np.int64) // n_rows)
    return held_bytes(int(stored.max(initial=0)), n_columns)


def sound(matrix: Any, what: str) -> Any:
    """Return a matrix of scipy.sparse as CSR; raise DataError if an index is out of range: scipy itself would not notice."""
    try:
        if hasattr(matrix, "check_format"):  # formats that are compressed
            matrix.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"{what} is no valid sparse matrix: {error}.", remedy="Make it again.") from error
    return matrix.tocsr()


def rows_together(rows: Any, most: int) -> int:
    """Return how many rows to use together: `most`, unless they are to become dense, and would take more memory."""
    if not isinstance(rows, SparseRows):
        return most
    n = DENSE_BYTES // max(rows.shape[1] * rows.dtype.itemsize, 1)
    return max(min(most, n // LEAST_ROWS * LEAST_ROWS), LEAST_ROWS)


@dataclass(frozen=True)
class StoredEntries:
    """The stored entries of some rows, as kernels read them.

    Attributes
    ----------
    indptr : ndarray of shape (n + 1,), int64
        The entries of row i are those from indptr[i] to indptr[i + 1] - 1.
    columns : ndarray of shape (m,), int64
    values : ndarray of shape (m,), float64
    """

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, matrix: Any, place: str) -> StoredEntries:
        values = as_real(
            matrix.data,
            place,
            lambda error: DataError(f"{place} cannot be read as numbers: {error}.", where=place),
        )
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), values)

    def check_finite(self, place: str, first_row: int, first_column: int) -> None:
        """Raise DataError for the first infinite value; the first row and column have these numbers."""
        infinite = np.flatnonzero(np.isinf(self.values))
        if len(infinite):
            rows = np.searchsorted(self.indptr, infinite, side="right") - 1
            row, column, value = min(
                zip(
                    rows.tolist(),
                    self.columns[infinite].tolist(),
                    self.values[infinite].tolist(),
                    strict=True,
                )
            )
            raise InfiniteValue(place, first_row + row, first_column + column, value).error()


class SparseSource(Source):
    """Rows in compressed form in this process's memory."""

    is_near = True
    copies = 0

    def __init__(self, matrix: Any, place: str):
        self._rows, self.place = SparseRows(matrix, place), place
        self.shape, self.dtype = self._rows.shape, self._rows.dtype
        self.axes = tuple(Axis(length, 1) for length in self.shape)

    def bin_bytes(self, block: int) -> int:
        return most_held(self._rows.matrix.indptr, self.shape[1], block)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> SparseRows:
        return self._rows.cut(start, stop, columns)

    def mark(self) -> Any:
        matrix = self._rows.matrix
        return [ArraySource(one, self.place).mark() for one in (matrix.indptr, matrix.indices, matrix.data)]
