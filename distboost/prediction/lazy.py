"""Lazy prediction on arrays that are not in memory: the result is a dask array."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import delayed
from distributed import futures_of
from distributed.system import MEMORY_LIMIT

from distboost.data.axes import spans
from distboost.data.checks import as_numbers
from distboost.data.dask_part import DaskPart, dense
from distboost.data.dates import refuse_date_types
from distboost.data.forks import check_default_scheduler
from distboost.data.graphs import keeper_of
from distboost.data.kinds import is_dask_frame
from distboost.data.names import without_names
from distboost.data.parts import load
from distboost.data.source import Source
from distboost.data.sources import ZarrSource, as_features, collection, is_dask, rows_at_once
from distboost.errors import DataError

if TYPE_CHECKING:  # its import takes half a second and 14 MB, which rows in memory do not need
    import dask.array as da

BLOCK_BYTES = 2**26  # bytes of whole rows that are read at once, unless a chunk of the array is larger
# The largest part of the memory for an array in chunks of columns, which is kept in memory to assemble rows.
KEPT = 0.25


def map_rows(
    X: Any,
    function: Callable[[np.ndarray, Any], np.ndarray],
    n_features: int,
    argument: Any,
    shape: tuple[int, ...],
    dtype: Any,
) -> da.Array:
    """Return a dask array (n, *shape) of `dtype`: function(rows, argument) for the rows, (m, n_features), of each chunk."""
    array = as_dask(X)
    refuse_date_types(array.dtype, "X")
    if array.ndim != 2:
        raise DataError(
            f"``X`` has {array.ndim} dimensions (its shape is {array.shape}), but the model is expecting 2: rows and "
            f"{n_features} features. Reshape your data."
        )
    if array.shape[1] != n_features:
        raise DataError(
            f"``X`` has {array.shape[1]} features (its shape is {array.shape}), but the model is expecting {n_features} "
            "features as input."
        )
    array = _whole_rows(array)

    def apply(rows: np.ndarray, both: tuple[Any, ...]) -> np.ndarray:
        function, argument = both
        answer: np.ndarray = function(as_numbers(dense(rows, "a block of X"), "X"), argument)
        return answer.astype(dtype, copy=False)

    mapped: da.Array = array.map_blocks(
        apply,
        delayed((function, argument), pure=False),
        dtype=dtype,
        chunks=(array.chunks[0], *((length,) for length in shape)),
        drop_axis=None if shape else 1,
        new_axis=list(range(2, 1 + len(shape))) or None,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
    )
    return mapped


def as_dask(X: Any) -> da.Array:
    """Return the dask array of a dask collection, a zarr array, or a path or URL of one. It has chunks of known sizes."""
    check_default_scheduler()
    if not is_dask(X):
        source = as_features(X, "X")
        assert isinstance(source, ZarrSource)
        rows = rows_at_once(source, BLOCK_BYTES) if len(source.shape) == 2 else source.chunk_rows
        chunks = (rows, *source.shape[1:])
        from dask.array import from_array

        found: da.Array = from_array(_Chunkwise(source), chunks=chunks, lock=False, name=False, asarray=False)
        return found
    array: da.Array = collection(without_names(X), "X", True)
    if is_dask_frame(X):  # its partitions have unknown lengths
        keeper = keeper_of({"X": X})
        with nullcontext() if keeper is None else keeper.client.as_current():
            array._chunks = (tuple(map(int, X.map_partitions(len).compute())), *array.chunks[1:])
    return array


class _Chunkwise:
    """A zarr array that reads blocks of rows chunk by chunk: zarr itself decodes all chunks of a block at once."""

    def __init__(self, source: ZarrSource):
        source.inventory  # noqa: B018 (lists the array here, not in each process that reads)
        self.source = source
        self.shape, self.dtype, self.ndim = source.shape, source.dtype, len(source.shape)

    def __getitem__(self, key: tuple[slice, ...]) -> np.ndarray:
        rows, *rest = key
        start, stop, _ = rows.indices(self.shape[0])
        return load(self.source.part(start, stop))[(slice(None), *rest)]


def _whole_rows(array: da.Array) -> Any:
    """Return the array in chunks of whole rows.

    From chunks of columns, Dask makes these by computing all chunks and keeping them in memory. If they do not fit in memory, the
    chunks are computed again for each block of rows instead, and only that block is kept.
    """
    large = array.nbytes > MEMORY_LIMIT * KEPT  # False if its size is unknown
    if len(array.chunks[1]) < 2:
        return array
    from dask.array import blockwise, concatenate, from_delayed

    if not large or futures_of(array):  # Dask would cast all chunks to the type of the first
        width = {"k": array.shape[1]}
        options = {"dtype": array.dtype, "meta": array._meta, "new_axes": width, "concatenate": False}
        return blockwise(_side_by_side, "ik", array, "ij", **options)
    source = as_features(array, "X")
    step = rows_at_once(source, BLOCK_BYTES)
    stretches = source.axes[0].spans(0, source.n_rows, step)
    pieces = [piece for start, stop in stretches for piece in spans(start, stop, step)]
    # A part is computed by one task: Dask does not share its chunks with other tasks.
    compute = delayed(load, pure=False)
    joined: da.Array = concatenate(
        [from_delayed(compute(source.part(a, b)), (b - a, array.shape[1]), array.dtype) for a, b in pieces]
    )
    return joined


def _side_by_side(chunks: list[Any]) -> np.ndarray:
    """Return chunks of the same rows as one array of a type that holds the values of all."""
    return np.concatenate([dense(chunk, "a block of X") for chunk in chunks], axis=1)


def loaded(source: Source) -> np.ndarray:
    """Load all rows of a source into memory; those of a dask array by the scheduler that computes it by default."""
    part = source.part(0, source.n_rows)
    return part.anywhere().load() if isinstance(part, DaskPart) else load(part)
