"""Cells of AnnData: sparse matrices and columns of `obs` in zarr, and AnnData objects in memory or backed by a file.

The encoding is that of https://anndata.readthedocs.io/en/stable/fileformat-prose.html. Nothing here imports anndata.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

from distboost.data.inventory import Probe
from distboost.data.source import Axis, Source, load
from distboost.data.sparse import SparseRows, sound
from distboost.data.stored import ZarrSource
from distboost.data.stored_sparse import CSC, CSR, ENCODING, SparseZarrSource, member
from distboost.errors import DataError, StoreError
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import Input, LazyInput, is_instance, texts
from distboost.inputs.dask_array import DaskInput
from distboost.inputs.sparse import SparseInput
from distboost.inputs.zarr_array import ANNDATA, ZarrInput, attributed, chunkwise, encoded, is_encoded

if TYPE_CHECKING:
    import dask.array as da


class EncodedInput(LazyInput):
    """A group of zarr that AnnData has encoded: a sparse matrix, or a column of `obs`."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return is_encoded(data)

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        found = encoded(data)
        if isinstance(found, zarr.Array):
            return ZarrInput(found, place)
        if found.attrs[ENCODING] == ANNDATA:
            raise DataError(
                f"{place} is an AnnData store without X.",
                remedy="Pass a layer, such as its group 'layers/counts'.",
                where=place,
            )
        return cls(found, place)

    @cached_property
    def names(self) -> np.ndarray | None:
        return attributed(self.data, self._source.shape, self.place) if self._is_matrix else None

    @property
    def _is_matrix(self) -> bool:
        return self.data.attrs[ENCODING] in (CSR, CSC)

    def warnings(self, policy: str) -> list[str]:
        return self.features().warnings(policy)

    def source(self, of_features: bool) -> Source:
        if of_features and not self._is_matrix:
            raise DataError(
                f"{self.place} is a column of AnnData ({self.data.attrs[ENCODING]}), which has labels.",
                remedy="Pass rows of features, such as 'data.zarr/X'.",
                where=self.place,
            )
        if not of_features and self._is_matrix:
            raise DataError(
                f"{self.place} is a sparse matrix ({self.data.attrs[ENCODING]}), not one value per row.",
                remedy="Pass a column, such as 'data.zarr/obs/cell_type'.",
                where=self.place,
            )
        return self._source

    @cached_property
    def _source(self) -> Source:  # one, so that it is listed once
        return (SparseZarrSource if self._is_matrix else ColumnSource)(self.data, self.place)

    @cached_property
    def rows(self) -> da.Array:
        return chunkwise(self.features())


class ColumnSource(Source):
    """A column of `obs` with categories, or with values that may be missing (None)."""

    def __init__(self, group: zarr.Group, place: str):
        self._is_categorical = group.attrs[ENCODING] == "categorical"
        names = ("codes", "categories") if self._is_categorical else ("values", "mask")
        self._codes, self._others = (
            ZarrSource(member(group, name, f"``{place}``"), f"{place}: {name}") for name in names
        )
        if self._is_categorical and self._codes.dtype.kind not in "iu":
            raise StoreError(
                f"{self._codes.place} has the type {self._codes.dtype}, but codes are integers.",
                remedy="Write the column again.",
                where=self._codes.place,
                value=self._codes.dtype,
            )
        if not self._is_categorical and self._codes.shape != self._others.shape:
            raise StoreError(
                f"{self._codes.place} has {self._codes.n_rows} values, but its mask has {self._others.n_rows}.",
                remedy="Write the column again.",
                where=self._codes.place,
                value=self._codes.n_rows,
            )
        self.place, self.shape, self.axes = self._codes.place, self._codes.shape, self._codes.axes
        self.chunk_bytes, self.decodes_again = self._codes.chunk_bytes, True
        self.is_near, self.is_stored = self._codes.is_near, self._codes.is_stored
        self.dtype = self._categories.dtype if self._is_categorical else np.dtype(object)

    @cached_property
    def _categories(self) -> np.ndarray:
        found = self._others.loaded()
        return np.array(found.tolist()) if found.dtype.kind in "OT" else found

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> ColumnPart:
        others = self._categories if self._is_categorical else self._others.part(start, stop)
        return ColumnPart(self._codes.part(start, stop), others, self._is_categorical, self.place)

    def warnings(self, policy: str) -> list[str]:
        # Of a mask, zarr writes no chunk in which no value is missing.
        asked = (self._codes, self._others) if self._is_categorical else (self._codes,)
        return [message for one in asked for message in one.warnings(policy)]

    def is_unchanged(self) -> bool:
        return self._codes.is_unchanged() and self._others.is_unchanged()

    def mark(self) -> Any:
        return self._codes.mark(), self._others.mark()


