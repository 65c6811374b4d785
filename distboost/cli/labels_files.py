"""Files of labels that other programs read and write: CSV, Parquet and JSON, by the end of their names.

JSON is a list of objects with row and label, or what Label Studio exports: tasks whose data have a row.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from distboost.cli.labels_csv import LABEL, ROW, keep, not_a_formula, read_labels_csv
from distboost.errors import DataError, MissingPackageError
from distboost.inputs.choose import adapter_of
from distboost.inputs.parquet import is_parquet, parquet_at
from distboost.io.files import publish, read


def read_labels(url: str, column: str = ROW) -> dict[Any, str]:
    """Return the text of each row's label, "" if it has none; raise DataError if the file is of no known kind.

    Rows are known by their number, or by the text of another `column`.
    """
    if not url.endswith((".parquet", ".json")):
        return read_labels_csv(url, column)
    try:
        content = read(url, kind=DataError)
        read_pairs = _of_parquet if url.endswith(".parquet") else _of_json
        pairs = read_pairs(content, url, column)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file of labels at {url}. Pass the path of one.") from error
    found: dict[Any, str] = {}
    for number, (row, label) in enumerate(pairs, 1):
        keep(found, _text(row), _text(label), f"entry {number} of {url}", column)
    return found


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


def _of_parquet(content: bytes, url: str, column: str) -> list[tuple[Any, Any]]:
    arrow = _arrow()
    try:
        table = arrow.read_table(io.BytesIO(content))
    except (ValueError, OSError) as error:
        raise DataError(f"{url} is not a Parquet file: {error}.", where=url) from error
    if not {column, LABEL} <= set(table.column_names):
        raise DataError(
            f"{url} has the columns {table.column_names[:10]}, expected {column!r} and {LABEL!r}.",
            where=url,
            value=column,
        )
    return list(zip(*(table[name].to_pylist() for name in (column, LABEL)), strict=True))


def _of_json(content: bytes, url: str, column: str) -> list[tuple[Any, Any]]:
    try:
        entries = json.loads(content)
        return [pair for entry in entries for pair in _pairs(entry, column)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DataError(
            f"{url} is not JSON of labels ({type(error).__name__}: {error}).",
            remedy=f"Pass a list of objects with {column!r} and {LABEL!r}, or Label Studio's tasks with {column!r} among "
            "their data and one choice.",
            where=url,
        ) from error


def _pairs(entry: dict[str, Any], column: str) -> list[tuple[Any, Any]]:
    """Return row and label of an object: one of ours, or a task of Label Studio, which may have several annotations."""
    if "annotations" not in entry:
        return [(entry[column], entry[LABEL])]
    results = [found["result"] for found in entry["annotations"] if not found.get("was_cancelled")]
    choices = [part["value"]["choices"] for result in results for part in result if part["type"] == "choices"]
    if any(len(chosen) != 1 for chosen in choices):
        raise ValueError(f"the task of row {entry['data'][column]} has several choices")
    return [(entry["data"][column], chosen[0]) for chosen in choices]


def write_labels(url: str, columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> None:
    """Write these columns to a file of the kind that the end of its name says."""
    if url.endswith(".json"):
        content = json.dumps([dict(zip(columns, line, strict=True)) for line in lines], indent=1).encode()
    elif url.endswith(".parquet"):
        arrow, file = _arrow(), io.BytesIO()
        from pyarrow import table

        arrow.write_table(table({name: [line[k] for line in lines] for k, name in enumerate(columns)}), file)
        content = file.getvalue()
    else:
        text = io.StringIO(newline="")
        sheet = csv.writer(text, lineterminator="\n")
        sheet.writerow(columns)
        for line in lines:
            sheet.writerow([not_a_formula(cell) if isinstance(cell, str) else cell for cell in line])
        content = text.getvalue().encode()
    publish(url, content)


def _arrow() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingPackageError(
            "a Parquet file needs pyarrow, which is not installed.", remedy="Run: pip install pyarrow"
        ) from error
    return parquet


ROWS_AT_ONCE = 2**20


def rows_by_key(texts: dict[str, str], keys: str, column: str, n_rows: int, place: str) -> dict[int, str]:
    """Return the texts by numbers of rows in place of keys.

    Parameters
    ----------
    texts : dict
        The text of each key's label, of the file `place`.
    keys : str
        Path or URL of the pool's keys, one for each row: a zarr array, or Parquet files that have the `column`.
    """
    rows: dict[str, int] = {}
    n = 0
    for n, key in enumerate(_keys(keys, column), 1):
        if (text := str(key)) in texts and rows.setdefault(text, n - 1) != n - 1:
            raise DataError(
                f"rows {rows[text]} and {n - 1} of {keys} have the key {text!r}.",
                remedy="Pass keys that differ.",
                value=text,
            )
    if n != n_rows:
        raise DataError(f"{keys} has {n} keys, but the pool has {n_rows} rows.", remedy="Pass one for each.")
    if missing := texts.keys() - rows.keys():
        raise DataError(
            f"{place} labels {min(missing)!r} and {len(missing) - 1} others that are no keys of {keys}. Nothing of it was "
            "recorded.",
            where=place,
        )
    return {rows[key]: text for key, text in texts.items()}


def _keys(url: str, column: str) -> Iterator[Any]:
    """Yield the keys of all rows."""
    if is_parquet(url):
        dataset = parquet_at(url, "keys")
        if column not in dataset.schema.names:
            raise DataError(
                f"{url} has the columns {dataset.schema.names[:10]}, but no {column!r}.",
                where=url,
                value=column,
            )
        for batch in dataset.to_batches(columns=[column]):
            yield from batch[column].to_pylist()
        return
    source = adapter_of(url, "keys").column()
    for start in range(0, source.n_rows, ROWS_AT_ONCE):
        yield from source.read(start, min(start + ROWS_AT_ONCE, source.n_rows)).tolist()
