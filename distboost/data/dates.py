"""Dates and durations: they are labels, but no features, whatever library they come from."""

from __future__ import annotations

import datetime

import numpy as np

from distboost.errors import DataError

_DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.time, datetime.timedelta)


def has_dates(values: np.ndarray) -> bool:
    """Whether some values are dates or durations. NaT is one."""
    if values.dtype.kind == "O":
        return any(isinstance(value, _DATES) or type(value).__name__ == "NaTType" for value in values.flat)
    return values.dtype.kind in "mM"


def date_error(place: str, what: str) -> DataError:
    """Return the error for features that are dates."""
    return DataError(
        f"{place} has dates or durations ({what}), which are no features. Pass numbers, and NaN for missing ones: for instance "
        "days, (dates - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D'). "
        "pandas dates with a time zone need dates.dt.tz_convert(None) first."
    )


def refuse_dates(values: np.ndarray, place: str) -> None:
    """Raise DataError if features are dates."""
    if has_dates(values):
        raise date_error(place, str(values.dtype))


def refuse_date_types(dtype: np.dtype, place: str) -> None:
    """Raise DataError if features are of a type for dates."""
    if dtype.kind in "mM":
        raise date_error(place, str(dtype))
