"""Class labels as files store them: a list of JSON values, and the dtype of their array.

Integers, floats, booleans and text are JSON values already. Dates and durations are stored as integers of their unit, bytes as
text of as many characters. Labels that could not be read back are rejected before training.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from distboost.errors import DataError, DistboostError

SCALARS = (bool, int, float, str)
MOST_BITS = 2048  # the most bits of an integer: not every JSON reader accepts longer ones

_DTYPE = re.compile(
    r"\|b1|[<>|][iu][1248]|[<>]f[248]|[<>|][US]\d{1,9}|\|O|[<>][mM]8\[\d{0,9}[a-zA-Zμ]{1,2}\]"
)
_TICKS, _BYTES = "mM", "latin-1"
_COARSE_UNITS = ("Y", "M", "W", "D", "h", "m")  # pandas has seconds and finer ones
_WIDEST = 64  # characters of text that is stored at fixed length

# Each label of fixed length takes as many bytes as the longest. Together they may take _FREE_BYTES, plus _PADDING per letter.
_PADDING, _FREE_BYTES = 64, 2**24

_REMEDY = "Pass integers, booleans, text, bytes, or NumPy dates or durations; or convert to text with y.astype(str)."


def plain(labels: np.ndarray) -> list[Any]:
    """Return the labels as JSON values. Equal labels give equal values, in the same order."""
    if labels.dtype.kind in _TICKS:
        return list(labels.astype(labels.dtype.newbyteorder("=")).view(np.int64).tolist())
    if labels.dtype.kind == "S":
        return [label.decode(_BYTES) for label in labels.tolist()]
    if labels.dtype.kind == "O":
        return [label.item() if isinstance(label, np.generic) else label for label in labels]
    return list((labels + 0.0 if labels.dtype.kind == "f" else labels).tolist())  # -0.0 becomes 0


def made(values: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """Return the labels of these JSON values, (n,) of `dtype`; text and bytes get the length of the longest."""
    if dtype.kind in _TICKS:
        return np.array(values, np.int64).view(dtype.newbyteorder("="))
    if dtype.kind == "S":
        return np.array([value.encode(_BYTES) for value in values], bytes)
    if dtype.kind in "TU":
        return np.array(values, str)
    found = np.empty(len(values), object)
    found[:] = values
    return found.astype(dtype.newbyteorder("="))


def restored(values: Any, dtype: Any, kind: type[DistboostError]) -> np.ndarray:
    """Return the labels that a file stores; raise an error of type `kind` for content that distboost does not write."""
    if type(values) is not list or any(type(value) not in SCALARS for value in values):
        raise kind("its classes are not a list of labels.")
    if type(dtype) is not str or not _DTYPE.fullmatch(dtype):
        raise kind(f"the type of its classes is {dtype!r:.100}.", value=dtype)
    check(values, np.dtype(dtype), "the file", kind)
    try:
        with np.errstate(all="ignore"):
            labels = made(values, np.dtype(dtype))
        found = plain(labels)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise kind(f"its classes are not of type {dtype}: {error}.", value=dtype) from error
    if (
        found != values
        or list(map(type, found)) != list(map(type, values))
        or labels.dtype.str[1:] != dtype[1:]
    ):
        raise kind(f"its classes are not of type {dtype}.", value=dtype)
    return labels


def storable(dtype: np.dtype) -> np.dtype:
    """Return the dtype to store labels with: zarr 3 specifies text of variable length, not NumPy's of fixed length."""
    return np.dtypes.StringDType() if dtype.kind in "UO" else dtype


def storable_type(classes: np.ndarray) -> np.dtype:
    """Return a type for answers among these classes that zarr and Parquet can store; objects for whole numbers beyond 64 bits.

    >>> storable_type(np.array(["yes", "no"], object))
    dtype('<U3')
    """
    dtype = classes.dtype
    if dtype.kind in "mM" and np.datetime_data(dtype)[0] in _COARSE_UNITS:
        return np.dtype(f"{dtype.kind}8[s]")
    if dtype.kind != "O":
        return dtype
    values = plain(classes)
    if isinstance(values[0], str) and (
        max(map(len, values)) > _WIDEST or any(v.endswith("\0") for v in values)
    ):
        return np.dtypes.StringDType()
    found = np.array(values).dtype
    return found if found.kind in "biufU" else dtype


