"""What may pass is tried again, and the model is the same; what stays is an error that says where."""

import asyncio
import errno
import gc
import os
import re
import threading
from pathlib import Path

import aiohttp
import botocore.exceptions
import fsspec.exceptions
import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore

from distboost.data.store.store import BinnedStore
from distboost.errors import StoreError
from distboost.inputs.choose import adapter_of
from distboost.io import retry
from tests.data.disturbed import FailingStore, failing, model, unreadable

pytestmark = pytest.mark.usefixtures("short_waits")

PASSING = {
    "EIO": OSError(errno.EIO, "Input/output error"),
    "EAGAIN": OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    "ESTALE": OSError(errno.ESTALE, "Stale file handle"),
    "EREMOTEIO": OSError(errno.EREMOTEIO, "We encountered an internal error. Please try again."),
    "timeout": TimeoutError("timed out"),  # without a number
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
    source = adapter_of(arrays[0], "X").column()
    part = source.part(0, source.n_rows)
    repaired(unreadable(Path(arrays[0]) / "c" / "1" / "0"))
    np.testing.assert_array_equal(part.load(), blobs[0])
    assert "OSError: [Errno 5] Input/output error" in log.text


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


def test_too_little_memory_is_not_damage(arrays, store, blobs):
    x = failing(arrays[0], key="c/2/1", error=MemoryError("not even this"))
    with pytest.raises(MemoryError, match="not even this"):
        model().fit(x, blobs[1])
    assert x.store.reads == 1
    found = BinnedStore.open(store)
    kept = FailingStore(LocalStore(store), key="bins/c/1/0", error=MemoryError("not even this"))
    found = BinnedStore(store, zarr.open_group(kept, mode="r"), found._manifest)
    binned = found.binned(found.profile(255, 0, None), found.own_weights(2, None), 1)
    with pytest.raises(MemoryError, match="not even this"):
        binned.function(*binned.calls[1]).in_memory()
    assert kept.reads == 1


def test_what_succeeds_leaves_no_thread_locals_to_the_garbage_collector():
    """In CPython 3.11 one that is freed while a profiler lists the frames of all threads stops the process for good."""

    async def read() -> int:
        return 1

    async def reads() -> None:
        for _ in range(20):
            assert await retry.retried_async(read, "a chunk") == 1

    def thread_locals() -> int:
        return sum(issubclass(type(found), threading.local) for found in gc.get_objects())

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
