"""Lazy prediction on arrays that are not in memory: the result is a dask array."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import delayed

from distboost.data.checks import as_numbers, refuse_date_types
from distboost.data.sparse import SparseRows
from distboost.errors import DataError
from distboost.inputs.base import LazyInput
from distboost.inputs.dask_array import block_rows

if TYPE_CHECKING:  # its import takes half a second and 14 MB, which rows in memory do not need
    import dask.array as da


def map_rows(
    X: LazyInput,
    function: Callable[[Any, Any], np.ndarray],
    n_features: int,
    *,
    argument: Any,
    shape: tuple[int, ...],
    dtype: Any,
) -> da.Array:
    """Return a dask array (n, *shape) of `dtype`: function(rows, argument) for the rows, (m, n_features), of each chunk."""
    array: Any = X.rows
    refuse_date_types(array.dtype, "X")
    if array.ndim != 2:
        raise DataError(
            f"``X`` has {array.ndim} dimensions (its shape is {array.shape}), but the model is expecting 2: rows and "
            f"{n_features} features.",
            value=array.ndim,
            remedy="Reshape your data.",
        )
    if array.shape[1] != n_features:
        raise DataError(
            f"``X`` has {array.shape[1]} features (its shape is {array.shape}), but the model is expecting {n_features} "
            "features as input."
        )

    def apply(block: Any, both: tuple[Any, ...]) -> np.ndarray:
        function, argument = both
        rows = block_rows(block)
        answer: np.ndarray = function(
            rows if isinstance(rows, SparseRows) else as_numbers(rows, "X"), argument
        )
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
