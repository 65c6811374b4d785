"""Sparse rows in zarr, as AnnData writes them: a group of the arrays `data`, `indices` and `indptr`.

The entries are sorted by rows (CSR) or by columns (CSC). A part reads exactly the chunks of the first two arrays that hold its
rows, or its columns. So a part of some rows of a CSC reads all columns that it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from scipy.sparse import csc_array, csr_array

from distboost.data.inventory import Probe
from distboost.data.source import Axis, Source, load
from distboost.data.sparse import LEAST_ROWS, SparseRows, most_held
from distboost.data.stored import ZarrSource
from distboost.errors import StoreError

CSR, CSC = "csr_matrix", "csc_matrix"
ENCODING = "encoding-type"
BAND_COLUMNS = 4096  # of CSR that are scanned together, at least


class SparseZarrSource(Source):
    """A sparse matrix in a zarr group. An entry that is not stored is 0.

    Parameters
    ----------
    group : zarr.Group
    place : str

    Raises
    ------
    StoreError
        If the matrix is damaged.
    """

    decodes_again = True

    def __init__(self, group: zarr.Group, place: str):
        url = str(group.store_path).removeprefix("file://").rstrip("/")
        self.place, self.is_csc = f"``{place}`` ({url})", group.attrs[ENCODING] == CSC
        self._values, self._indices, self._starts = (
            ZarrSource(member(group, name, self.place), f"{place}: {name}")
            for name in ("data", "indices", "indptr")
        )
        for array, kinds in ((self._values, "biufc"), (self._indices, "iu"), (self._starts, "iu")):
            if array.dtype.kind not in kinds:
                expected = "integers" if kinds == "iu" else "numbers"
                raise self._damaged(
                    f"{array.stored.basename} has the type {array.dtype}, expected {expected}"
                )
        self.shape, self.dtype = _shape(group, self.place), _native(self._values.dtype)
        n_rows, n_columns = self.shape
        longest = max(n_rows, 1), max(min(n_columns, BAND_COLUMNS), 1)
        if self.is_csc:
            self.axes = Axis(n_rows, longest[0]), self._cut()
        else:
            self.axes = self._cut(), Axis(n_columns, longest[1])
        self.chunk_bytes = self._values.chunk_bytes + self._indices.chunk_bytes
        self.is_near = self._values.is_near
        self.is_stored = not self.is_near
        entry = self.dtype.itemsize + self._indices.dtype.itemsize + 16  # as stored, and as kernels read it
        self.copies = max(-(-entry * self._fullest() // max(self.dtype.itemsize * 100, 1)), 1)

    @property
    def n_entries(self) -> int:
        """The number of stored entries."""
        return self._values.n_rows

    @cached_property
    def _indptr(self) -> np.ndarray:
        """Where the entries of each row (of each column, in CSC) begin, (n + 1,) int64; raise StoreError unless it can be so."""
        found, n = self._starts.loaded().astype(np.int64), self.shape[self.is_csc]
        if found.shape != (n + 1,):
            raise self._damaged(f"indptr has the shape {found.shape}, expected ({n + 1},)")
        if self._indices.shape != self._values.shape:
            raise self._damaged(f"indices has the shape {self._indices.shape}, but data {self._values.shape}")
        falls = np.flatnonzero(np.diff(found) < 0)
        if len(falls):
            at = int(falls[0])
            raise self._damaged(f"indptr falls from {found[at]} to {found[at + 1]} at {at + 1}")
        if (found[0], found[-1]) != (0, self.n_entries):
            raise self._damaged(
                f"indptr begins with {found[0]} and ends with {found[-1]}, expected 0 and {self.n_entries}"
            )
        return found

    def _fullest(self) -> int:
        """Return the largest percentage of stored entries in some rows that are read together; in CSC, in all rows."""
        (n_rows, n_columns), indptr = self.shape, self._indptr
        if self.is_csc:
            return -(-100 * self.n_entries // max(n_rows * n_columns, 1))
        n = max(min(LEAST_ROWS, n_rows), 1)
        most = int((indptr[n:] - indptr[:-n]).max(initial=0))
        return -(-100 * most // max(n * n_columns, 1))

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"{self.place}: {what}.",
            remedy="Write the matrix again, or restore it from a copy.",
            where=self.place,
        )

    def _cut(self) -> Axis:
        """Return the axis of the compressed rows or columns: divided where chunks of their entries end."""
        axis, n = self._values.axes[0], self.shape[self.is_csc]
        ends = np.searchsorted(self._indptr, np.arange(0, axis.length, axis.chunk))
        cuts = np.unique([0, *np.minimum(ends, n), n])
        return Axis(n, int(np.diff(cuts).max(initial=1)), tuple(cuts.tolist()))

    def bin_bytes(self, block: int) -> int:
        return super().bin_bytes(block) if self.is_csc else most_held(self._indptr, self.shape[1], block)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> SparsePart:
        along, across = (start, stop), columns or (0, self.shape[1])
        if self.is_csc:
            along, across = across, along
        indptr = self._indptr[along[0] : along[1] + 1]
        entries = int(indptr[0]), int(indptr[-1])
        return SparsePart(
            self._values.part(*entries), self._indices.part(*entries), indptr - indptr[0], along[0], across,
            self.shape[not self.is_csc], self.is_csc, self.dtype, self.place,
        )  # fmt: skip

    @property
    def _arrays(self) -> tuple[ZarrSource, ...]:
        return self._values, self._indices, self._starts

    def warnings(self, policy: str) -> list[str]:
        return [message for array in self._arrays for message in array.warnings(policy)]

    def is_unchanged(self) -> bool:
        return all(array.is_unchanged() for array in self._arrays)

    def mark(self) -> Any:
        return [array.mark() for array in self._arrays]


def _native(dtype: np.dtype) -> np.dtype:
    """Return a type of which scipy has sparse matrices, and which holds the same numbers."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype.newbyteorder("=")