def shown(label: Any) -> str:
    """Return a label as messages show it: a number of NumPy as a number, a text in quotes.

    >>> shown(np.int64(3)), shown(np.str_("a"))
    ('3', "'a'")
    """
    if isinstance(label, np.generic):
        label = str(label) if label.dtype.kind in _TICKS else label.item()
    return f"{label!r:.100}"


def joined_type(one: np.dtype, other: np.dtype) -> np.dtype:
    """Return the type that holds values of both types: a number's if both are numbers, objects if they are of different sorts.

    >>> joined_type(np.dtype(np.int64), np.dtype(np.float64)), joined_type(np.dtype(bool), np.dtype(np.int64))
    (dtype('float64'), dtype('O'))
    """
    if one.kind == other.kind or (one.kind in "iuf" and other.kind in "iuf"):
        return np.promote_types(one, other)
    return np.dtype(object)


def check_type(labels: np.ndarray, place: str) -> None:
    """Raise DataError unless files can store labels of this type. In an object array, all labels must have the same type."""
    dtype = labels.dtype
    if dtype.kind != "O":
        if not _DTYPE.fullmatch(dtype.str) or dtype.fields or dtype.subdtype:
            raise DataError(
                f"{place} has labels of type {dtype}, which a model file cannot store.",
                remedy=_REMEDY,
                where=place,
                value=dtype,
            )
        return
    first: Any = None
    for label in labels:
        value = label.item() if isinstance(label, np.generic) else label
        if type(value) not in SCALARS:
            raise DataError(
                f"{place} has the label {label!r:.100} of type {type(label).__name__}, which a model file cannot store.",
                remedy=_REMEDY,
                where=place,
                value=label,
            )
        first = value if first is None else first
        check_same_type(first, value, place)


def check_same_type(one: Any, other: Any, place: str) -> None:
    """Raise DataError unless both labels have the same type."""
    if type(one) is not type(other):
        raise DataError(
            f"{place} mixes labels of different types: {one!r:.100} is of type {type(one).__name__}, {other!r:.100} of type "
            f"{type(other).__name__}.",
            remedy="Use one type.",
            where=place,
            value=one,
        )


def check(values: Sequence[Any], dtype: np.dtype, place: str, kind: type[DistboostError] = DataError) -> None:
    """Raise an error of type `kind` unless a file can store these JSON values of labels."""
    for value in values:
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise kind(
                f"{place} has an integer label of {value.bit_length()} bits, above the limit of {MOST_BITS}.",
                remedy="Use text.",
                where=place,
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise kind(
                f"{place} has the label {value}, which is not finite.",
                remedy="Remove unlabelled rows.",
                where=place,
                value=value,
            )
        if isinstance(value, str) and not is_unicode(value):
            raise kind(
                f"{place} has the label {value!r:.100}, which is not Unicode text: it has surrogates.",
                remedy="Decode it with the encoding in which it was written.",
                where=place,
                value=value,
            )
    longest = max((len(value) for value in values if isinstance(value, str)), default=0)
    letters, n_bytes = sum(len(str(value)) for value in values), longest * len(values) * _unit(dtype)
    if n_bytes > _FREE_BYTES + _PADDING * letters:
        raise kind(
            f"{place} has {len(values)} classes of text, the longest of {longest} characters: as an array of fixed length "
            f"they take {n_bytes} bytes for {letters} characters, too many for a model file.",
            remedy="Shorten the longest names, or convert the labels to objects.",
            where=place,
        )


def _unit(dtype: np.dtype) -> int:
    """Return the bytes of a character in labels of fixed length; 0 for other types."""
    return {"U": 4, "T": 4, "S": 1}.get(dtype.kind, 0)


def is_unicode(text: str) -> bool:
    """Whether JSON returns this text unchanged: it would join two surrogates into one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
