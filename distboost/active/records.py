"""The lines of a log: how they are written, and what a header and a single record may contain.

A record has its content under the name of its kind (`events` has a class for each); `at`, seconds since 1970; `by`, who, if that
is known; and `answer`, a name of its own, if whoever sent it may send it again. Logs of version 1 have none of these.

A log may come from an untrusted source. This module checks each line by itself, `events` against the lines before it: for
instance, whether a row was taught before.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from distboost.active.strategies import FORMER, STRATEGIES
from distboost.data.labels import SCALARS, check
from distboost.errors import DataError

VERSION = 2
MAX_LABEL_LENGTH = 1000  # characters; in an array, each label takes as much memory as the longest one
MAX_TEXT_LENGTH = 1000  # characters of a name, a reason or an error
_LARGEST = 2**63 - 1

_LAST_TIME = 2**37  # seconds: years of four digits

Check = Callable[[Any], bool]


def to_line(record: dict[str, Any]) -> str:
    """Return a record as a line of the log: a checksum and JSON."""
    text = json.dumps(record, sort_keys=True)
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def from_line(found: bytes) -> dict[str, Any]:
    """Return the record of a line (without the newline); raise ValueError unless `to_line` can have written it."""
    checksum, _, text = found.partition(b" ")
    if not re.fullmatch(b"[0-9a-f]{8}", checksum):
        raise ValueError("it does not begin with a checksum")
    if int(checksum, 16) != zlib.crc32(text):
        raise ValueError("its checksum does not match")
    try:
        record = json.loads(text, parse_constant=_refused)
        # False for entries given twice and numbers out of range.
        written = to_line(record).encode() == found + b"\n"
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if type(record) is not dict or not written:
        raise ValueError("it is not in the form of a record")
    return record


def _refused(constant: str) -> None:
    raise ValueError(f"it has the number {constant}")


# The header.


def upgraded(header: dict[str, Any]) -> dict[str, Any]:
    """Return the header of a log of version 1 as one of this version; others as they are."""
    if header.get("distboost") == "labels" and header.get("version") == 1:
        return {**header, "version": VERSION, "start": "random", "final": None, "audit": 0.0}
    return header


def check_header(header: dict[str, Any]) -> None:
    """Raise ValueError unless this is the header of a log of this version."""
    if header.get("distboost") != "labels":
        raise ValueError("it is not the header of a log")
    if header.keys() != _HEADER.keys():
        raise ValueError(f"its header has the entries {sorted(header)}, expected {sorted(_HEADER)}")
    for name, is_right in _HEADER.items():
        if not is_right(header[name]):
            raise ValueError(f"its {name} is {header[name]!r:.100}")


def whole(least: int, most: int = _LARGEST) -> Check:
    """Return a check of a whole number."""
    return lambda value: type(value) is int and least <= value <= most


def share(value: Any) -> bool:
    """Whether this is a number of 0 to 1."""
    return type(value) is float and 0 <= value <= 1


def are_rows(value: Any, least: int = 0) -> bool:
    """Whether this is a list of row numbers."""
    return type(value) is list and all(map(whole(least), value))


def are_some(value: Any) -> bool:
    """Whether there is a row number, too."""
    return are_rows(value) and len(value) > 0


def is_entry(**entries: Check) -> Check:
    """Return a check of an object with exactly these entries."""

    def is_right(value: Any) -> bool:
        if type(value) is not dict or value.keys() != entries.keys():
            return False
        return all(entries[name](value[name]) for name in entries)

    return is_right


def is_one_of(entries: Mapping[str, Check]) -> Check:
    """Return a check of an object with one of these entries."""
    return lambda value: (
        type(value) is dict
        and len(value) == 1
        and all(name in entries and entries[name](found) for name, found in value.items())
    )


def _are_classes(value: Any) -> bool:
    if value is None:
        return True
    return are_labels(value) and len(value) > 1 and np.unique(checked_labels(value)).tolist() == value


def is_str(value: Any) -> bool:
    """Whether this is text of any length."""
    return type(value) is str


def _is_dict(value: Any) -> bool:
    return type(value) is dict


# Entries of the header that may change later.
SETTINGS: dict[str, Check] = {
    "batch_size": whole(1),
    "strategy": lambda value: type(value) is str and (value in (*STRATEGIES, *FORMER) or "." in value),
    "pool_fraction": lambda value: share(value) and value > 0,
    "diversity": lambda value: value == "auto" or whole(1)(value),
    "audit": share,
}
_HEADER: dict[str, Check] = {
    "distboost": lambda value: value == "labels",
    "version": lambda value: type(value) is int and value == VERSION,
    "pool": lambda value: are_rows(value, 1) and len(value) == 2,
    "algorithm": is_str,
    "parameters": _is_dict,
    "n_initial": whole(1),
    "final": lambda value: value is None or is_entry(algorithm=is_str, parameters=_is_dict)(value),
    "start": lambda value: value in ("kmeans", "random"),
    "warm_start": lambda value: type(value) is bool,
    "classes": _are_classes,
    "random_state": whole(0),
    **SETTINGS,
}


# Records.

_BESIDE = {"by", "at", "until", "audit", "again", "seconds", "answer"}  # the content of a record


def kind_of(record: dict[str, Any]) -> str:
    """Return the kind of a record; "" if it has none."""
    return next((name for name in record if name not in _BESIDE), "")


def rows_of(record: dict[str, Any]) -> list[int]:
    """Return the rows of the pool that a record is about."""
    value = record[kind_of(record)]
    found: list[int] = value if type(value) is list else value.get("rows", []) if type(value) is dict else []
    return found


def said(record: dict[str, Any] | None) -> str:
    """Return who made a record, and when, as the end of a sentence."""
    found = record or {}
    by = f" by {found['by']!r}" if "by" in found else ""
    return by + (f" at {when(found['at'])}" if "at" in found else "")


def when(at: float) -> str:
    """Return a time as text, in this machine's zone."""
    return datetime.fromtimestamp(at).astimezone().isoformat(" ", "seconds")


