"""Values as real numbers of float64, without a silent loss: dates, and what float64 cannot hold, are refused."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np

from distboost.errors import DataError

_MOST_BITS = 64  # of an integer
_DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)


def as_real(values: np.ndarray, place: str, refusal: Callable[[Exception], DataError]) -> np.ndarray:
    """Return values as float64.

    Raises
    ------
    DataError
        If some are no real numbers, or float64 cannot hold them; `refusal(error)` if some objects or texts cannot be converted.
    """
    refuse_unreal(values, place)
    try:
        with np.errstate(over="ignore", under="ignore"):  # of longer floats: `refuse_unreal` has checked them
            return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise refusal(error) from error


def refuse_unreal(values: np.ndarray, place: str) -> None:
    """Raise DataError if values are dates, records, complex numbers, or numbers that float64 cannot hold."""
    kind = values.dtype.kind
    refuse_dates(values, place)
    if kind == "V" or (kind == "O" and values.ndim == 1 and values.size and isinstance(values[0], dict)):
        raise DataError(
            f"{place} has records ({values.dtype}), not numbers.",
            remedy="Make a column of each field, as pandas.DataFrame(records) does.",
            where=place,
        )
    if kind == "c" or (
        kind == "O" and any(isinstance(v, (complex, np.complexfloating)) for v in values.flat)
    ):
        raise DataError(
            f"{place}: Complex data not supported.",
            remedy="Pass real numbers, such as the real and imaginary parts.",
            where=place,
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
        f"{place} has the number {value!r:.100}, which is beyond the range of float64 or of 64-bit integers.",
        remedy="Scale the values, or take their logarithm.",
        where=place,
        value=value,
    )


def date_error(place: str, what: str) -> DataError:
    """Return the error for features that are dates."""
    return DataError(
        f"{place} has dates or durations ({what}), which are no features.",
        remedy="Pass numbers, and NaN for missing ones: for instance days, (dates - np.datetime64('2000-01-01')) / "
        "np.timedelta64(1, 'D'). pandas dates with a time zone need dates.dt.tz_convert(None) first.",
        where=place,
    )


def refuse_dates(values: np.ndarray, place: str) -> None:
    """Raise DataError if some features are dates or durations, or NaT."""
    refuse_date_types(values.dtype, place)
    if values.dtype.kind == "O" and any(
        isinstance(value, _DATES) or type(value).__name__ == "NaTType" for value in values.flat
    ):
        raise date_error(place, str(values.dtype))


def refuse_date_types(dtype: np.dtype, place: str) -> None:
    """Raise DataError if features are of a type for dates."""
    if dtype.kind in "mM":
        raise date_error(place, str(dtype))
