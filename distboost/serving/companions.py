"""What is shown beside the values of a row: columns of a file, and images."""

from __future__ import annotations

import base64
import csv
import io
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.active.pool import take_rows
from distboost.errors import DataError
from distboost.inputs.choose import adapter_of
from distboost.inputs.parquet import is_parquet
from distboost.io.files import read
from distboost.io.packages import missing
from distboost.io.storage import local_path
from distboost.runtime.base import Runtime

MOST_TEXT = 20_000  # characters of a text that is shown
_SHAPE = re.compile(r"(\d{1,5})x(\d{1,5})(?:x([13]))?")
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


class Companion(Protocol):
    """The columns of a file, a line for each row of the pool."""

    names: list[str]

    def texts(self, row: int) -> Sequence[Any]:
        """Return the values of a row."""


class CsvSheet:
    """A CSV file, in memory."""

    def __init__(self, path: str, n_rows: int):
        text = read(path).decode("utf-8-sig")
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
        if not lines:
            raise DataError(
                f"{path} is empty.",
                remedy="Pass a CSV file with the names of its columns in the first line.",
                where=path,
            )
        self.names, *self._lines = lines
        _check_rows(path, len(self._lines), n_rows)
        for number, line in enumerate(self._lines):
            if len(line) != len(self.names):
                raise DataError(
                    f"{path} has {len(line)} values for row {number}, but {len(self.names)} columns.",
                    remedy="Quote texts with commas.",
                    where=path,
                )

    def texts(self, row: int) -> Sequence[Any]:
        """Return the values of a row."""
        return self._lines[row]


class ParquetSheet:
    """A Parquet file, of which the row groups in use are in memory."""

    def __init__(self, path: str, n_rows: int):
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise missing("a Parquet file", "pyarrow", "parquet") from error
        self._file = ParquetFile(path)
        groups = self._file.metadata
        self._ends = np.cumsum([groups.row_group(i).num_rows for i in range(groups.num_row_groups)])
        self.names = list(self._file.schema_arrow.names)
        self._group = lru_cache(4)(self._file.read_row_group)
        _check_rows(path, groups.num_rows, n_rows)

    def texts(self, row: int) -> Sequence[Any]:
        """Return the values of a row."""
        group = int(np.searchsorted(self._ends, row, side="right"))
        first = 0 if group == 0 else int(self._ends[group - 1])
        [values] = self._group(group).slice(row - first, 1).to_pylist()
        return list(values.values())


def _check_rows(path: str, found: int, n_rows: int) -> None:
    if found != n_rows:
        raise DataError(
            f"{path} has {found} rows, but the pool has {n_rows}.",
            remedy="Pass one line for each row, in the same order.",
            where=path,
            value=found,
        )


def companion_at(path: str, n_rows: int) -> Companion:
    """Return the columns of a Parquet or CSV file."""
    if local_path(path) is None or not os.path.isfile(path):
        raise DataError(
            f"there is no file {path!r} on this machine.", remedy="Pass a CSV or Parquet file.", where=path
        )
    try:
        return ParquetSheet(path, n_rows) if is_parquet(path) else CsvSheet(path, n_rows)
    except (csv.Error, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} cannot be read as {'Parquet' if is_parquet(path) else 'CSV'}: {error}", where=path
        ) from error


class ShownValue(NamedTuple):
    """A value of such a column: a text, a link, or a picture on this machine."""

    name: str
    kind: str
    text: str

    @classmethod
    def of(cls, name: str, value: Any) -> ShownValue:
        """Return what to show of a value."""
        text = "" if value is None else str(value)[:MOST_TEXT]
        if re.match(r"https?://\S+$", text):
            return cls(name, "link", text)
        if os.path.splitext(text)[1].lower() in PICTURES and "\n" not in text:
            return cls(name, "picture", text)
        return cls(name, "text", text)


def picture(folder: str, text: str) -> tuple[str, bytes] | None:
    """Return the type and content of a picture that a column names, within the folder of its file; None if there is none."""
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, text))
    kind = PICTURES.get(os.path.splitext(path)[1].lower())
    if kind is None or os.path.commonpath([root, path]) != root or not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return kind, file.read()


class Images:
    """Images of the rows: their own values in a shape such as 28x28, or an array of images.

    Parameters
    ----------
    given : str
        A shape, or the path or URL of an array (rows, height, width) or (rows, height, width, 3).
    n_rows, n_features : int
        Of the pool.
    low, high : float
        The range of the pool's values, which is black to white.
    """

    def __init__(self, given: str, n_rows: int, n_features: int, low: float, high: float):
        self._source = None
        self._low, self._high = low, high
        if of_values := _SHAPE.fullmatch(given):
            self.shape = tuple(int(side) for side in of_values.groups(default="1"))
            if np.prod(self.shape) != n_features:
                raise DataError(
                    f"an image of {given} has {np.prod(self.shape)} values, but rows have {n_features}.",
                    remedy="Pass their shape.",
                    value=given,
                )
            return
        self._source = adapter_of(given, "image").source(True)
        shape = self._source.shape
        if len(shape) not in (3, 4) or shape[0] != n_rows or shape[3:] not in ((), (1,), (3,)):
            raise DataError(
                f"{self._source.place} has the shape {shape}, expected ({n_rows}, height, width) or ({n_rows}, height, width, "
                "3).",
                where=self._source.place,
                value=shape,
            )
        self.shape = (*shape[1:3], *(shape[3:] or (1,)))
        self._high, self._low = (255.0, 0.0) if self._source.dtype.kind in "iu" else (1.0, 0.0)

    def of(self, rows: np.ndarray, X: np.ndarray, runtime: Runtime) -> list[str]:
        """Return the pixels of rows with the values X, one byte for each colour, as base64."""
        pixels = X if self._source is None else take_rows(self._source, rows, runtime).reshape(len(rows), -1)
        scaled = (np.nan_to_num(pixels.astype(float)) - self._low) * (
            255 / max(self._high - self._low, 1e-300)
        )
        found = np.clip(np.rint(scaled), 0, 255).astype(np.uint8)
        return [base64.b64encode(one.tobytes()).decode() for one in found]
