"""What is read is what was listed: a chunk that is gone, new or of another size is an error, wherever the array lies."""

from __future__ import annotations

import pickle
import re
import zipfile
from pathlib import Path

import fsspec
import numpy as np
import pytest
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem

from distboost.data.inventory import ABSENT, UNKNOWN, Inventory
from distboost.data.stored import ZarrSource
from distboost.errors import StoreError
from distboost.inputs.choose import adapter_of

X = np.random.default_rng(0).normal(size=(100, 6))
LAYOUTS = {
    "chunks": {"chunks": (10, 3)},
    "shards": {"chunks": (5, 3), "shards": (20, 6)},
    "format 2": {"chunks": (10, 3), "zarr_format": 2},
    "format 2, nested": {
        "chunks": (10, 3),
        "zarr_format": 2,
        "chunk_key_encoding": {"name": "v2", "separator": "/"},
    },
    "one chunk": {"chunks": (100, 6)},
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def array(request, tmp_path):
    return zarr.create_array(str(tmp_path / "x"), data=X, **request.param)


def first_chunk(array: zarr.Array) -> Path:
    return Path(array.store.root) / array.metadata.encode_chunk_key((0, 0))


@pytest.mark.parametrize("travelled", [False, True], ids=["here", "elsewhere"])
def test_what_is_as_it_was_listed_is_read(array, travelled):
    source = adapter_of(array, "X").column()
    assert (source.inventory.sizes > 0).all()
    for start, stop, columns in [(0, 100, None), (7, 33, None), (15, 60, (2, 5)), (99, 100, (0, 1))]:
        part = source.part(start, stop, columns)
        part = pickle.loads(pickle.dumps(part)) if travelled else part
        np.testing.assert_array_equal(part.load(), X[start:stop, slice(*(columns or (0, 6)))])


@pytest.mark.parametrize("done", ["gone", "cut off", "emptied", "folder gone"])
def test_what_is_not_as_it_was_listed(array, done, tmp_path):
    source = adapter_of(array, "X").column()
    part = source.part(0, 30)
    chunk = first_chunk(array)
    if done == "gone":
        chunk.unlink()
    elif done == "folder gone":
        (tmp_path / "x").rename(tmp_path / "elsewhere")
    else:
        chunk.write_bytes(chunk.read_bytes()[:-7] if done == "cut off" else b"")
    said = {
        "gone": "was in the store when it was listed, but is not visible to process",
        "cut off": r"had \d+ bytes when the store was listed, but has \d+ for process|cannot be read",
        "emptied": "it is empty",
        "folder gone": "was in the store when it was listed, but is not visible to process",
    }[done]
    with pytest.raises(StoreError, match=rf"^chunk \S+, rows 0 to \d+ of X \(file://.*\).* ?({said})"):
        part.load()


def test_a_chunk_that_was_never_written_stays_so(tmp_path):
    """It is the fill value; written later, it is an error: others have read it as the fill value."""
    array = zarr.create_array(
        str(tmp_path / "x"), shape=X.shape, chunks=(10, 3), dtype=float, fill_value=-1.0
    )
    array[:50] = X[:50]
    source = adapter_of(str(tmp_path / "x"), "X").column()
    assert source.inventory.missing() == [f"c/{row}/{column}" for row in range(5, 10) for column in range(2)]
    part = source.part(45, 60)
    np.testing.assert_array_equal(part.load(), np.concatenate([X[45:50], np.full((10, 6), -1.0)]))
    array[55, 0] = 3.0
    with pytest.raises(
        StoreError, match=r"chunk c/5/0, rows 50 to 59 of X .*was not in the store when it was listed"
    ):
        part.load()


def test_an_archive(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "x.zip", mode="w") as store:
        zarr.create_array(store, name="a", data=X, chunks=(10, 3))
    with zarr.storage.ZipStore(tmp_path / "x.zip", mode="r") as store:
        source = ZarrSource(zarr.open_array(store, path="a", mode="r"), "X")
        assert (source.inventory.sizes > 0).all()
        np.testing.assert_array_equal(source.read(3, 47), X[3:47])
        digest = source.inventory.digest
    other = {info.filename: None for info in zipfile.ZipFile(tmp_path / "x.zip").infolist()}
    assert "a/c/0/0" in other
    assert re.fullmatch("[0-9a-f]{64}", digest)


def test_an_archive_at_a_relative_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zarr.storage.ZipStore("x.zip", mode="w") as store:
        zarr.create_array(store, name="a", data=X, chunks=(10, 3))
    source = ZarrSource(zarr.open_array(zarr.storage.ZipStore("x.zip", mode="r"), path="a", mode="r"), "X")
    np.testing.assert_array_equal(source.read(0, 100), X)


def test_a_store_that_tells_names_alone():
    """Whether a chunk is there is compared, its size is not."""
    array = zarr.create_array(zarr.storage.MemoryStore(), data=X, chunks=(10, 3))
    found = Inventory(array, "X")
    assert (found.sizes == UNKNOWN).all()
    assert found.digest is None
    array.store._store_dict.pop("c/3/1")
    assert Inventory(array, "X").sizes[3, 1] == ABSENT


class Names(LocalFileSystem):
    """Files that are listed without sizes and times."""

    def find(self, path, **options):
        return {name: {"name": name, "type": "file"} for name in super().find(path)}


def test_a_chunk_that_is_gone_is_noticed_by_its_name_alone(tmp_path):
    zarr.create_array(str(tmp_path / "x"), data=X, chunks=(10, 3))
    files = AsyncFileSystemWrapper(Names(), asynchronous=True)
    store = zarr.storage.FsspecStore(files, read_only=True, path=str(tmp_path / "x"))
    source = adapter_of(zarr.open_array(store, mode="r"), "X").column()
    assert source.is_unchanged()
    (tmp_path / "x" / "c" / "3" / "1").unlink()
    assert not source.is_unchanged()


def test_memory_of_fsspec():
    zarr.create_array("memory://inventory/x", data=X, chunks=(10, 3))
    source = adapter_of("memory://inventory/x", "X").column()
    assert source.is_near
    assert (source.inventory.sizes > 0).all()
    assert isinstance(source.part(0, 10), np.ndarray)
    part = source.part(0, 10)
    fsspec.filesystem("memory").rm("/inventory/x/c/0/0")
    np.testing.assert_array_equal(part, X[:10])
    with pytest.raises(StoreError, match="chunk c/0/0"):
        source.part(0, 10)


def test_a_file_url(tmp_path):
    zarr.create_array(str(tmp_path / "x"), data=X, chunks=(10, 3))
    source = adapter_of(f"file://{tmp_path}/x", "X").column()
    np.testing.assert_array_equal(source.read(0, 100), X)
    assert (source.inventory.sizes > 0).all()


def test_what_was_written_again_is_noticed(array):
    source = adapter_of(array, "X").column()
    assert source.inventory.digest
    assert source.is_unchanged()
    array[0, 0] = 17.0
    assert not source.is_unchanged()


def test_a_relative_path_becomes_absolute(tmp_path, monkeypatch):
    zarr.create_array(str(tmp_path / "x"), data=X, chunks=(10, 3))
    monkeypatch.chdir(tmp_path)
    parts = [
        adapter_of(x, "X").column().part(0, 100)
        for x in ("x", zarr.open_array("x", mode="r"), zarr.open_array(Path("x"), mode="r"))
    ]
    monkeypatch.chdir("/")
    for part in parts:
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(part)).load(), X)
