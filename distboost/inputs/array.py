"""Arrays in memory, and all that NumPy can make an array of: lists, series, masked arrays, columns of nullable types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from distboost.data.checks import first_text, refuse_unreal
from distboost.data.source import ArraySource, Source
from distboost.errors import ArgumentError, DataError
from distboost.inputs.base import Input, NearInput, is_instance

# Arrays of these types are not copied: they are read a piece at a time. Others become float64.
NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32, *(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8))],
    "ensure_all_finite": False,  # checked where the row numbers are known, so that errors can name them
}


class ArrayInput(NearInput):
    """An array or a list in memory, with the names of its features if it has some."""

    def __init__(self, data: Any, place: str, names: np.ndarray | None = None):
        self._is_nullable = is_nullable(data)  # scikit-learn would make floats of such integers
        super().__init__(np.asarray(data) if self._is_nullable else unmasked(data), place, names)

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return not isinstance(data, Input)  # NumPy or scikit-learn has the error for all else

    @property
    def n_rows(self) -> int:
        return len(self.data)

    def first(self, n: int) -> ArrayInput:
        return ArrayInput(self.data[:n], self.place, self._names)

    def joined(self, other: ArrayInput) -> ArrayInput:
        return ArrayInput(np.concatenate([self.data, other.data]), self.place, self._names)

    def source(self, of_features: bool) -> Source:
        return ArraySource(np.asarray(self.data), self.place)

    def checked(self, estimator: Any) -> Input:
        return ArrayInput(checked_numbers(_as_array(self), self.place, estimator), self.place, self._names)

    def checked_labels(self) -> Input:
        from sklearn.utils.validation import column_or_1d

        with _refusals(self.place):
            return ArrayInput(column_or_1d(self.data, warn=True), self.place)

    def checked_weights(self, n_rows: int) -> Input:
        from sklearn.utils.validation import _check_sample_weight

        rows = np.broadcast_to(np.int8(0), n_rows)  # of which scikit-learn takes the number alone
        with _refusals(self.place):
            refuse_unreal(np.asarray(self.data), self.place)
            return ArrayInput(_check_sample_weight(self.data, rows, dtype=np.float64), self.place)

    @property
    def is_known_to_sklearn(self) -> bool:
        kind = getattr(getattr(self.data, "dtype", None), "kind", "")
        return hasattr(self.data, "__len__") and kind not in ("S", "T") and not self._is_nullable


# Workers import this module, but nothing of scikit-learn, which takes 130 MB.


def checked_numbers(values: Any, place: str, estimator: Any, **accepted: Any) -> Any:
    """Return rows of features in memory as scikit-learn checks them; keywords are those of its `check_array`."""
    from sklearn.utils.validation import check_array

    if isinstance(values, np.ndarray):
        refuse_unreal(values, place)
    try:
        return check_array(values, input_name="X", estimator=estimator, **{**NUMBERS, **accepted})
    except TypeError as error:
        raise ArgumentError(f"{place}: {error}", where=place) from error
    except ValueError as error:
        text = None if accepted else first_text(values)
        if text is None:
            raise DataError(f"{place}: {error}", where=place) from error
        raise DataError(
            f"column {text.column} of {place} has the text {text.value!r:.100} in row {text.row}, which is no number.",
            remedy="Encode it, or pass a data frame, of which ``categorical_features`` may name columns of text.",
            where=place,
            value=text.value,
        ) from error


def _as_array(given: ArrayInput) -> Any:
    """Return lists as an array, and what has an array's interface as it is; raise DataError if it is anything else."""
    if hasattr(given.data, "__array__"):
        return given.data
    try:
        found = np.asarray(given.data)
    except ValueError as error:
        raise DataError(
            f"the rows of {given.place} have different lengths.",
            remedy="Pass one number per feature for each row.",
            where=given.place,
        ) from error
    if found.ndim == 0:
        raise given.no_rows()
    return found


@contextmanager
def _refusals(place: str) -> Iterator[None]:
    """Turn an error of scikit-learn into a DataError with its text, and with the place unless the text begins with it."""
    try:
        yield
    except DataError:
        raise
    except (TypeError, ValueError) as error:
        text = str(error)
        raise DataError(text if text.startswith(place) else f"{place}: {text}") from error


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


def is_nullable(data: Any) -> bool:
    """Whether `data` is a column of pandas of integers or booleans that may be missing: Int64, boolean, int64[pyarrow]."""
    if not (
        is_instance(data, "pandas", "Series", "Index")
        or is_instance(data, "pandas.api.extensions", "ExtensionArray")
    ):
        return False
    return not isinstance(data.dtype, np.dtype) and data.dtype.kind in "iub"
