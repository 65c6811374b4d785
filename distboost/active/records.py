"""The lines of a log: how they are written, and what a header and a single record may contain.

A log may come from an untrusted source. This module checks each line by itself. `Ledger` checks it against the lines before it:
for instance, whether a row was taught before.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from distboost.active.strategies import STRATEGIES
from distboost.data.labels import SCALARS, check
from distboost.errors import DataError

VERSION = 2
MAX_LABEL_LENGTH = 1000  # characters; in an array, each label takes as much memory as the longest one
_LARGEST = 2**63 - 1


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


def _whole(least: int, most: int = _LARGEST) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _are_rows(value: Any, least: int = 0) -> bool:
    return type(value) is list and all(map(_whole(least), value))


def _are_classes(value: Any) -> bool:
    if value is None:
        return True
    return are_labels(value) and len(value) > 1 and np.unique(checked_labels(value)).tolist() == value


def _is_description(value: Any) -> bool:
    if type(value) is not dict or value.keys() != {"algorithm", "parameters"}:
        return False
    return type(value["algorithm"]) is str and type(value["parameters"]) is dict


_HEADER: dict[str, Callable[[Any], bool]] = {
    "distboost": lambda value: value == "labels",
    "version": lambda value: type(value) is int and value == VERSION,
    "pool": lambda value: _are_rows(value, 1) and len(value) == 2,
    "algorithm": lambda value: type(value) is str,
    "parameters": lambda value: type(value) is dict,
    "n_initial": _whole(1),
    "batch_size": _whole(1),
    "final": lambda value: value is None or _is_description(value),
    "start": lambda value: value in ("kmeans", "random"),
    "strategy": lambda value: type(value) is str and (value in STRATEGIES or "." in value),
    "pool_fraction": lambda value: type(value) is float and 0 < value <= 1,
    "diversity": lambda value: value == "auto" or _whole(1)(value),
    "audit": lambda value: type(value) is float and 0 <= value <= 1,
    "warm_start": lambda value: type(value) is bool,
    "classes": _are_classes,
    "random_state": lambda value: type(value) is int and value >= 0,
}


# Records.


def check_record(record: dict[str, Any]) -> None:
    """Raise ValueError unless a record has one of the known forms."""
    said = {name: value for name, value in record.items() if name != "audit"}
    if "audit" in record and not ("asked" in said and _are_rows(record["audit"])):
        raise ValueError(f"it says {record!r:.100}")
    kind, value = next(iter(said.items()), (None, None))
    if len(said) != 1 or kind not in _RECORDS or not _RECORDS[kind](value):
        raise ValueError(f"it says {record!r:.100}")


def _is_taught(value: Any) -> bool:
    if type(value) is not dict or value.keys() != {"rows", "labels"}:
        return False
    rows, labels = value["rows"], value["labels"]
    return _are_rows(rows) and len(rows) > 0 and are_labels(labels)


def _is_note(value: Any) -> bool:
    if type(value) is not dict or len(value) != 1:
        return False
    ((name, said),) = value.items()
    if name == "pool":
        return type(said) is str
    if name == "feature_names":
        return type(said) is list and all(type(text) is str for text in said)
    return name == "parameters" and type(said) is dict and all(map(_is_scalar, said.values()))


def _is_scalar(value: Any) -> bool:
    return type(value) in SCALARS and (type(value) is not float or math.isfinite(value))


_RECORDS: dict[Any, Callable[[Any], bool]] = {
    "asked": _are_rows,
    "taught": _is_taught,
    "trained": _whole(1),
    "note": _is_note,
}


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
            raise DataError(f"a label is {label!r}. Teach only the rows whose label is known.")
        if not np.isscalar(label):
            raise DataError(f"a label is {label!r}. Pass numbers or text.")
        if isinstance(label, str) and len(label) > MAX_LABEL_LENGTH:
            raise DataError(
                f"a label has {len(label)} characters, the limit is {MAX_LABEL_LENGTH}. Shorten it."
            )
        check_kind(label, listed[0])
    found = np.array(listed)
    if found.size and (found.dtype.kind not in "biufU" or found.tolist() != listed):
        raise DataError(
            f"a log cannot store labels of type {found.dtype}, such as {listed[0]!r:.100}. Pass numbers or text."
        )
    _check_whole(found)
    check(found.tolist(), found.dtype, "what is taught")
    return found


def _check_whole(labels: np.ndarray) -> None:
    """Raise DataError if a label is not a whole number: a committee could not be trained on it."""
    if labels.dtype.kind == "f":
        broken = labels[~np.isfinite(labels) | (labels != np.floor(labels))]
        if len(broken):
            raise DataError(f"a label is {broken[0].item()!r}. Pass integers or text.")


def check_kind(label: Any, earlier: Any) -> None:
    """Raise DataError unless both labels are text, both booleans, or both numbers."""
    found, before = _kind(label), _kind(earlier)
    if found != before:
        raise DataError(
            f"the label {earlier!r:.100} is {before}, but the label {label!r:.100} is {found}. Pass all labels in the same type."
        )


def _kind(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    return "a boolean" if isinstance(label, (bool, np.bool_)) else "a number"