def is_text(value: Any) -> bool:
    """Whether this is text of a length that logs hold."""
    return type(value) is str and len(value) <= MAX_TEXT_LENGTH and not re.search("[\ud800-\udfff]", value)


def is_time(value: Any) -> bool:
    """Whether this is a number of seconds."""
    return type(value) in (int, float) and 0 <= value < _LAST_TIME


def is_person(value: Any) -> bool:
    """Whether this can be the name of a person."""
    return is_text(value) and value.isprintable() and value.strip() == value != ""


def is_answer(value: Any) -> bool:
    """Whether this can be the name of an answer."""
    return type(value) is str and re.fullmatch(r"[\w-]{1,64}", value, re.ASCII) is not None


def is_scalar(value: Any) -> bool:
    """Whether this is text, a flag or a finite number."""
    return type(value) in SCALARS and (type(value) is not float or math.isfinite(value))


def are_values(value: Any) -> bool:
    """Whether these are rows of numbers, or where such are."""
    if type(value) is str:
        return True
    rows = value if type(value) is list and all(type(row) is list for row in value) else []
    return len({len(row) for row in rows}) == 1 and all(
        cell is None or (type(cell) in (int, float) and is_scalar(cell)) for row in rows for cell in row
    )


# Labels.


def are_labels(value: Any) -> bool:
    """Return whether this is a list of labels as logs hold them; raise DataError if a label is invalid."""
    if type(value) is not list or any(type(label) not in SCALARS for label in value):
        return False
    found = checked_labels(value).tolist()
    return list(map(type, found)) == list(map(type, value))


def checked_labels(labels: Any) -> np.ndarray:
    """Return labels as an array (n,) of numbers or text; raise DataError if one is missing or cannot be trained on."""
    try:
        listed = column_or_1d(np.asarray(labels, object), dtype=object).tolist()
    except ValueError as error:
        raise DataError(f"labels of shape {np.shape(labels)}: pass a list, one for each row.") from error
    for label in listed:
        if label is None or type(label).__name__ == "NAType" or (np.isscalar(label) and label != label):
            raise DataError(
                f"a label is {label!r}.", remedy="Teach only the rows whose label is known.", value=label
            )
        if not np.isscalar(label):
            raise DataError(f"a label is {label!r}.", remedy="Pass numbers or text.", value=label)
        if isinstance(label, str) and len(label) > MAX_LABEL_LENGTH:
            raise DataError(
                f"a label has {len(label)} characters, the limit is {MAX_LABEL_LENGTH}.", remedy="Shorten it."
            )
        check_kind(label, listed[0])
    found = np.array(listed)
    if found.size and (found.dtype.kind not in "biufU" or found.tolist() != listed):
        raise DataError(
            f"a log cannot store labels of type {found.dtype}, such as {listed[0]!r:.100}.",
            remedy="Pass numbers or text.",
            value=listed[0],
        )
    _check_whole(found)
    check(found.tolist(), found.dtype, "what is taught")
    return found


def _check_whole(labels: np.ndarray) -> None:
    """Raise DataError if a label is not a whole number: a committee could not be trained on it."""
    if labels.dtype.kind == "f":
        broken = labels[~np.isfinite(labels) | (labels != np.floor(labels))]
        if len(broken):
            raise DataError(f"a label is {broken[0].item()!r}.", remedy="Pass integers or text.")


def check_kind(label: Any, earlier: Any) -> None:
    """Raise DataError unless both labels are text, both booleans, or both numbers."""
    found, before = _kind(label), _kind(earlier)
    if found != before:
        raise DataError(
            f"the label {earlier!r:.100} is {before}, but the label {label!r:.100} is {found}.",
            remedy="Pass all labels in the same type.",
            value=earlier,
        )


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    return "a boolean" if isinstance(label, (bool, np.bool_)) else "a number"
