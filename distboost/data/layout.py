"""The arrays of a binned store, cut into blocks of rows: each block of each array is one chunk, written once by one writer."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec
from zarr.core.sync import sync

from distboost.data.memory import returned_when_freed
from distboost.data.storage import listed, room_for

# The fill values are ones that a chunk does not consist of: a chunk that is gone is noticed.
_KINDS: dict[str, tuple[str, Any]] = {
    "bins": ("uint8", 255),
    "labels": ("int32", -1),
    "weights": ("float64", -1),
    "values": ("float64", -1),
}


class Written(NamedTuple):
    """A block of an array that is in the store."""

    name: str
    block: int
    checksum: int


@dataclass(frozen=True)
class StoredBlocks:
    """Arrays with the same rows, in blocks. It travels to whoever reads or writes.

    Attributes
    ----------
    arrays : dict of zarr.Array
    url : str
        Of the store.
    rows : int
        Of each block but the last.
    n_rows : int
    needed : int
        Bytes of the whole store, for the message where the disk is full.
    """

    arrays: dict[str, zarr.Array]
    url: str
    rows: int
    n_rows: int
    needed: int = 0

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // self.rows)

    def of(self, first: int, stop: int) -> range:
        """The blocks of rows first .. stop - 1."""
        return range(first // self.rows, -(-stop // self.rows))

    def span(self, block: int) -> slice:
        return slice(block * self.rows, min((block + 1) * self.rows, self.n_rows))

    def write(self, first: int, values: dict[str, np.ndarray]) -> list[Written]:
        """Writes rows, which begin with a block and are whole blocks (the last one of the store aside)."""
        written = []
        length = len(next(iter(values.values())))
        for block in self.of(first, first + length):
            span = self.span(block)
            for name, rows in values.items():
                content = rows[span.start - first : span.stop - first]
                with room_for(self.url, self.needed):
                    self.arrays[name][span] = content
                written.append(Written(name, block, checksum(content)))
        return written

    def read(self, name: str, block: int) -> np.ndarray:
        return np.asarray(self.arrays[name][self.span(block)])

    def candidates(self, names: Iterable[str]) -> list[int]:
        """The blocks that all of these arrays have a chunk of."""
        found = None
        for name in names:
            array = self.arrays[name]
            keys = listed(array.store, f"{array.path}/")
            here = {block for block in range(self.n_blocks) if chunk_key(array, block) in keys}
            found = here if found is None else found & here
        return sorted(found or ())


@returned_when_freed()
def verified(blocks: StoredBlocks, names: tuple[str, ...], block: int) -> list[Written]:
    """What is in the store of a block; nothing if any of it cannot be read, as each chunk's own checksum tells."""
    try:
        return [Written(name, block, checksum(blocks.read(name, block))) for name in names]
    except Exception:
        return []


def chunk_key(array: zarr.Array, row: int, column: int = 0) -> str:
    """The key of a chunk in its store."""
    key = array.metadata.encode_chunk_key((row, column)[: array.ndim])
    return f"{array.path}/{key}" if array.path else key


def has_chunk(array: zarr.Array, row: int, column: int = 0) -> bool:
    """Whether a chunk is there: zarr would read the fill value."""
    return sync(array.store.exists(chunk_key(array, row, column)))


def delete_chunk(array: zarr.Array, row: int, column: int) -> None:
    sync(array.store.delete(chunk_key(array, row, column)))


def checksum(*arrays: np.ndarray) -> int:
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


def block_array(group: zarr.Group, name: str, shape: tuple[int, ...], rows: int) -> zarr.Array:
    """One of the store's arrays: as it is there already, else new. Quantile bins do not compress: nothing is compressed."""
    return chunked_array(group, name, name, shape, (min(rows, shape[0]), *shape[1:]))


def chunked_array(
    group: zarr.Group, name: str, kind: str, shape: tuple[int, ...], chunks: tuple[int, ...]
) -> zarr.Array:
    """An array of the type of `kind` whose chunks carry checksums; kept if it is there in these chunks, else made anew."""
    present = group.get(name)
    if isinstance(present, zarr.Array) and (present.shape, present.chunks) == (shape, chunks):
        return present
    dtype, fill = _KINDS[kind]
    return group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, compressors=[Crc32cCodec()],
        config={"write_empty_chunks": True}, overwrite=present is not None,
    )  # fmt: skip


def plain_array(group: zarr.Group, name: str, values: np.ndarray) -> None:
    """A small array, written at once."""
    group.create_array(name, data=values, compressors=[Crc32cCodec()], overwrite=True)


def store_bytes(n_rows: int, n_features: int, rows: int, max_bins: int, keep_values: bool) -> int:
    """About how large a store becomes: its last block is as large as the others."""
    stored = -(-n_rows // rows) * min(rows, n_rows)
    return stored * (n_features * (9 if keep_values else 1) + 12) + 8 * max_bins * n_features + 2**16
