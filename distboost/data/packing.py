"""Packed arrays of the CF conventions: stored = (value - add_offset) / scale_factor, and marks of missing values."""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr

SCALE, OFFSET, MISSING = "scale_factor", "add_offset", ("_FillValue", "missing_value")
ATTRIBUTES = (SCALE, OFFSET, *MISSING, "_Unsigned")


@dataclass(frozen=True)
class Packing:
    """How stored numbers become values.

    Attributes
    ----------
    scale, offset : float
    missing : tuple of numbers
        Stored numbers that stand for missing values.
    dtype : numpy.dtype
        Of the values.
    """

    scale: float
    offset: float
    missing: tuple[float, ...]
    dtype: np.dtype

    def decoded(self, stored: np.ndarray) -> np.ndarray:
        """Return the values of stored numbers; missing ones are NaN."""
        values = stored.astype(self.dtype)
        for number in self.missing:
            values[stored == number] = np.nan
        if self.scale != 1:
            values *= self.scale
        if self.offset != 0:
            values += self.offset
        return values


def stored_attributes(array: zarr.Array[Any]) -> dict[str, Any]:
    """Return the attributes of a zarr array. In format 2, xarray writes `_FillValue` as the array's own fill value."""
    attributes = array.attrs.asdict()
    if array.metadata.zarr_format == 2 and "_ARRAY_DIMENSIONS" in attributes and array.fill_value is not None:
        return {MISSING[0]: np.asarray(array.fill_value).item(), **attributes}
    return attributes


def packing_of(attributes: Mapping[str, Any], dtype: np.dtype) -> Packing | None:
    """Return how an array of numbers is packed, as its attributes say; None if it is not packed.

    Raises
    ------
    ValueError
        If an attribute cannot be used.
    """
    found = {name: attributes[name] for name in ATTRIBUTES if name in attributes}
    if dtype.kind not in "iuf" or not found:
        return None
    if "_Unsigned" in found:
        raise ValueError("_Unsigned gives the stored numbers another type")
    scale, offset = _number(found.get(SCALE, 1.0), SCALE), _number(found.get(OFFSET, 0.0), OFFSET)
    given = [(number, name) for name in MISSING if name in found for number in _listed(found[name])]
    numbers = {_number(number, name) for number, name in given}
    missing = tuple(sorted(number for number in numbers if number == number))  # NaN is missing anyway
    if scale == 1 and offset == 0:
        if not missing:
            return None
        return Packing(1.0, 0.0, missing, dtype if dtype.kind == "f" else np.dtype(np.float64))
    return Packing(float(scale), float(offset), missing, np.dtype(np.float64))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _number(value: Any, name: str) -> float:
    """Return the number in an attribute. xarray writes one of a floating-point array as text: the base64 of its bytes."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        try:
            [number] = struct.unpack("<d", base64.b64decode(value, validate=True))
            return float(number)
        except (ValueError, struct.error):
            pass
    raise ValueError(f"{name} is {value!r:.100}, not a number")
