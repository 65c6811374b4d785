"""The CSV file in which a person labels rows: columns row and label, then the row's values to look at.

A CSV file holds text, so the type of its labels must be decided. Labels are whole numbers, other numbers or text, like the
declared classes or earlier labels. If there are none, they are whole numbers if all labels of the file are, else text.

The features' names come from the pool and are untrusted. A spreadsheet takes a cell that begins with = or the like for a formula
and may run it, so such names are written with a leading apostrophe.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from distboost.active.label_texts import parse_labels
from distboost.errors import DataError
from distboost.io.files import publish, read
from distboost.io.text import visible

ROW, LABEL = "row", "label"
_INDEX = re.compile(r"\d{1,18}(\.0+)?", re.ASCII)
_DELIMITERS = ",;\t"  # spreadsheets of some locales write semicolons, and split cells at both
_MAX_NAME_LENGTH = 1000  # characters: readers of CSV files have limits
_FORMULA = re.compile(r"(^|[,;])([\s\"']*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")


def write_labels_csv(
    url: str,
    rows: Sequence[int],
    values: np.ndarray | None,
    names: Sequence[str],
    opinions: Mapping[int, Mapping[str | None, Any]] | None = None,
) -> None:
    """Write rows with empty labels; what people said of them, and their values (n_rows, n_names), if given."""
    said = [] if opinions is None else ["said"]
    text = io.StringIO(newline="")
    sheet = csv.writer(text, lineterminator="\n")
    sheet.writerow([ROW, LABEL, *said, *(map(_name, names) if values is not None else ())])
    for place, row in enumerate(rows):
        told = [] if opinions is None else [opinions_text(opinions.get(row, {}))]
        sheet.writerow([row, "", *told, *(() if values is None else map(_cell, values[place]))])
    publish(url, text.getvalue().encode())


def opinions_text(told: Mapping[str | None, Any]) -> str:
    """Return what people said of a row, in one line."""
    return not_a_formula(visible("; ".join(f"{by or 'nobody'}: {label}" for by, label in told.items())))


def _name(name: str) -> str:
    """Return a name in one line."""
    return not_a_formula(visible(name)[:_MAX_NAME_LENGTH])


def not_a_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return _FORMULA.sub(r"\1\2'", text)


def _cell(value: np.floating) -> str:
    """Return the shortest text of a value; empty if it is missing."""
    return "" if np.isnan(value) else str(value).removesuffix(".0")


def read_labels_csv(url: str, column: str = ROW) -> dict[Any, str]:
    """Return the text of each row's label, "" if it is empty; raise DataError for any other kind of file.

    Rows are known by their number, or by the text of another `column`. Raise FileNotFoundError if there is none.
    """
    try:
        text = read(url, kind=DataError).decode("utf-8-sig")
        lines = list(_records(text, _delimiter(text, column.lower())))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file of labels at {url}. Pass the path of one.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(
            f"{url} is not a CSV file in UTF-8: {error}.", remedy="Save it as one.", where=url
        ) from error
    header = _columns(lines[0]) if lines else []
    if column.lower() not in header or LABEL not in header:
        raise DataError(
            f"{url} has the columns {header[:10]}, expected {column!r} and {LABEL!r}, as 'distboost active ask' writes them.",
            where=url,
            value=column,
        )
    columns = header.index(column.lower()), header.index(LABEL)
    found: dict[Any, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if any(cell.strip() for cell in line):
            row, label = (line[place].strip() if place < len(line) else "" for place in columns)
            keep(found, row, label, f"line {number} of {url}", column)
    return found


def _records(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _columns(line: list[str]) -> list[str]:
    return [name.strip().lower() for name in line]


def _delimiter(text: str, column: str) -> str:
    """Return the delimiter that finds the columns of rows and labels, leftmost: the names of features may contain the others."""
    places = {}
    for delimiter in _DELIMITERS:
        with suppress(csv.Error):
            header = _columns(next(_records(text, delimiter), []))
            if column in header and LABEL in header:
                places[delimiter] = header.index(column) + header.index(LABEL)
    return (
        min(places, key=places.__getitem__) if places else max(_DELIMITERS, key=text.partition("\n")[0].count)
    )


def keep(found: dict[Any, str], row: str, label: str, place: str, column: str = ROW) -> None:
    """Add a row to those found; raise DataError if it has another label there."""
    if column == ROW and not _INDEX.fullmatch(row):
        raise DataError(
            f"{place} has the row {row!r}, expected its number in the pool.", where=place, value=row
        )
    index = int(row.partition(".")[0]) if column == ROW else row
    before = found.get(index, "")
    if before and label and before != label:
        raise DataError(
            f"{place} labels {column} {index} as {label!r}, an earlier line as {before!r}.",
            remedy="Keep one of them.",
            where=place,
            value=label,
        )
    found[index] = label or before


def parse_classes(text: str) -> list[Any]:
    """Return the classes of a text a,b,c."""
    names = [name.strip() for name in next(csv.reader([text]))]
    if "" in names or len(set(names)) < len(names):
        raise DataError(f"the classes {text!r} must be different names, separated by commas.", value=text)
    return list(parse_labels(dict(enumerate(names)), (), "--classes").values())
