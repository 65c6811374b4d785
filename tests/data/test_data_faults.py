"""Disks and networks that fail: what may pass is tried again, and the model is the same; what stays is an error that says where.

Faults are real where this machine has them: damaged files, full disks, limits on files, links to a file that cannot be read. The
others are made by a store that fails, or by failing system calls.
"""

import asyncio
import errno
import gc
import itertools
import json
import logging
import os
import pickle
import random
import re
import resource
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import aiohttp
import botocore.exceptions
import dask.array as da
import fsspec.exceptions
import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, WrapperStore

import distboost
from distboost import GDMCBoostClassifier
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.data.ingest_plan import least_memory
from distboost.data.sources import as_source
from distboost.data.store.store import BinnedStore
from distboost.errors import BinnedStoreError, DataError, StoreError
from distboost.io import retry
from distboost.io.storage import DurableStore
from distboost.runtime.streaming.scratch import Scratch
from distboost.training import memory_plan

BLOCK = 60
# Reading it where nothing is mapped, as at its beginning, is an I/O error.
UNREADABLE = Path("/proc/self/mem")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(ingest, "BLOCK_ROWS", BLOCK)


def model(**parameters):
    return GDMCBoostClassifier(n_estimators=3, max_depth=2, n_jobs=1, **parameters)


@pytest.fixture
def expected(blobs, saved):
    """The model's bytes without any fault."""
    return saved(model().fit(*blobs))


@pytest.fixture
def arrays(blobs, tmp_path):
    """(x, y): paths of raw arrays."""
    zarr.create_array(str(tmp_path / "x"), data=np.asarray(blobs[0]), chunks=(50, 2))
    zarr.create_array(str(tmp_path / "y"), data=np.asarray(blobs[1]), chunks=(100,))
    return str(tmp_path / "x"), str(tmp_path / "y")


@pytest.fixture
def store(blobs, tmp_path):
    return distboost.bin(*blobs, str(tmp_path / "store"))


@pytest.fixture
def log(caplog):
    """What is said while things are tried again."""
    caplog.set_level(logging.WARNING, logger="distboost")
    return caplog


class FailingStore(WrapperStore):
    """A store of which some reads of one key fail: `times` of them, from the `first` on, with an error or with other bytes."""

    def __init__(self, store, key="", error=None, damage=None, first=1, times=10**9):
        super().__init__(store)
        self.fault = key, error, damage, range(first, first + times)
        self.reads = 0

    def _with_store(self, store):
        return self  # all reads are counted together

    async def get(self, key, prototype=None, byte_range=None):
        failing, error, damage, when = self.fault
        found = await super().get(key, prototype, byte_range)
        if key != failing:
            return found
        self.reads += 1
        if self.reads not in when:
            return found
        if error is not None:
            raise error
        return prototype.buffer.from_bytes(damage(found.to_bytes()))


def failing(path, **fault):
    return zarr.open_array(FailingStore(LocalStore(path), **fault), mode="r")


class Repair(logging.Handler):
    """Puts a fault right when it is first spoken of."""

    def __init__(self, repair):
        super().__init__(logging.WARNING)
        self.repair = repair

    def emit(self, record):
        repair, self.repair = self.repair, None
        if repair is not None:
            repair()


@pytest.fixture
def repaired():
    """repaired(function): is called at the first warning."""
    logger, handlers = logging.getLogger("distboost"), []

    def at_first_warning(function):
        handlers.append(Repair(function))
        logger.addHandler(handlers[-1])

    yield at_first_warning
    for handler in handlers:
        logger.removeHandler(handler)


def unreadable(path):
    """Makes a file one that cannot be read; returns what puts that right."""
    if not UNREADABLE.exists():
        pytest.skip("no /proc here")
    kept = path.with_name("kept")
    path.rename(kept)
    path.symlink_to(UNREADABLE)
    return lambda: kept.replace(path)


# Raw arrays: failures that pass.

