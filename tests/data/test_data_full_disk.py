"""Stores for which there is no room: the error says so, nothing is left half written, and the same command goes on."""

import itertools
import resource
import shutil
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import distboost
from distboost.data.ingest_plan import least_memory
from distboost.errors import StoreError
from distboost.inputs.choose import dataset_of
from distboost.io.storage import DurableStore
from distboost.training.memory_plan import while_reading
from tests import disks
from tests.data.disturbed import BLOCK

pytestmark = pytest.mark.usefixtures("short_waits")


def _files(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in Path(folder).rglob("*") if f.is_file()}


@pytest.fixture
def disk(tmp_path):
    """A disk of 2 MiB."""
    with disks.small_disk(tmp_path / "disk", "2m") as place:
        yield place


def assert_nothing_partial(place, seconds=10):
    """Once the writes have ended that were under way beside the one that failed."""
    last = time.monotonic() + seconds
    while partial := list(place.rglob("*.partial")):
        assert time.monotonic() < last, partial
        time.sleep(0.01)


def _fill(folder):
    with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.parametrize("way", ["whole blocks", "bands"])
def test_a_disk_that_is_full_at_the_nth_write(way, arrays, disk, tmp_path, monkeypatch):
    """Whichever: the error says where and how much is needed, nothing is left half written, and the same command goes on."""
    memory = None
    if way == "bands":
        memory = while_reading(on_cluster=False) + least_memory(
            *dataset_of(*arrays, None).sources, max_bins=255, block=BLOCK
        )
    distboost.bin(*arrays, str(tmp_path / "expected"), memory_limit=memory)
    place, write, writes = disk / "store", DurableStore._write, itertools.count(1)

    def counted(self, path, value):
        if next(writes) == full_at:
            _fill(disk)
        return write(self, path, value)

    monkeypatch.setattr(DurableStore, "_write", counted)
    full_at = 0
    distboost.bin(*arrays, str(place), memory_limit=memory)
    n = next(writes)
    assert n > 17  # metadata of all arrays, 12 chunks, the manifest
    for nth in range(1, n):
        shutil.rmtree(place)
        full_at = next(writes) + nth
        with pytest.raises(
            StoreError, match=rf"no room for the store '{place}': it takes about \d+ bytes in total, and \d+"
        ):
            distboost.bin(*arrays, str(place), memory_limit=memory)
        assert_nothing_partial(place)
        (disk / "filler").unlink()
        distboost.bin(*arrays, str(place), memory_limit=memory)
        assert _files(place) == _files(tmp_path / "expected")


def test_a_file_that_may_not_be_that_large(blobs, tmp_path):
    """A limit of the process: said as it is, not as a full disk."""
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(240, 400)), blobs[1]
    expected = distboost.bin(*arrays, str(tmp_path / "expected"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(
            StoreError, match=r"store/edges/c/\d cannot be written: .*File too large.*Correct the cause"
        ):
            distboost.bin(*arrays, str(tmp_path / "store"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert_nothing_partial(tmp_path / "store")
    distboost.bin(*arrays, str(tmp_path / "store"))
    assert _files(tmp_path / "store") == _files(expected)
