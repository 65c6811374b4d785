"""Chunks of a zarr array as keys of its store."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import zarr
from zarr.core.sync import sync


def chunk_key(array: zarr.Array[Any], *position: int) -> str:
    """The key of a chunk in its store; positions that are left out are 0."""
    key = array.metadata.encode_chunk_key(position + (0,) * (array.ndim - len(position)))
    return f"{array.path}/{key}" if array.path else key


def has_chunk(array: zarr.Array[Any], *position: int) -> bool:
    """Whether a chunk exists: zarr reads a missing one as the fill value."""
    return sync(array.store.exists(chunk_key(array, *position)))


def delete_chunk(array: zarr.Array[Any], *position: int) -> None:
    """Delete a chunk."""
    sync(array.store.delete(chunk_key(array, *position)))


def stored_bytes(array: zarr.Array[Any], *position: int) -> int:
    """Return the size of a chunk in its store in bytes; raise FileNotFoundError if the chunk does not exist."""
    return sync(array.store.getsize(chunk_key(array, *position)))


def found_and_expected(array: zarr.Array[Any], *position: int) -> str:
    """Describe the size of a damaged chunk, and the content that it should have."""
    size = "of unknown size"
    with suppress(Exception):  # this only adds to the message of another error
        size = f"{stored_bytes(array, *position)} bytes"
    return f"found {size}, expected {array.shards or array.chunks} of {array.dtype}, encoded"
