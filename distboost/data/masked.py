"""Masked arrays of NumPy: masked values are missing ones."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmasked(data: Any) -> Any:
    """Return a masked array as a plain one, NaN in place of the masked numbers and None of other values; all else as it is."""
    if not isinstance(data, np.ma.MaskedArray):
        return data
    mask, kind = np.ma.getmaskarray(data), data.dtype.kind
    if not mask.any():
        return data.data
    # Real numbers and dates have a missing value of their own.
    values = np.array(data.data, data.dtype if kind in "fmM" else np.float64 if kind in "biu" else object)
    values[mask] = {"O": None, "m": "NaT", "M": "NaT"}.get(values.dtype.kind, np.nan)
    return values