def member(group: zarr.Group, name: str, place: str) -> zarr.Array[Any]:
    """Return an array of one dimension of a group that AnnData has encoded; raise StoreError if there is none."""
    found = group.get(name)
    if not isinstance(found, zarr.Array) or found.ndim != 1:
        raise StoreError(
            f"{place} is encoded as {group.attrs[ENCODING]}, but has no array {name!r} of one dimension.",
            remedy="Write the matrix again.",
            where=place,
            value=name,
        )
    return found


def _shape(group: zarr.Group, place: str) -> tuple[int, int]:
    found: Any = group.attrs.get("shape")
    if not (
        isinstance(found, list) and len(found) == 2 and all(isinstance(n, int) and n >= 0 for n in found)
    ):
        raise StoreError(
            f"{place}: its attribute ``shape`` is {found!r:.100}, expected the numbers of rows and of columns.",
            remedy="Correct it.",
            where=place,
            value=found,
        )
    return found[0], found[1]


@dataclass(frozen=True)
class SparsePart:
    """The address of some rows and columns.

    Attributes
    ----------
    values, indices : ZarrPart or ndarray
        The entries of whole rows (of whole columns, in CSC).
    indptr : ndarray of shape (n + 1,), int64
        Where those of each row (column) begin.
    first : int
        The number of the first of these rows (columns).
    across : tuple of int
        The first and the last (exclusive) of the columns (rows) that are wanted.
    width : int
        The number of all of them.
    is_csc : bool
    dtype : numpy.dtype
    place : str
        The name of the matrix in messages.
    """

    values: Any
    indices: Any
    indptr: np.ndarray
    first: int
    across: tuple[int, int]
    width: int
    is_csc: bool
    dtype: np.dtype
    place: str

    @property
    def shape(self) -> tuple[int, ...]:
        shape = len(self.indptr) - 1, self.across[1] - self.across[0]
        return shape[::-1] if self.is_csc else shape

    def compressed(self) -> SparseRows:
        """Read the entries; raise StoreError if one is beyond the matrix."""
        indices, values = load(self.indices), load(self.values).astype(self.dtype, copy=False)
        beyond = np.flatnonzero((indices < 0) | (indices >= self.width))
        if len(beyond):
            at = int(beyond[0])
            row = self.first + int(np.searchsorted(self.indptr, at, side="right")) - 1
            of, other = ("column", "row") if self.is_csc else ("row", "column")
            raise StoreError(
                f"{self.place}: {of} {row} has an entry of the {other} {indices[at]}, but there are {self.width}.",
                remedy="Write the matrix again, or restore it from a copy.",
                where=self.place,
                value=of,
            )
        n, (a, b) = len(self.indptr) - 1, self.across
        if self.is_csc:
            found = csc_array((values, indices, self.indptr), shape=(self.width, n))[a:b].tocsr()
        else:
            found = csr_array((values, indices, self.indptr), shape=(n, self.width))[:, a:b]
        return SparseRows(found, self.place)

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield some dense rows at a time, with their position."""
        yield from self.compressed().pieces()

    def load(self) -> np.ndarray:
        """Return the rows, dense."""
        return self.compressed().load()

    def probe(self) -> Probe | None:
        """Return the address of a listed chunk; None if there is none."""
        found: Probe | None = self.values.probe() if hasattr(self.values, "probe") else None
        return found
