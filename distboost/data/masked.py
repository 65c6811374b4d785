"""Masked arrays of NumPy, whose masked values are missing ones, and columns of pandas that may have missing numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.data.kinds import is_instance


def unmasked(data: Any) -> Any:
    """Return a masked array as a plain one, NaN in place of the masked numbers and None of other values; all else as it is.

    Columns of pandas of a nullable type become arrays, too: scikit-learn would make floats of their integers.
    """
    if is_nullable(data):
        return np.asarray(data)
    if not isinstance(data, np.ma.MaskedArray):
        return data
    mask, kind = np.ma.getmaskarray(data), data.dtype.kind
    if not mask.any():
        return data.data
    # Real numbers and dates have a missing value of their own.
    values = np.array(data.data, data.dtype if kind in "fmM" else np.float64 if kind in "biu" else object)
    values[mask] = {"O": None, "m": "NaT", "M": "NaT"}.get(values.dtype.kind, np.nan)
    return values


def is_nullable(data: Any) -> bool:
    """Whether `data` is a column of pandas of integers or booleans that may be missing: Int64, boolean, int64[pyarrow]."""
    kinds = (("pandas", "Series"), ("pandas", "Index"), ("pandas.api.extensions", "ExtensionArray"))
    if not any(is_instance(data, *kind) for kind in kinds):
        return False
    return not isinstance(data.dtype, np.dtype) and data.dtype.kind in "iub"


def nullable_labels(y: Any) -> Any:
    """Return labels in a data frame of one nullable column as that column; all else as it is."""
    if is_instance(y, "pandas", "DataFrame") and y.shape[1] == 1 and is_nullable(y.iloc[:, 0]):
        return y.iloc[:, 0]
    return y


def is_unknown_to_sklearn(classes: np.ndarray, y: Any) -> bool:
    """Whether scikit-learn's metrics refuse or round such labels: objects, bytes, text of any length, nullable integers.

    They also refuse anything that is not an array or a list.
    """
    of_y = getattr(getattr(y, "dtype", None), "kind", "")
    if not hasattr(y, "__len__"):
        return True
    return classes.dtype.kind in "OST" or of_y in ("S", "T") or is_nullable(nullable_labels(y))
