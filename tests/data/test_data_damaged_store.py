"""Binned stores whose files are damaged, cannot be read or change between passes: an error that names them, or the same model."""

import os
import random
import re
from pathlib import Path

import pytest

import distboost
from distboost.data import ingest
from distboost.errors import BinnedStoreError, StoreError
from distboost.training import memory_plan
from tests.data.disturbed import model, unreadable

pytestmark = pytest.mark.usefixtures("short_waits")


@pytest.mark.parametrize("file", ["zarr.json", "bins/zarr.json", "bins/c/1/0", "weights/c/3", "edges/c/0"])
def test_a_file_of_a_store_that_cannot_be_read(file, store, expected, saved, repaired, log):
    """That is no damage, and binning again is not the remedy."""
    repair = unreadable(Path(store) / file)
    names = {"edges/c/0": "edges", "bins/zarr.json": "array bins"}
    what = rf"{names.get(file, file)}.* of the binned store {store}"
    if file == "zarr.json":  # nobody knows then whether there is a store or an array
        what = f"metadata of the zarr array at '{store}'"
    with pytest.raises(StoreError, match=rf"{what} cannot be read: .*Check the") as raised:
        model().fit(store)
    assert not isinstance(raised.value, BinnedStoreError)
    log.clear()
    repaired(repair)
    assert saved(model().fit(store)) == expected
    assert re.search(rf"{what}.*\(OSError: \[Errno 5\].*attempt 2 of 6", log.text)


def test_any_damage_to_any_file_of_a_store(blobs, tmp_path, expected, saved, monkeypatch):
    """One bit, the end, all of it: an error that names the file's array (and chunk), or else the same model."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 120)
    store = Path(distboost.bin(*blobs, str(tmp_path / "store")))
    assert saved(model().fit(store)) == expected
    chance = random.Random(0)
    files = sorted(file for file in store.rglob("*") if file.is_file())
    assert len(files) == 14
    harmless, refused = 0, 0
    for file in files:
        content = file.read_bytes()
        damages = [content[: chance.randrange(1, len(content))], b"", None]
        damages += [_flipped(content, chance.randrange(8 * len(content))) for _ in range(8)]
        for damaged in damages:
            file.unlink() if damaged is None else file.write_bytes(damaged)
            try:
                assert saved(model().fit(store)) == expected
                harmless += 1
            except BinnedStoreError as error:
                refused += 1
                _assert_names(str(error), file.relative_to(store), store)
            file.write_bytes(content)
    assert saved(model().fit(store)) == expected
    assert refused > 9 * harmless


def _flipped(content, bit):
    flipped = bytearray(content)
    flipped[bit // 8] ^= 1 << bit % 8
    return bytes(flipped)


def _assert_names(message, file, store):
    array, *below = file.parts
    assert str(store) in message, message
    assert (
        f"chunk {file}," if below and below[0] == "c" and array in ("bins", "labels", "weights") else array
    ) in message
    assert "in the data again" in message, message


def test_errors_of_workers_arrive(store, clients):
    """As they are."""
    chunk = Path(store) / "bins" / "c" / "2" / "0"
    chunk.write_bytes(b"")
    for client in (None, clients[2]):
        fitting = model()
        fitting.client = client
        with pytest.raises(BinnedStoreError, match=r"chunk bins/c/2/0, rows 120 to 179 of .*found 0 bytes"):
            fitting.fit(store)


def _set_back(chunk, content):
    """Other bytes, and the time of the file as it was."""
    status = chunk.stat()
    chunk.write_bytes(content)
    os.utime(chunk, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(chunk, content):
    beside = chunk.with_name("new")
    beside.write_bytes(content)
    beside.replace(chunk)


MEANWHILE = {
    "changed": lambda chunk: chunk.write_bytes(_flipped(chunk.read_bytes(), 99)),
    "changed, its time set back": lambda chunk: _set_back(chunk, _flipped(chunk.read_bytes(), 99)),
    "replaced": lambda chunk: _replace(chunk, _flipped(chunk.read_bytes(), 99)),
    "replaced by another chunk": lambda chunk: _replace(chunk, (chunk.parents[1] / "0" / "0").read_bytes()),
    "truncated": lambda chunk: os.truncate(chunk, 30),
    "removed": Path.unlink,
    "unreadable": unreadable,
}


@pytest.fixture
def streaming(blobs, tmp_path, monkeypatch):
    """streaming(callback): a fitted model, most rows of which were read in each round; after each the callback is called."""
    monkeypatch.setattr(memory_plan, "PROCESS_BYTES", 0)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 20)
    store = distboost.bin(*blobs, str(tmp_path / "store"), max_bins=16)

    def fitted(callback):
        found = model(max_bins=16, memory_limit=21_000, callbacks=[callback]).fit(store)
        assert found.memory_plan_.streamed >= 20
        return found

    return fitted


@pytest.mark.parametrize("how", MEANWHILE)
def test_a_chunk_that_changes_between_passes(how, streaming, tmp_path):
    chunk = tmp_path / "store" / "bins" / "c" / "11" / "0"
    rounds = []

    def disturb(progress):
        rounds.append(progress)
        if len(rounds) == 2:
            MEANWHILE[how](chunk)

    with pytest.raises(StoreError, match=r"chunk bins/c/11/0, rows 220 to 239 of the binned store") as raised:
        streaming(disturb)
    assert isinstance(raised.value, BinnedStoreError) == (how != "unreadable")
    assert len(rounds) == 2


@pytest.mark.parametrize("how", ["replaced by the same", "unreadable for a moment"])
def test_a_chunk_that_is_touched_between_passes(how, streaming, tmp_path, blobs, saved, repaired):
    chunk = tmp_path / "store" / "bins" / "c" / "11" / "0"
    rounds = []

    def disturb(progress):
        rounds.append(progress)
        if len(rounds) == 2 and how == "replaced by the same":
            _replace(chunk, chunk.read_bytes())
        elif len(rounds) == 2:
            repaired(unreadable(chunk))

    assert saved(streaming(disturb)) == saved(model(max_bins=16).fit(*blobs))
    assert len(rounds) == 3
