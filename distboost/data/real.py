"""Values as real numbers of float64, without a silent loss: rounding aside, what float64 cannot hold is refused."""

from __future__ import annotations

import numpy as np

from distboost.data.dates import refuse_dates
from distboost.errors import DataError

_MOST_BITS = 64  # of an integer


def as_real(values: np.ndarray, place: str) -> np.ndarray:
    """Return values as float64.

    Raises
    ------
    DataError
        If some are no real numbers, or float64 cannot hold them.
    TypeError, ValueError
        If some objects or texts cannot be converted.
    """
    refuse_unreal(values, place)
    with np.errstate(over="ignore", under="ignore"):  # of longer floats: `refuse_unreal` has checked them
        return values.astype(np.float64)


def refuse_unreal(values: np.ndarray, place: str) -> None:
    """Raise DataError if values are dates, records, complex numbers, or numbers that float64 cannot hold."""
    kind = values.dtype.kind
    refuse_dates(values, place)
    if kind == "V" or (kind == "O" and values.ndim == 1 and values.size and isinstance(values[0], dict)):
        raise DataError(
            f"{place} has records ({values.dtype}), not numbers. Make a column of each field, as pandas.DataFrame(records) does."
        )
    if kind == "c" or (
        kind == "O" and any(isinstance(v, (complex, np.complexfloating)) for v in values.flat)
    ):
        raise DataError(
            f"{place}: Complex data not supported. Pass real numbers, such as the real and imaginary parts."
        )
    if kind == "O":
        beyond: list[object] = [v for v in values.flat if isinstance(v, int) and v.bit_length() > _MOST_BITS]
    elif kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore", under="ignore"):
            held = values.astype(np.float64)
        lost = np.isfinite(values) & ~(np.isfinite(held) & ((held != 0) | (values == 0)))
        beyond = list(values[lost][:1])
    else:
        return
    if beyond:
        raise beyond_range(place, beyond[0])


def beyond_range(place: str, value: object) -> DataError:
    """Return the error for a number that float64 cannot hold."""
    return DataError(
        f"{place} has the number {value!r:.100}, which is beyond the range of float64 or of 64-bit integers. Scale the "
        "values, or take their logarithm."
    )