PASSING = {
    "EIO": OSError(errno.EIO, "Input/output error"),
    "EAGAIN": OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    "ESTALE": OSError(errno.ESTALE, "Stale file handle"),
    "EREMOTEIO": OSError(errno.EREMOTEIO, "We encountered an internal error. Please try again."),
    "ETIMEDOUT": OSError(errno.ETIMEDOUT, "Connection timed out"),
    "reset": ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
    "fsspec": fsspec.exceptions.FSTimeoutError(),
    "botocore": botocore.exceptions.ReadTimeoutError(endpoint_url="http://somewhere"),
    "botocore, connecting": botocore.exceptions.EndpointConnectionError(endpoint_url="http://somewhere"),
    "aiohttp": aiohttp.ClientPayloadError("Response payload is not completed"),
}


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_a_read_that_fails_for_a_moment(error, arrays, blobs, expected, saved, log):
    x = failing(arrays[0], key="c/2/1", error=error, times=4)
    assert saved(model().fit(x, blobs[1])) == expected
    said = [r.getMessage() for r in log.records if r.name == "distboost" and "c/2/1" in r.getMessage()]
    cause = re.escape(f"{type(error).__name__}: {error}")
    # The first failure was of several chunks together.
    for attempt, message in zip((2, 3, 4), said, strict=True):
        pattern = (
            rf"chunk c/2/1, rows 100 to 149 of X \(.*x\) cannot be read \({cause}\): attempt {attempt} of 6"
        )
        assert re.match(pattern, message)


@pytest.mark.parametrize("first", [1, 2])
def test_the_nth_read_fails(first, arrays, blobs, expected, saved):
    """In the scan, or when the rows are binned."""
    x = failing(arrays[0], key="c/0/0", error=PASSING["EIO"], first=first, times=1)
    assert saved(model().fit(x, blobs[1])) == expected
    assert x.store.reads == 3


@pytest.mark.parametrize("array", ["x", "y"])
@pytest.mark.parametrize("damage", [lambda b: b[:10], lambda b: b"", lambda b: b"\xff" * len(b)])
def test_content_that_is_damaged_on_its_way(array, damage, arrays, blobs, expected, saved, log):
    found = dict(zip("xy", blobs, strict=True))
    key = {"x": "c/1/0", "y": "c/1"}[array]
    found[array] = failing(arrays["xy".index(array)], key=key, damage=damage, times=1)
    assert saved(model().fit(found["x"], found["y"])) == expected
    assert "cannot be read" in log.text


def test_a_real_input_output_error_that_passes(arrays, blobs, log, repaired):
    source = as_source(arrays[0], "X")
    part = source.part(0, source.n_rows)
    repaired(unreadable(Path(arrays[0]) / "c" / "1" / "0"))
    np.testing.assert_array_equal(part.load(), blobs[0])
    assert "OSError: [Errno 5] Input/output error" in log.text


# Raw arrays: failures that stay.


def test_a_read_that_fails_again_and_again(arrays, blobs):
    error = PASSING["EIO"]
    x = failing(arrays[0], key="c/2/1", error=error)
    said = (
        r"chunk c/2/1, rows 100 to 149 of X \(.*x\) cannot be read: OSError: \[Errno 5\] Input/output error\. "
        r"distboost tried up to 6 times\. Check the disk or the network"
    )
    with pytest.raises(StoreError, match=said) as raised:
        model().fit(x, blobs[1])
    assert raised.value.__cause__ is error
    assert x.store.reads == 1 + retry.ATTEMPTS


@pytest.mark.parametrize("code", [errno.EACCES, errno.ELOOP])
def test_a_read_that_trying_again_does_not_help(code, arrays, blobs):
    x = failing(arrays[0], key="c/2/1", error=OSError(code, os.strerror(code)))
    with pytest.raises(StoreError, match=rf"chunk c/2/1, rows 100 to 149 of X .*{os.strerror(code)}\. \w+"):
        model().fit(x, blobs[1])
    assert x.store.reads == 2  # together with others, and alone


def test_no_attempt_begins_after_the_deadline(arrays, blobs, monkeypatch):
    monkeypatch.setattr(retry, "DEADLINE", 0.05)
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.04)
    x = failing(arrays[0], key="c/2/1", error=PASSING["EIO"])
    with pytest.raises(StoreError, match=r"Check the disk"):
        model().fit(x, blobs[1])
    assert 2 <= x.store.reads <= 3


@pytest.mark.parametrize("reread", [True, False])
def test_damage_is_read_a_second_time_where_that_is_asked_for(reread):
    reads = []

    def read():
        reads.append(len(reads))
        if len(reads) == 1:
            raise ValueError("another checksum")
        return "content"

    if reread:
        assert retry.retried(read, "a chunk", reread=True) == "content"
    else:
        with pytest.raises(ValueError, match="another checksum"):
            retry.retried(read, "a chunk")
    assert len(reads) == 1 + reread


