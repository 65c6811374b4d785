"""Raw arrays whose files are damaged, cannot be read or are removed: an error that says where and what to do."""

import json
import pickle
import re
import shutil
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import zarr

import distboost
from distboost.errors import DataError, StoreError
from tests.data.disturbed import model, unreadable

pytestmark = pytest.mark.usefixtures("short_waits")

DAMAGE = {
    "truncated": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "garbage": lambda content: bytes(range(256)) * (len(content) // 256 + 1),
}
FORMS = {
    "compressed": {"chunks": (60, 4)},
    "plain": {"chunks": (60, 4), "compressors": None},
    "sharded": {"chunks": (20, 2), "shards": (60, 4)},
    "checked": {"chunks": (60, 4), "compressors": [zarr.codecs.Crc32cCodec()]},
    "version 2": {"chunks": (60, 4), "zarr_format": 2},
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_chunk(form, damage, blobs, tmp_path):
    """Garbage of the same length is noticed only where the format has something that tells: plain numbers have not."""
    x = str(tmp_path / "x")
    zarr.create_array(x, data=np.asarray(blobs[0]), **FORMS[form])
    key = "1.0" if form == "version 2" else "c/1/0"
    chunk = Path(x) / key
    content = DAMAGE[damage](chunk.read_bytes())
    chunk.write_bytes(content)
    said = (
        rf"chunk {key}, rows 60 to 119 of X \(file://.*x\) cannot be read: \w+.*found {len(content)} bytes, "
        r"expected \(60, 4\) of float64, encoded.*Write the damaged chunk again, or restore it from a copy"
    )
    with pytest.raises(StoreError, match=re.compile(said, re.DOTALL)) as raised:
        model().fit(x, blobs[1])
    assert raised.value.__cause__ is not None
    travelled = pickle.loads(pickle.dumps(raised.value))
    assert (type(travelled), str(travelled)) == (StoreError, str(raised.value))


def test_a_shard_whose_index_is_broken(blobs, tmp_path):
    x = str(tmp_path / "x")
    zarr.create_array(x, data=np.asarray(blobs[0]), **FORMS["sharded"])
    chunk = Path(x) / "c" / "1" / "0"
    content = bytearray(chunk.read_bytes())
    content[-9] ^= 4
    chunk.write_bytes(content)
    with pytest.raises(StoreError, match=r"chunk c/1/0, rows 60 to 119 of X .*checksum"):
        model().fit(x, blobs[1])


def edited(**changes):
    def edit(path):
        metadata = json.loads(path.read_text())
        path.write_text(json.dumps({**metadata, **changes}))

    return edit


METADATA = {
    "missing": (Path.unlink, DataError, "X: there is no zarr array at .*Pass the path"),
    "empty": (lambda path: path.write_text(""), StoreError, "cannot be used .*Write its zarr.json again"),
    "truncated": (
        lambda path: path.write_text(path.read_text()[:-20]), StoreError, "cannot be used .*Write its zarr.json again"
    ),
    "no JSON": (lambda path: path.write_bytes(b"\x00\xff"), StoreError, "cannot be used .*Write its zarr.json again"),
    "another shape": (edited(shape=[250, 4]), DataError, "X .* has 250 rows but y has 240"),
    "another type": (edited(data_type="float32"), StoreError, r"chunk c/0/0, rows 0 to 49 of X .*expected \(50, 2\)"),
    "no type": (edited(data_type="flout64"), StoreError, "cannot be used .*flout64"),
    "other chunks": (
        edited(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [60, 2]}}),
        StoreError, r"chunk c/0/0, rows 0 to 59 of X .*expected \(60, 2\)",
    ),
    "an unknown codec": (
        edited(codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zap"}]),
        StoreError, "cannot be used .*zap.*install the library",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", METADATA)
def test_damaged_metadata(what, arrays, blobs, log):
    damage, error, said = METADATA[what]
    damage(Path(arrays[0]) / "zarr.json")
    with pytest.raises(error, match=re.compile(said, re.DOTALL)) as raised:
        model().fit(arrays[0], blobs[1])
    assert arrays[0] in str(raised.value)
    assert "attempt 3" not in log.text


def test_metadata_that_cannot_be_read(arrays, expected, saved, repaired):
    repair = unreadable(Path(arrays[0]) / "zarr.json")
    with pytest.raises(
        StoreError, match=r"X: the metadata of the zarr array at .*x' cannot be read: .*Check the disk"
    ):
        model().fit(*arrays)
    repaired(repair)
    assert saved(model().fit(*arrays)) == expected


def test_an_array_that_is_removed_while_it_is_binned(arrays, blobs, tmp_path):
    def disturb(block):
        shutil.rmtree(arrays[1], ignore_errors=True)
        return block

    x = da.from_array(np.asarray(blobs[0]), chunks=(60, 4)).map_blocks(disturb, meta=np.empty((0, 4)))
    with pytest.raises(
        StoreError, match=r"chunk c/0, .* of y \(.*y\), was in the store .* but is not visible"
    ):
        distboost.bin(x, arrays[1], str(tmp_path / "store"))