@dataclass(frozen=True)
class ColumnPart:
    """The address of some values of such a column.

    Attributes
    ----------
    codes, others : ZarrPart or ndarray
        The codes (or values), and all categories (or which of the values are missing).
    is_categorical : bool
    place : str
    """

    codes: Any
    others: Any
    is_categorical: bool
    place: str

    def load(self) -> np.ndarray:
        """Return the values, (n,); missing ones are None. Raise StoreError if there is no category of some code."""
        codes, others = load(self.codes), load(self.others)
        missing = codes < 0 if self.is_categorical else others.astype(bool)
        if self.is_categorical and len(codes) and codes.max() >= len(others):
            raise StoreError(
                f"{self.place} has the code {codes.max()}, but there are {len(others)} categories.",
                remedy="Write the column again.",
                where=self.place,
            )
        if self.is_categorical and not missing.any():
            found: np.ndarray = others[codes]
            return found
        values = np.empty(len(codes), object)
        values[~missing] = (others[codes[~missing]] if self.is_categorical else codes[~missing]).tolist()
        return values if missing.any() else np.array(values.tolist())

    def probe(self) -> Probe | None:
        """Return the address of a listed chunk; None if there is none."""
        found: Probe | None = self.codes.probe() if hasattr(self.codes, "probe") else None
        return found


class AnnDataInput(LazyInput):
    """An AnnData object, or the matrix of one in a file, which becomes the input that is within it.

    A matrix in an HDF5 file is read by this process, some rows at a time.
    """

    @classmethod
    def recognises(cls, data: Any) -> bool:
        is_matrix = is_instance(data, "anndata.abc", "CSRDataset", "CSCDataset")
        return is_matrix or is_instance(data, "anndata", "AnnData")

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        names, matrix = None, data
        if is_instance(data, "anndata", "AnnData"):
            names, matrix = texts(data.var_names.tolist(), place), data.X
        group = getattr(matrix, "group", None)
        if isinstance(group, zarr.Group):
            return EncodedInput(group, place)
        if group is not None or is_instance(matrix, "h5py", "Dataset"):
            return cls(matrix, place, names)
        if matrix is None:
            raise DataError(
                f"{place} is an AnnData object without X.",
                remedy="Pass a layer: adata.layers['counts'].",
                where=place,
            )
        kind = next(kind for kind in (SparseInput, DaskInput, ArrayInput) if kind.recognises(matrix))
        return kind(matrix, place, names)

    def source(self, of_features: bool) -> Source:
        return BackedSource(self.data, self.place)

    @cached_property
    def rows(self) -> da.Array:
        return chunkwise(self.features())


class BackedSource(Source):
    """A matrix whose rows a library reads when they are taken."""

    is_near = True

    def __init__(self, matrix: Any, place: str):
        self._matrix, self.place = matrix, place
        self.shape, self.dtype = tuple(matrix.shape), np.dtype(matrix.dtype)
        self.axes = tuple(Axis(length, 1) for length in self.shape)

    def rows_at_once(self, limit: int) -> int:  # the library divides them as it likes
        return max(limit // (8 * max(self.shape[1], 1)), 1)

    def part(self, start: int, stop: int, columns: tuple[int, int] | None = None) -> Any:
        some = self._matrix[start:stop]
        if isinstance(some, np.ndarray):
            return some if columns is None else some[:, slice(*columns)]
        return SparseRows(sound(some, self.place), self.place).cut(0, stop - start, columns)
