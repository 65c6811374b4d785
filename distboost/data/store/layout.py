"""The arrays of a binned store, in blocks of rows. Each block of each array is one chunk, which one writer writes once."""

from __future__ import annotations

import logging
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.codecs import Crc32cCodec, ZstdCodec

from distboost.data.inventory import Probe, chunk_key
from distboost.data.memory import returned_when_freed
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import listed, writing

log = logging.getLogger("distboost.data")

# No chunk consists of these fill values, so a missing chunk is noticed.
_KINDS: dict[str, tuple[str, Any]] = {
    "bins": ("uint8", 255),
    "labels": ("int32", -1),
    "weights": ("float64", -1),
    "values": ("float64", -1),
}


class Written(NamedTuple):
    """A block of an array that has been written, and its CRC-32."""

    name: str
    block: int
    checksum: int


@dataclass(frozen=True)
class StoredBlocks:
    """Arrays of the same rows, in blocks. It travels to the workers that read or write them.

    Attributes
    ----------
    arrays : dict of zarr.Array
    url : str
        URL or path of the store.
    rows : int
        Rows of each block except the last.
    n_rows : int
    needed : int
        Bytes of the whole store, for the message if the disk is full.
    """

    arrays: dict[str, zarr.Array[Any]]
    url: str
    rows: int
    n_rows: int
    needed: int = 0

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // self.rows)

    def of(self, first: int, stop: int) -> range:
        """Return the blocks of the rows first .. stop - 1."""
        return range(first // self.rows, -(-stop // self.rows))

    def rows_of(self, blocks: range) -> slice:
        """Return the rows of successive blocks."""
        return slice(self.span(blocks.start).start, self.span(blocks.stop - 1).stop)

    def span(self, block: int) -> slice:
        return slice(block * self.rows, min((block + 1) * self.rows, self.n_rows))

    def write(self, first: int, values: dict[str, np.ndarray]) -> list[Written]:
        """Write whole blocks of rows; only the last block of the store may be shorter."""
        written = []
        length = len(next(iter(values.values())))
        for block in self.of(first, first + length):
            span = self.span(block)
            for name, rows in values.items():
                content = rows[span.start - first : span.stop - first]
                with writing(self.url, self.needed):
                    self.arrays[name][span] = content
                written.append(Written(name, block, checksum(content)))
        return written

    def place(self, name: str, block: int) -> str:
        """Return the name of a block of an array in messages."""
        span, key = self.span(block), chunk_key(self.arrays[name], block)
        return f"chunk {key}, rows {span.start} to {span.stop - 1} of the binned store {self.url}"

    def probe(self) -> Probe:
        return Probe.of(self.arrays["labels"], (0,), f"the binned store {self.url}")

    def read(self, name: str, block: int) -> np.ndarray:
        return np.asarray(self.arrays[name][self.span(block)])

    def candidates(self, names: Iterable[str]) -> list[int]:
        """Return the blocks for which all of these arrays have a chunk."""
        found = None
        for name in names:
            array = self.arrays[name]
            keys = listed(array.store, f"{array.path}/")
            here = {block for block in range(self.n_blocks) if chunk_key(array, block) in keys}
            found = here if found is None else found & here
        return sorted(found or ())


@returned_when_freed()
def verified(blocks: StoredBlocks, names: tuple[str, ...], block: int) -> list[Written]:
    """Return the arrays of a block with their checksums; an empty list if any of them cannot be read or is damaged."""
    written = []
    for name in names:
        what = blocks.place(name, block)
        try:
            content = retried(partial(blocks.read, name, block), what, reread=True)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (codecs and stores raise anything; the array is made again)
            log.warning("%s cannot be used (%s): it is written again", what, quoted(error))
            return []
        written.append(Written(name, block, checksum(content)))
    return written


def checksum(*arrays: np.ndarray) -> int:
    """Return the CRC-32 of the contents of the arrays, one after another."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).data, value)
    return value


def block_array(
    group: zarr.Group, name: str, shape: tuple[int, ...], rows: int, compressed: bool = False
) -> zarr.Array[Any]:
    """Open or make an array of the store. Only sparse bins are to be compressed: those of quantiles do not compress."""
    return chunked_array(group, name, name, shape, _block_chunks(shape, rows), compressed)


def is_block_array(array: Any, name: str, shape: tuple[int, ...], rows: int) -> bool:
    """Whether `array` has the type, shape and chunks of the array of this name in a store."""
    return _is_of(array, name, shape, _block_chunks(shape, rows))


def _block_chunks(shape: tuple[int, ...], rows: int) -> tuple[int, ...]:
    return min(rows, shape[0]), *shape[1:]


def chunked_array(
    group: zarr.Group,
    name: str,
    kind: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    compressed: bool = False,
) -> zarr.Array[Any]:
    """Return an array of type `kind` with checksums in its chunks. An existing array is kept if it has these chunks."""
    present: zarr.Array[Any] = _present(group, name)
    if _is_of(present, kind, shape, chunks):
        return present
    dtype, fill = _KINDS[kind]
    compressors = [ZstdCodec(level=1), Crc32cCodec()] if compressed else [Crc32cCodec()]
    return group.create_array(
        name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, compressors=compressors,
        config={"write_empty_chunks": True}, overwrite=True,
    )  # fmt: skip


def _present(group: zarr.Group, name: str) -> Any:
    """The member of a group; None if it does not exist or is damaged."""
    what = f"array {name} of {group.store_path}"
    try:
        return retried(lambda: group.get(name), what)
    except Exception as error:
        if not is_damage(error):
            raise
        log.warning("the metadata of %s are damaged (%s): the array is made again", what, quoted(error))
        return None


def _is_of(array: Any, kind: str, shape: tuple[int, ...], chunks: tuple[int, ...]) -> bool:
    """Whether `array` is a zarr array of this shape, these chunks, and the type of `kind`."""
    dtype = np.dtype(_KINDS[kind][0])
    return isinstance(array, zarr.Array) and (array.shape, array.chunks, array.dtype) == (
        shape,
        chunks,
        dtype,
    )


def plain_array(group: zarr.Group, name: str, values: np.ndarray) -> None:
    """Write a small array at once."""
    group.create_array(name, data=values, compressors=[Crc32cCodec()], overwrite=True)


def store_bytes(
    n_rows: int, n_features: int, rows: int, max_bins: int, keep_values: bool, bin_bytes: int
) -> int:
    """Return about how many bytes a store takes, of so many for the bins of a row. Its last block takes as many as the others."""
    stored = -(-n_rows // rows) * min(rows, n_rows)
    values = 8 * n_features if keep_values else 0
    return stored * (bin_bytes + values + 12) + 8 * max_bins * n_features + 2**16
