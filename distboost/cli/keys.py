"""Rows of the pool by their keys, such as the identifiers that other programs know them by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from distboost.errors import DataError
from distboost.inputs.choose import adapter_of
from distboost.inputs.parquet import is_parquet, parquet_at

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
