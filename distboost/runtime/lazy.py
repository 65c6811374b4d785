"""Prediction on arrays that are not in memory: a dask array in, a dask array out, chunk by chunk."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
import zarr
from dask import delayed

from distboost.data.profile import as_numbers
from distboost.data.sources import as_source, is_dask, load, open_zarr
from distboost.errors import DataError


def map_rows(
    X: Any,
    function: Callable[[np.ndarray, Any], np.ndarray],
    n_features: int,
    argument: Any,
    shape: tuple[int, ...],
    dtype: Any,
) -> da.Array:
    """function(rows, argument) for the rows of each chunk: a dask array of shape (n, *shape)."""
    array = as_dask(X)
    if array.ndim != 2 or array.shape[1] != n_features:
        raise DataError(
            f"X has {array.shape[1] if array.ndim > 1 else 0} features (its shape is {array.shape}), but the model is expecting "
            f"{n_features} features as input."
        )
    array = array.rechunk({1: -1})

    def apply(rows: np.ndarray, both: tuple) -> np.ndarray:
        function, argument = both
        return function(as_numbers(rows, "X"), argument)

    return array.map_blocks(
        apply,
        delayed((function, argument), pure=False),
        dtype=dtype,
        chunks=(array.chunks[0], *((length,) for length in shape)),
        drop_axis=None if shape else 1,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
    )


def as_dask(X: Any) -> da.Array:
    """The dask array of a dask collection, a zarr array, or a path or URL of one."""
    if isinstance(X, (str, os.PathLike)):
        X = open_zarr(X, "X")
    if isinstance(X, zarr.Array):
        return da.from_array(X, chunks=X.shards or X.chunks, lock=False, name=False)
    return X if hasattr(X, "chunks") else X.to_dask_array(lengths=True)


def loaded(X: Any) -> np.ndarray:
    """All rows of a lazy array, in memory."""
    if is_dask(X):
        return np.asarray(X)
    source = as_source(X, "X")
    return load(source.part(0, source.n_rows))
