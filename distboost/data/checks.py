"""Loads and checks spans of rows: features, labels and weights."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from distboost.data.labels import shown
from distboost.data.source import load, pieces, spans
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


SCAN_NUMBERS = 2**19  # values that are converted and checked together
SCAN_BYTES = 2**22  # values of one byte, which are not converted


def numbers(part: Any, place: str) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield pieces of a part: first row and column within the part, and values (n, m), C-contiguous, of a type of kernels.

    These are float32, float64 and uint8. Other types become float64, a piece at a time.
    """
    for position, values in pieces(part):
        are_bytes = values.ndim == 2 and values.dtype == np.uint8
        convert = _contiguous if are_bytes else lambda piece: as_numbers(piece, place)
        step = max(1, (SCAN_BYTES if are_bytes else SCAN_NUMBERS) // max(math.prod(values.shape[1:]), 1))
        for a, b in spans(0, len(values), step):
            yield position[0] + a, position[-1], convert(values[a:b])
        del values  # frees memory before the next piece is read


def as_numbers(X: np.ndarray, place: str) -> np.ndarray:
    """X, which must have two dimensions, as a read-only C-contiguous array of float32 or float64."""
    if X.ndim != 2:
        raise DataError(
            f"{place} has {X.ndim} dimensions, expected 2: (rows, features).",
            remedy="Reshape your data, for one feature with X.reshape(-1, 1).",
            where=place,
            value=X.ndim,
        )
    if X.dtype not in (np.float32, np.float64):
        kind = f"{place} of type {X.dtype}"
        X = as_real(
            X,
            place,
            lambda error: DataError(f"{kind} cannot be read as numbers: {error}.", remedy="Encode it first."),
        )
    return _contiguous(X)


def _contiguous(X: np.ndarray) -> np.ndarray:
    X = np.ascontiguousarray(X)[:]
    X.flags.writeable = False  # kernels are compiled for read-only arrays alone
    return X


class Text(NamedTuple):
    """A text among features."""

    row: int
    column: int
    value: str


def first_text(X: Any) -> Text | None:
    """Return the first text among rows (n, n_features) that is not a number; None if there is none."""
    X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "OUT":
        return None
    for (row, column), value in np.ndenumerate(X):
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return Text(row, column, str(value))
    return None


class InfiniteValue(NamedTuple):
    """An infinite value among features, and where it is."""

    place: str
    row: int
    column: int
    value: float

    def error(self, name: Any = None) -> DataError:
        """Return the error for it, with the name of its column if that is known. `naming` adds a name later."""
        column = self.column if name is None else f"{self.column} ({str(name)!r:.100})"
        error = DataError(
            f"{self.place} contains an infinite value (inf) in row {self.row}, column {column}: {self.value}.",
            remedy="Pass finite values, or NaN for missing ones.",
            where=self.place,
            value=self.value,
        )
        error.infinite = self  # type: ignore[attr-defined]
        return error


@contextmanager
def naming(names: np.ndarray | None) -> Iterator[None]:
    """Let errors for infinite values name their columns. `names` are those of the features, (n_features,), or None."""
    try:
        yield
    except DataError as error:
        found = getattr(error, "infinite", None)
        if names is not None and isinstance(found, InfiniteValue):
            raise found.error(names[found.column]) from error.__cause__
        raise


def check_finite(X: np.ndarray, place: str, first: int = 0, first_column: int = 0) -> None:
    """Raise DataError if a value of these rows is infinite. `first` is the number of the first row; NaN is a missing value."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # cheap; decides for most rows without NaN
            return
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.argwhere(infinite)[0].tolist()
        raise InfiniteValue(place, first + row, first_column + column, float(X[row, column])).error()


def load_labels(part: Any, place: str, first: int) -> np.ndarray:
    """One label per row, (n,) of any type; raises DataError if one is missing."""
    y = load(part)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(f"{place} has shape {y.shape}, expected one label per row: (rows,).", where=place)
    is_text = y.dtype.kind == "T"
    if is_text:
        y = y.astype(object)  # keeps missing values
    if y.dtype.kind == "f" and np.isinf(y).any():
        row = int(np.flatnonzero(np.isinf(y))[0])
        raise DataError(
            f"{place} has an infinite label ({y[row]}) in row {first + row}.",
            remedy="Remove unlabelled rows.",
            where=place,
        )
    missing = missing_labels(y)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise DataError(
            f"{place} has a missing label (NaN) in row {first + row}, {missing.sum()} in this block.",
            remedy="Remove unlabelled rows.",
            where=place,
        )
    return _text(y, place, first) if is_text else y


def _text(y: np.ndarray, place: str, first: int) -> np.ndarray:
    """Text of variable length as text of fixed length, which cannot end with a NUL."""
    for row, label in enumerate(y):
        if label.endswith("\0"):
            raise DataError(
                f"{place} has the label {label!r:.100} in row {first + row}, which ends with a NUL.",
                remedy="Strip it, or make the labels objects.",
                where=place,
                value=label,
            )
    return np.array(y.tolist(), str)


def missing_labels(y: np.ndarray) -> np.ndarray:
    """Return which labels are missing, (n,) bool."""
    if y.dtype.kind == "f":
        return np.asarray(np.isnan(y))
    if y.dtype.kind in "mM":
        return np.asarray(np.isnat(y))
    if y.dtype.kind == "O":
        return np.array([_is_missing(label) for label in y], bool)
    return np.zeros(len(y), bool)


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    number = isinstance(label, (float, np.floating, np.datetime64, np.timedelta64))
    return number and bool(label != label)  # values of other types may not support the comparison


def load_weights(part: Any, n_rows: int, place: str, first: int) -> np.ndarray:
    """One finite weight >= 0 per row, (n_rows,) float64; all 1 if there is no part."""
    if part is None:
        return np.ones(n_rows)
    w = as_real(
        load(part),
        place,
        lambda error: DataError(
            f"{place} has values that are no numbers ({error}) in the rows {first} to {first + n_rows - 1}.",
            remedy="Pass finite weights of at least 0.",
            where=place,
        ),
    )
    if w.ndim == 2 and w.shape[1] == 1:
        w = w[:, 0]
    if w.ndim != 1:
        raise DataError(f"{place} has shape {w.shape}, expected one weight per row: (rows,).", where=place)
    bad = ~(np.isfinite(w) & (w >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{place} is {w[row]} in row {first + row}.",
            remedy="Pass finite weights of at least 0.",
            where=place,
        )
    return w


def encode_labels(
    labels: np.ndarray, weights: np.ndarray, classes: np.ndarray, place: str, first: int
) -> np.ndarray:
    """The index of each label among the sorted classes, (n,) int32; raises DataError for a label that is not among them.

    Rows of weight 0 are not used: their labels may be unknown, and their index is arbitrary.
    """
    try:
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        known = (classes[index] == labels) | (weights == 0)
    except TypeError as error:
        raise DataError(
            f"{place} has labels of another type than the training labels: {error}.", where=place
        ) from error
    if not known.all():
        row = int(np.flatnonzero(~known)[0])
        raise DataError(
            f"{place} has the label {shown(labels[row])} in row {first + row}, which is none of the {len(classes)} classes of "
            "the training data.",
            where=place,
        )
    return index.astype(np.int32)
