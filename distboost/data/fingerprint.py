"""Fingerprints of arrays, which tell whether a store was made from them, if possible without reading the arrays."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np

from distboost.data.axes import spans
from distboost.data.parts import pieces
from distboost.data.source import Source
from distboost.data.sources import DaskSource, ZarrSource
from distboost.errors import StoreError

_ROWS = 2**16  # in each update of a checksum


def fingerprint(sources: Iterable[Source | None]) -> str:
    """Return a SHA-256 that changes when an array is written again.

    It covers the names, sizes and times of the files of zarr arrays; in object stores, names, sizes and ETags; a checksum of the
    values of arrays in memory and in stores that list names only; and the tokens of dask arrays.
    """
    digest = hashlib.sha256()
    for source in sources:
        digest.update(repr(None if source is None else _described(source)).encode())
    return digest.hexdigest()


def changed(sources: Iterable[Source | None]) -> list[str]:
    """Return the names of the arrays that have changed since they were listed; raise StoreError if one is gone."""
    return [source.place for source in sources if _is_listed(source) and not _is_unchanged(source)]


def _is_listed(source: Source | None) -> TypeGuard[ZarrSource]:
    return isinstance(source, ZarrSource) and not source.is_near


def _is_unchanged(source: ZarrSource) -> bool:
    with _found(source):
        return source.is_unchanged()


def _described(source: Source) -> tuple[Any, ...]:
    kind = (source.shape, str(source.dtype))
    if isinstance(source, DaskSource):
        return *kind, source.token
    if _is_listed(source):
        with _found(source):
            listed = source.inventory.digest
        if listed is not None:
            return *kind, listed
    return *kind, _checksum(source)


@contextmanager
def _found(source: ZarrSource) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(
            f"{source.place} does not exist, or not any more: {error}. Restore it, and start again."
        ) from error


def _checksum(source: Source) -> int:
    value = 0
    for start, stop in spans(0, source.n_rows, _ROWS):
        for _, values in pieces(source.part(start, stop)):
            value = zlib.crc32(_bytes_of(values), value)
    return value


def _bytes_of(values: np.ndarray) -> Any:
    if values.dtype.kind not in "biufcmMSU" or not values.size:
        return repr(values.tolist()).encode()
    return np.ascontiguousarray(values).view(np.uint8)
