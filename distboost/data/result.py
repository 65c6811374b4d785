"""The zarr array of streamed predictions. It cannot be opened before it is complete.

Chunks are written under their final keys, and the metadata of the array last: zarr cannot open an array without metadata. Until
then, a file beside the chunks describes their model and rows, so that an interrupted prediction continues from its own chunks
only.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.core.array import AsyncArray
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import MemoryStore, StorePath

from distboost.data.inventory import chunk_key
from distboost.errors import DataError, StoreError
from distboost.io.storage import (
    is_partial,
    listed,
    local_path,
    only_writer,
    open_store,
    remove_all,
    remove_partial_files,
    writing,
)

DIMENSIONS = "_ARRAY_DIMENSIONS"  # the attribute of format 2 that names dimensions
UNFINISHED = "distboost-unfinished.json"
Array: TypeAlias = zarr.Array[Any]
_METADATA = ("zarr.json", ".zarray")  # of format 3, and of format 2
_FORMAT = {"format": "distboost-unfinished-prediction", "version": 1}

# How an unfinished result differs from ours, by the entry of its state that has another value.
_OTHER = {
    "model": "of another model",
    "x": "of other rows, or of rows that were written to since",
    "along": "of features along another dimension",
    "proba": "of the other kind (labels or probabilities)",
    "array": "in chunks of another shape, type or encoding",
}


@dataclass(frozen=True)
class OutputArray:
    """An array that is being written. It travels to the workers, which write its chunks.

    Attributes
    ----------
    url : str
    array : zarr.Array
        The array at its final place, where only the metadata are missing.
    state : bytes
        The content of the file beside the chunks, which describes their model and rows.
    """

    url: str
    array: zarr.Array[Any]
    state: bytes

    @classmethod
    def of(cls, url: str, made_from: dict[str, Any], **array: Any) -> OutputArray:
        """Make a result at a path or URL. Keywords are those of `zarr.create_array`."""
        unplaced = zarr.create_array(
            MemoryStore(),
            config={"write_empty_chunks": True},  # so that a missing chunk is one that was not written
            **array,
        )
        metadata: Any = unplaced.metadata
        place = StorePath(open_store(url, read_only=False))
        placed = zarr.Array(AsyncArray(metadata, place, unplaced.async_array.config))
        return cls(url, placed, _state({**made_from, "array": json.loads(_metadata(placed)[-1][1])}))

    @property
    def store(self) -> Store:
        return self.array.store

    @contextmanager
    def under_way(self, overwrite: bool) -> Iterator[set[str]]:
        """Prepare the place, or continue an interrupted prediction. Yield the keys of the chunks that exist.

        At the end of the context, publish the array unless an error was raised.
        """
        with only_writer(self.url):
            with writing(self.url, self.array.nbytes):
                self._begin(overwrite)
            yield listed(self.store, "") & self._keys()
            with writing(self.url, self.array.nbytes):
                self._publish()

    def key(self, *start: int) -> str:
        """Return the key of the chunk that begins with row `start`, or at this position along each dimension."""
        return chunk_key(self.array, *(a // size for a, size in zip(start, self.array.chunks, strict=False)))

    def check_seen(self) -> None:
        """Raise StoreError if this process does not find the prepared folder: it would write to another one."""
        folder = local_path(self.url)
        if folder is None or _content(self.store) == self.state:
            return
        raise StoreError(
            f"process {os.getpid()} on {platform.node()} does not see {folder} as it was prepared: {UNFINISHED} is missing "
            "there, or belongs to another prediction.",
            remedy="Pass a path or URL that all workers share.",
            where=folder,
        )

    def write(self, start: int, values: np.ndarray) -> None:
        """Write a whole chunk, which begins with row `start`."""
        self.write_box((start,) + (0,) * (values.ndim - 1), values)

    def write_box(self, start: tuple[int, ...], values: np.ndarray) -> None:
        """Write a whole chunk, which begins at this position along each dimension."""
        box = tuple(slice(a, a + n) for a, n in zip(start, values.shape, strict=True))
        with writing(self.url, self.array.nbytes):
            self.array[box] = values

    def _keys(self) -> set[str]:
        """Return the keys of all chunks."""
        steps = (range(0, n, size) for n, size in zip(self.array.shape, self.array.chunks, strict=True))
        return {self.key(*start) for start in itertools.product(*steps)}

    def _begin(self, overwrite: bool) -> None:
        present = {key for key in listed(self.store, "") if not is_partial(key)}
        remove = bool(present)
        if UNFINISHED in present:
            found = _content(self.store)
            if found == self.state:
                remove_partial_files(self.url)
                return
            other = _difference(self.url, found, self.state)
            if not overwrite:
                raise DataError(
                    f"there is an unfinished prediction at {self.url!r}, {other}.",
                    remedy="Replace it with ``overwrite=True``, or pass another path as ``out``.",
                    where=self.url,
                )
        elif present:
            _check_is_array(self.url)
            if not overwrite:
                raise DataError(
                    f"there is a zarr array at {self.url!r} already.",
                    remedy="Pass another path as ``out``, or ``overwrite=True``.",
                    where=self.url,
                )
        if remove:
            _put(self.store, UNFINISHED, _state({}))  # the next call may then remove the rest
            for key in _METADATA:
                sync(self.store.delete(key))
            remove_all(self.store, keep={UNFINISHED})
        _put(self.store, UNFINISHED, self.state)

    def _publish(self) -> None:
        present = listed(self.store, "")
        missing = sorted(self._keys() - present)
        if missing:
            raise StoreError(
                f"{len(missing)} of {len(self._keys())} chunks were written but are not in {self.url!r}, the first is "
                f"{missing[0]}: a worker wrote them to a folder of its own.",
                remedy="Pass a path or URL that all workers share. The chunks that exist are kept.",
                where=self.url,
            )
        if _content(self.store) != self.state:
            raise StoreError(
                f"another process has begun to write to {self.url!r}.",
                remedy="Wait for it, or choose another path.",
                where=self.url,
            )
        for key, content in _metadata(self.array):
            _put(self.store, key, content)
        sync(self.store.delete(UNFINISHED))


def write_coordinates(url: str, coords: Mapping[str, Any]) -> None:
    """Write coordinates into the group of format 2 at a path or URL, beside an `OutputArray`.

    They have `dims`, `values` and `attributes`.
    """
    with writing(url, sum(one.values.nbytes for one in coords.values())):
        group = zarr.open_group(open_store(url, read_only=False), mode="a", zarr_format=2)
        group.attrs["Conventions"] = "CF-1.11"
        for name, one in coords.items():
            attributes = {**one.attributes, DIMENSIONS: list(one.dims)}
            group.create_array(name, data=one.values, attributes=attributes, fill_value=None, overwrite=True)


def consolidate(url: str) -> None:
    """Describe all arrays of a group in one file, which xarray asks for."""
    with writing(url, 0):
        zarr.consolidate_metadata(open_store(url, read_only=False), zarr_format=2)


def _state(made_from: dict[str, Any]) -> bytes:
    return json.dumps({**_FORMAT, "made_from": made_from}, indent=1, sort_keys=True).encode()


def _metadata(array: zarr.Array[Any]) -> list[tuple[str, bytes]]:
    """Return the metadata of an array, as they are stored, by their keys. Without the last, it cannot be opened."""
    found = array.metadata.to_buffer_dict(default_buffer_prototype())
    return [(key, found[key].to_bytes()) for key in sorted(found, key=_METADATA.__contains__)]


def _content(store: Store) -> bytes | None:
    """Return the content of the file that describes the chunks' model and rows; None if it is missing."""
    found = sync(store.get(UNFINISHED, default_buffer_prototype()))
    return None if found is None else found.to_bytes()


def _put(store: Store, key: str, content: bytes) -> None:
    sync(store.set(key, default_buffer_prototype().buffer.from_bytes(content)))


def _difference(url: str, found: bytes | None, ours: bytes) -> str:
    """Describe how an unfinished result differs from ours; raise DataError if that cannot be found out."""
    try:
        state = json.loads(found or b"")
        theirs = dict(state.pop("made_from"))
        if state != _FORMAT:
            raise ValueError(f"it says {state!r:.100}")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{UNFINISHED} at {url!r} is damaged, or of another version: {type(error).__name__}: {error}.",
            remedy="Remove the folder yourself, or choose another path.",
            where=url,
        ) from error
    own = json.loads(ours)["made_from"]
    if not theirs:
        return "which replaces an earlier one"
    return next(text for name, text in _OTHER.items() if theirs.get(name) != own.get(name))


def _check_is_array(url: str) -> None:
    """Raise DataError unless the place holds an array: nothing else is ever removed."""
    try:
        zarr.open_array(open_store(url), mode="r")
    except Exception as error:
        raise DataError(
            f"there is something at {url!r} that is not a zarr array, so it is not overwritten.",
            remedy="Remove it yourself, or pass another path as ``out``.",
            where=url,
        ) from error