def test_too_little_memory_is_no_damage(arrays, store, blobs):
    x = failing(arrays[0], key="c/2/1", error=MemoryError("not even this"))
    with pytest.raises(MemoryError, match="not even this"):
        model().fit(x, blobs[1])
    assert x.store.reads == 1
    found = BinnedStore.open(store)
    kept = FailingStore(LocalStore(store), key="bins/c/1/0", error=MemoryError("not even this"))
    found = BinnedStore(store, zarr.open_group(kept, mode="r"), found._manifest)
    binned = found.binned(found.profile(255, 0, None), None, 1)
    with pytest.raises(MemoryError, match="not even this"):
        binned.function(*binned.calls[1])
    assert kept.reads == 1


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
    "missing": (Path.unlink, DataError, "X: there is no zarr array at .*Give the path"),
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


# Binned stores.


@pytest.mark.parametrize("file", ["zarr.json", "bins/zarr.json", "bins/c/1/0", "weights/c/3", "edges/c/0"])
def test_a_file_of_a_store_that_cannot_be_read(file, store, expected, saved, repaired, log):
    """That is no damage, and binning again is not the remedy."""
    repair = unreadable(Path(store) / file)
    name = "edges" if file.startswith("edges") else "array bins" if file == "bins/zarr.json" else file
    with pytest.raises(
        StoreError, match=rf"{name}.* of the binned store {store} cannot be read: .*Check the"
    ) as raised:
        model().fit(store)
    assert not isinstance(raised.value, BinnedStoreError)
    log.clear()
    repaired(repair)
    assert saved(model().fit(store)) == expected
    assert re.search(rf"{name}.*\(OSError: \[Errno 5\].*attempt 2 of 6", log.text)


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
        found = model(max_bins=16, memory_limit=25_000, callbacks=[callback]).fit(store)
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


# Writing.


def _files(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in Path(folder).rglob("*") if f.is_file()}


@pytest.fixture
def disk(tmp_path):
    """A disk of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("mounting is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], timeout=20, check=True)


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


def test_what_succeeds_leaves_no_thread_locals_to_the_garbage_collector():
    """In CPython 3.11 one that is freed while a profiler lists the frames of all threads stops the process for good."""

    async def read() -> int:
        return 1

    async def reads() -> None:
        for _ in range(20):
            assert await retry.retried_async(read, "a chunk") == 1

    def thread_locals() -> int:
        return sum(isinstance(found, threading.local) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = thread_locals()
        for _ in range(20):
            assert retry.retried(lambda: 1, "a chunk") == 1
        asyncio.run(reads())
        assert thread_locals() - before < 10  # asyncio has some for its loop
    finally:
        gc.enable()


@pytest.mark.parametrize("way", ["whole blocks", "bands"])
def test_a_disk_that_is_full_at_the_nth_write(way, arrays, disk, tmp_path, monkeypatch):
    """Whichever: the error says where and how much is needed, nothing is left half written, and the same command goes on."""
    memory = least_memory(*RawDataset.of(*arrays, None).sources, 255, BLOCK) if way == "bands" else None
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


# System calls that fail, in a process of its own.

CHILD = """
import errno, logging, os, sys
from pathlib import Path
import numpy as np
import distboost
from distboost.io import retry
from distboost.training import memory_plan
from distboost.errors import StoreError

logging.basicConfig(stream=sys.stdout, format="%(message)s")
retry.FIRST_WAIT = 0.001
memory_plan.PROCESS_BYTES = 0
folder = Path(sys.argv[1])
rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 4)), rng.integers(0, 3, 3000)


def fault(call, first, times, path):
    os.environ["FAULT"] = f"{call} {errno.EIO} {first} {times} {path}"


def files(store):
    return {f.relative_to(store): f.read_bytes() for f in Path(store).rglob("*") if f.is_file()}


def fitted(store, callback):
    model = distboost.GDMCBoostClassifier(
        n_estimators=3, max_depth=2, n_jobs=1, memory_limit=300_000, scratch=str(folder), callbacks=[callback]
    ).fit(store)
    assert model.memory_plan_.streamed
    model.save(folder / "model")
    return (folder / "model").read_bytes()
"""

WRITES = """
from distboost.data import ingest
ingest.BLOCK_ROWS = 500
expected = distboost.bin(X, y, str(folder / "expected"))
for call, path in (("fsync", "store"), ("write", "store/bins/c"), ("rename", "store/zarr.json"), ("rename", "store/bins/c")):
    for first in (1, 2, 3):
        place = folder / f"{call}{len(path)}{first}" / "store"
        fault(call, first, 1, path)
        distboost.bin(X, y, str(place))
        assert files(place) == files(expected), (call, first)
    place = folder / f"{call}{len(path)}" / "store"
    fault(call, 2, 1000, path)
    try:
        distboost.bin(X, y, str(place))
        raise AssertionError("written")
    except StoreError as error:
        print("REFUSED", error)
    assert not list(place.rglob("*.partial"))
    fault("no call", 1, 1, "nowhere")
    distboost.bin(X, y, str(place))
    assert files(place) == files(expected), call
