"""Stored arrays, read chunk by chunk: each chunk is compared with the listing of the store."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import zarr

from distboost.data.inventory import (
    ABSENT,
    Inventory,
    Probe,
    UnlikeListingError,
    chunk_key,
    found_and_expected,
    held_to,
    with_absolute_path,
)
from distboost.data.listing import innermost
from distboost.data.memory import returned_when_freed
from distboost.data.source import PIECE_BYTES, Axis, Bounds, BoxSource, assembled, box_shape, boxes
from distboost.errors import MissingChunkError, StoreError
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import is_in_memory

log = logging.getLogger("distboost")


@dataclass(frozen=True)
class Packing:
    """How stored numbers become values.

    Attributes
    ----------
    scale, offset : float
    missing : tuple of numbers
        Stored numbers that stand for missing values.
    dtype : numpy.dtype
        Of the values.
    """

    scale: float
    offset: float
    missing: tuple[float, ...]
    dtype: np.dtype

    def decoded(self, stored: np.ndarray) -> np.ndarray:
        """Return the values of stored numbers; missing ones are NaN."""
        values = stored.astype(self.dtype)
        for number in self.missing:
            values[stored == number] = np.nan
        if self.scale != 1:
            values *= self.scale
        if self.offset != 0:
            values += self.offset
        return values


class ZarrSource(BoxSource):
    """A zarr array. Each process that reads a part compares the chunks with the listing made by this one.

    Parameters
    ----------
    array : zarr.Array
    place : str
    packing : Packing or None
        How the stored numbers become values; None: they are the values.

    Attributes
    ----------
    warning : str or None
        A warning about what the array's attributes say.
    """

    decodes_again = True
    warning: str | None = None

    def __init__(self, array: zarr.Array[Any], place: str, packing: Packing | None = None):
        self.stored, self.packing = with_absolute_path(array), packing
        self.place = f"``{place}`` ({_url(self.stored)})"
        self.shape = array.shape
        self.dtype = np.dtype(array.dtype) if packing is None else packing.dtype
        self.axes = axes_of(array)
        self.chunk_bytes = self.bytes_of_chunk()
        if not (array.shards or array.filters) and len(array.compressors) < 2:
            self.read_copies = 3  # decoded in one step
        # A store in memory exists in this process only: its parts are loaded before they are sent.
        self.is_near = is_in_memory(innermost(array.store))
        self.is_stored = not self.is_near
        self.copies = int(self.is_near)

    @cached_property
    def inventory(self) -> Inventory:
        """The store's listing of the array, made at the first access."""
        return Inventory(self.stored, self.place)

    def box(self, bounds: Bounds) -> Any:
        size = self.stored.shards or self.stored.chunks
        cells = [slice(a // chunk, -(-b // chunk)) for (a, b), chunk in zip(bounds, size, strict=True)]
        sizes = self.inventory.sizes[tuple(cells)]
        part = ZarrPart(self.stored, self.place, bounds, sizes, self.packing)
        return part.load() if self.is_near else part

    def warnings(self, policy: str) -> list[str]:
        missing = None if policy == "ignore" else self._missing_warning(policy)
        unlisted = None if policy == "ignore" else self._listing_warning()
        return [message for message in (missing, self.warning, unlisted) if message]

    def _missing_warning(self, policy: str) -> str | None:
        """Return a warning if chunks were never written, which zarr silently reads as the fill value."""
        missing = self.inventory.missing()
        if not missing:
            return None
        named = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        message = (
            f"{len(missing)} chunks of {self.place} are not in the store and read as the fill value "
            f"{self.stored.fill_value}: {named}."
        )
        if policy == "error":
            raise MissingChunkError(f"{message} Write them, or allow this with ``missing_chunks='warn'``.")
        return f"{message} By default, zarr does not write chunks that are all fill value. If these are not, write them again."

    def _listing_warning(self) -> str | None:
        """Return a warning if the store does not list the array: then less is checked."""
        if self.inventory.is_listed:
            return None
        return (
            f"{self.place} cannot be listed: each of its {self.inventory.sizes.size} chunks was asked for by itself. Chunks that "
            "are absent, and those that you may not read, cannot be told apart, and a chunk that is written again meanwhile, in "
            "the same size, is not noticed. ``missing_chunks='ignore'`` hides this warning."
        )

    def is_unchanged(self) -> bool:
        with self._found():
            # Without a listing, only reads notice changes.
            if self.is_near or not self.inventory.is_listed:
                return True
            return Inventory(self.stored, self.place).listing == self.inventory.listing

    def mark(self) -> Any:
        with self._found():
            return (None if self.is_near else self.inventory.digest) or super().mark()

    @contextmanager
    def _found(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise StoreError(
                f"{self.place} does not exist, or not any more: {error}.",
                remedy="Restore it, and start again.",
                where=self.place,
            ) from error


def _url(array: zarr.Array[Any]) -> str:
    store = array.store
    if isinstance(store, zarr.storage.FsspecStore):
        return str(store.fs.unstrip_protocol("/".join(filter(None, (store.path, array.path)))))
    return str(array.store_path)


@dataclass(frozen=True)
class ZarrPart:
    """The address of a box of a zarr array, such as some rows and columns.

    Attributes
    ----------
    array : zarr.Array
    place : str
        The name of the array in messages.
    bounds : tuple of (int, int)
        Along each axis, the first item and the last one + 1.
    sizes : ndarray of the shape of the part's grid of chunks, int64
        The listed sizes of the chunks, in bytes (see `Inventory`). Reading a chunk that differs from the listing is an error:
        zarr would read a missing one as the fill value.
    packing : Packing or None
        How the stored numbers become values; None: they are the values.
    """

    array: zarr.Array[Any]
    place: str
    bounds: Bounds
    sizes: np.ndarray
    packing: Packing | None = None

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype) if self.packing is None else self.packing.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(b - a for a, b in self.bounds)

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield the values of one chunk (or a few small ones) at a time, with their position within the part.

        zarr decodes all chunks of a selection at once, so each selection covers only a few.
        """
        array = held_to(self.array, self._first_chunk, self.sizes)
        axes = axes_of(array)
        for piece in boxes(axes, self.bounds, box_shape(axes, PIECE_BYTES // self.dtype.itemsize)):
            with returned_when_freed():
                values = self._read(array, piece)
                if self.packing is not None:
                    values = self.packing.decoded(values)
                yield _position(piece, self.bounds), values
                del values  # frees memory before the next piece is read

    def _read(self, array: zarr.Array[Any], piece: Bounds) -> np.ndarray:
        """Read the values of some chunks together, or one by one if that fails."""
        chunks = list(boxes(axes_of(array), piece, [1] * len(piece)))
        if len(chunks) == 1:
            return self._read_chunk(array, piece)
        try:
            return _values(array, piece)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (codecs and stores raise anything; what is damaged fails again by itself)
            log.warning(
                "%s cannot be read (%s): reading its %d chunks one by one",
                self._rows(piece),
                quoted(error),
                len(chunks),
            )
        out = np.empty([b - a for a, b in piece], array.dtype)
        for chunk in chunks:
            out[_within(chunk, piece)] = self._read_chunk(array, chunk)
        return out

    def _read_chunk(self, array: zarr.Array[Any], chunk: Bounds) -> np.ndarray:
        """Read the values of one chunk, or of a part of it."""
        position = self._chunk_position(chunk)
        what = f"chunk {chunk_key(array, *position)}, {self._rows(chunk)}"
        try:
            return retried(lambda: _values(array, chunk), what, reread=True)
        except UnlikeListingError as error:
            raise StoreError(
                f"{what}, {error}.",
                remedy="If that is a worker on another machine, pass a path or URL at which all workers find the same data. "
                "Otherwise the data were changed meanwhile: start again when they no longer change.",
            ) from error
        except Exception as error:
            if not (is_damage(error) or isinstance(error, FileNotFoundError)):
                raise
            raise StoreError(
                f"{what} cannot be read: {quoted(error)} ({found_and_expected(self.array, *position)}).",
                remedy="Write the damaged chunk again, or restore it from a copy.",
            ) from error

    def probe(self) -> Probe | None:
        """Return the address of a listed chunk; None if there is none."""
        listed = np.argwhere(self.sizes != ABSENT)[:1]
        if not len(listed):
            return None
        position = tuple(int(a + b) for a, b in zip(self._first_chunk, listed[0], strict=True))
        return Probe.of(self.array, position, self.place)

    @property
    def _first_chunk(self) -> tuple[int, ...]:
        return tuple(self._chunk_position(self.bounds))

    def _chunk_position(self, chunk: Bounds) -> list[int]:
        size = self.array.shards or self.array.chunks
        return [a // length for (a, _), length in zip(chunk, size, strict=True)]

    def _rows(self, spans: Bounds) -> str:
        a, b = spans[0]
        return f"rows {a} to {b - 1} of {self.place}"

    def load(self) -> np.ndarray:
        return assembled(self)


def _values(array: zarr.Array[Any], spans: Bounds) -> np.ndarray:
    return np.asarray(array[tuple(slice(a, b) for a, b in spans)])


def _position(cell: Bounds, bounds: Bounds) -> tuple[int, ...]:
    """Return where a cell begins within bounds."""
    return tuple(a - first for (a, _), (first, _) in zip(cell, bounds, strict=True))


def _within(cell: Bounds, bounds: Bounds) -> tuple[slice, ...]:
    """Return the slices of a cell in an array that covers the bounds."""
    return tuple(slice(a - first, b - first) for (a, b), (first, _) in zip(cell, bounds, strict=True))


def axes_of(array: zarr.Array[Any]) -> tuple[Axis, ...]:
    """Return each axis: its length, and that of its chunks (of its shards, where there are shards)."""
    return tuple(Axis(n, chunk) for n, chunk in zip(array.shape, array.shards or array.chunks, strict=True))
