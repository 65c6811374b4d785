"""Damage to what is on S3, and lines to it that are cut."""

from __future__ import annotations

import re
import time

import pytest

import distboost
from distboost.errors import BinnedStoreError, StoreError
from distboost.io import retry
from tests.lines import DEADLINE, Line
from tests.object_store.s3 import forget_connections, model

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")


def test_a_damaged_chunk(arrays, bucket):
    store = distboost.bin(*arrays, f"{bucket}/store")
    files = s3fs.S3FileSystem()
    content = bytearray(files.cat_file(f"{store}/bins/c/0/0"))
    content[5] ^= 1
    files.pipe_file(f"{store}/bins/c/0/0", bytes(content))
    with pytest.raises(
        BinnedStoreError, match=r"rows 0 to 239 of the binned store s3://.*[Bb]in the data again"
    ):
        model().fit(store)
    files.pipe_file(f"{arrays[0][5:]}/c/1/0", b"nothing like it")
    with pytest.raises(StoreError, match=r"rows \d+ to \d+ of X \(.*data/x.*cannot be read"):
        model().fit(*arrays)


@pytest.mark.parametrize("kinds", [2, pytest.param(3, marks=pytest.mark.soak)])
def test_damage_to_a_store(kinds, arrays, bucket):
    """One file after another, with some kinds of damage each: missing, empty, of other bytes."""
    damage = (None, b"", b"BLSC")
    store = distboost.bin(*arrays, f"{bucket}/store")
    files = s3fs.S3FileSystem()
    parts = (
        ("bins/c/0/0", "chunk bins/c/0/0, rows 0 to 239"),
        ("labels/c/0", "chunk labels/c/0, rows 0 to 239"),
        ("bins/zarr.json", "array bins"),
        ("zarr.json", "zarr.json"),
    )
    for number, (key, what) in enumerate(parts):
        whole = files.cat_file(f"{store}/{key}")
        for content in (2 * damage)[number % 3 :][:kinds]:
            files.rm(f"{store}/{key}") if content is None else files.pipe_file(f"{store}/{key}", content)
            with pytest.raises(BinnedStoreError, match=rf"(?s){what}.*[Bb]in the data again"):
                model().fit(store)
        files.pipe_file(f"{store}/{key}", whole)
    model().fit(store)


def test_damage_to_an_array(arrays):
    files = s3fs.S3FileSystem()
    for key, said in (("c/2/1", "chunk c/2/1, rows 120 to 179 of X"), ("zarr.json", "X: the meta")):
        whole = files.cat_file(f"{arrays[0]}/{key}")
        for content in (b"", b"BLSC"):
            files.pipe_file(f"{arrays[0]}/{key}", content)
            with pytest.raises(StoreError, match=rf"(?s){said}.*data/x.*again,? or restore it from a copy"):
                model().fit(*arrays)
        files.pipe_file(f"{arrays[0]}/{key}", whole)


@pytest.fixture
def line(arrays, server, monkeypatch):
    """The line that leads to the server. Others than this library try again only a few times."""
    with Line(server) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
        forget_connections()
        yield found
        found.shutdown()
        forget_connections()


def test_a_line_that_is_cut_for_a_moment(line, arrays, bucket, blobs, saved, caplog):
    expected = saved(model().fit(*blobs))
    store = f"{bucket}/store"
    for work in (
        lambda: distboost.bin(*arrays, store),
        lambda: model().fit(store),
        lambda: model().fit(*arrays),
    ):
        caplog.clear()
        line.cut(10)
        found = work()
        assert found == store or saved(found) == expected
        assert re.search(r"attempt \d of 6", caplog.text)


def test_a_line_that_stays_cut(line, arrays, bucket):
    store = distboost.bin(*arrays, f"{bucket}/store")
    line.cut(10**9)
    for data, what in (((store,), "the metadata"), (arrays, "X: the metadata")):
        started = time.monotonic()
        with pytest.raises(
            StoreError,
            match=rf"{what}.* cannot be read: .*tried up to 6 times\. Check the disk or the network",
        ):
            model().fit(*data)
        assert time.monotonic() - started < DEADLINE