"""

READS = """
from distboost.data import ingest
ingest.BLOCK_ROWS = 500
store = distboost.bin(X, y, str(folder / "store"))
expected = fitted(store, lambda progress: None)
for call, path, times in (("read", "store/bins/c/5", 2), ("preadv", "scratch", 2), ("pwrite", "scratch", 2)):
    fault(call, 2, times, folder.name if path == "scratch" else path)
    assert fitted(store, lambda progress: None) == expected, call
    fault(call, 1, 1000, folder.name if path == "scratch" else path)
    try:
        fitted(store, lambda progress: None)
        raise AssertionError("trained")
    except StoreError as error:
        print("REFUSED", error)
"""


@pytest.fixture(scope="module")
def failing_calls(tmp_path_factory):
    """A library that makes system calls fail."""
    compiler, source = shutil.which("cc"), Path(__file__).with_name("failing_calls.c")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no C compiler here, or not Linux")
    library = tmp_path_factory.mktemp("failing") / "failing_calls.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], timeout=60, check=True)
    return str(library)


def _child(program, library, folder):
    environment = {**os.environ, "LD_PRELOAD": library}
    done = subprocess.run(
        [sys.executable, "-c", CHILD + program, str(folder)],
        env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    refused = [line for line in done.stdout.splitlines() if line.startswith("REFUSED")]
    return done.stdout, refused


def test_writes_and_renames_that_fail(failing_calls, tmp_path):
    """The nth, once: the store is the same. From then on: an error, nothing half written, and later the same command goes on."""
    said, refused = _child(WRITES, failing_calls, tmp_path)
    assert said.count("attempt 2 of 6") >= 10
    assert len(refused) == 4
    for line in refused:
        assert re.search(r"store/\S+ cannot be written: OSError: \[Errno 5\].*Check the disk", line)


def test_reads_of_streamed_rows_that_fail(failing_calls, tmp_path):
    said, refused = _child(READS, failing_calls, tmp_path)
    assert said.count("attempt 2 of 6") >= 3
    bins, read, written = refused
    assert re.search(
        r"chunk bins/c/5/0, rows 2500 to 2999 of the binned store .* cannot be read: OSError: \[Errno 5\]",
        bins,
    )
    assert re.search(
        rf"bytes \d+ to \d+ of the scratch file in {tmp_path} cannot be read: OSError: \[Errno 5\]", read
    )
    assert re.search(
        rf"bytes \d+ to \d+ of the scratch file in {tmp_path} cannot be written: OSError: \[Errno 5\]",
        written,
    )


# The scratch file.


@pytest.fixture
def scratch(tmp_path):
    found = Scratch(str(tmp_path))
    yield found
    found.close()


def redirect(scratch, path, flags):
    """Lets the scratch file be another; returns what puts that right."""
    ours = scratch._file.fileno()
    kept, other = os.dup(ours), os.open(path, flags)
    os.dup2(other, ours)
    os.close(other)

    def put_right():
        os.dup2(kept, ours)
        os.close(kept)

    return put_right


@pytest.mark.skipif(not UNREADABLE.exists(), reason="no /proc here")
def test_scratch_that_cannot_be_read(scratch, tmp_path, repaired, log):
    extent = scratch.write(np.arange(100))
    repair = redirect(scratch, UNREADABLE, os.O_RDONLY)
    with pytest.raises(
        StoreError, match=rf"bytes 0 to 799 of the scratch file in {tmp_path} cannot be read: .*Check the"
    ):
        scratch.read(extent)
    assert log.text.count("attempt") == retry.ATTEMPTS - 1
    repaired(repair)
    np.testing.assert_array_equal(scratch.read(extent), np.arange(100))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_scratch_on_a_full_disk(scratch, tmp_path, log):
    first = scratch.write(np.arange(100))
    repair = redirect(scratch, "/dev/full", os.O_RDWR)
    with pytest.raises(StoreError, match=rf"the disk of {tmp_path} is full: .*scratch=") as raised:
        scratch.write(np.arange(200))
    assert raised.value.__cause__.__cause__.errno == errno.ENOSPC
    assert "attempt" not in log.text
    repair()
    second = scratch.write(np.arange(200))
    np.testing.assert_array_equal(scratch.read(first), np.arange(100))
    np.testing.assert_array_equal(scratch.read(second), np.arange(200))
