"""The columns of a data frame as numbers: their type, and the numbers of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from distboost.data.dates import date_error
from distboost.data.real import as_real
from distboost.errors import DataError

_OF_128_BITS = (nw.Int128, nw.UInt128)  # NumPy has no such type


def common_dtype(dtypes: list[np.dtype]) -> np.dtype:
    """Return the dtype of a block of columns of these dtypes."""
    return np.result_type(*dtypes) if dtypes else np.dtype(np.float64)


def dtype_of(column: nw.Series[Any], place: str) -> np.dtype:
    """Return the NumPy dtype of a column's numbers; raise DataError if they are not numbers."""
    kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
    if kind.is_temporal():
        raise date_error(f"the column {column.name!r} of {place}", str(kind))
    if kind in (nw.Categorical, nw.Enum):
        raise DataError(
            f"the column {column.name!r} of {place} has categories ({kind}), which the model or the pool does not split as such. "
            "Pass their codes, such as those of sklearn.preprocessing.OrdinalEncoder, or drop the column."
        )
    if kind in (nw.Float32, nw.Float64):
        return np.dtype(np.float32 if kind == nw.Float32 else np.float64)
    if kind.is_integer() and kind not in _OF_128_BITS:
        # A missing value becomes NaN. The empty frame that stands for a Dask one does not show its missing values.
        has_none = isinstance(native, np.dtype) or (len(column) > 0 and not column.null_count())
        return np.dtype(str(kind).lower()) if has_none else np.dtype(np.float64)
    if kind in (nw.Boolean, nw.Object, nw.Unknown) or kind.is_numeric():
        return np.dtype(np.float64)
    raise _not_numbers(column.name, place, str(kind))


def viewed(column: nw.Series[Any]) -> Any:
    """Return a column as an array if that takes no copy, else the column."""
    native: Any = column.to_native()
    if not (column.dtype.is_float() or column.dtype.is_integer()) or column.dtype in _OF_128_BITS:
        return column
    if column.implementation.is_pandas() and isinstance(native.dtype, np.dtype):
        return native.to_numpy()
    if column.implementation.is_polars() and native.n_chunks() == 1 and not native.null_count():
        return native.to_numpy()
    if column.implementation.is_pyarrow() and native.num_chunks == 1 and not native.null_count:
        return native.chunk(0).to_numpy()
    return column


def as_block(columns: Sequence[Any]) -> np.ndarray | None:
    """Return columns that lie side by side in the memory of one array, as in pandas, as a view of it, (n_rows, n_columns)."""
    first = columns[0]
    if not all(isinstance(column, np.ndarray) and column.size for column in columns):
        return None
    if len({(id(_owner(column)), column.dtype, column.strides) for column in columns}) > 1:
        return None
    places = [column.__array_interface__["data"][0] for column in columns]
    steps = set(np.diff(places).tolist()) or {first.itemsize}
    if len(steps) > 1:
        return None
    shape, strides = (len(first), len(columns)), (first.strides[0], steps.pop())
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)


def _owner(array: np.ndarray) -> Any:
    """Return what owns the memory of an array."""
    while getattr(array, "base", None) is not None:
        array = array.base  # type: ignore[assignment]
    return array


def numbers_of(column: nw.Series[Any], name: Any, place: str) -> np.ndarray:
    """Return the numbers of some rows of a column, (n,); missing values are NaN."""
    if column.dtype in _OF_128_BITS:
        values = np.array(column.to_list(), object)
        values[values == None] = np.nan  # noqa: E711 (element by element)
        return as_real(values, f"the column {name!r} of {place}")
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        if column.dtype.is_float() or column.null_count() or not column.dtype.is_integer():
            column = column.cast(nw.Float64)
        return column.to_numpy()
    values = np.asarray(column.to_native())
    try:
        return as_real(values, f"the column {name!r} of {place}")
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        raise _not_numbers(name, place, f"{column.dtype}: {error}") from error


def _not_numbers(name: Any, place: str, what: str) -> DataError:
    return DataError(
        f"the column {name!r} of {place} has no numbers ({what}). Encode it, for instance as "
        f"categories: ``categorical_features=[{name!r}]``, or drop it."
    )
