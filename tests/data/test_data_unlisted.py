"""Stores that return single files but list nothing: web servers, object stores whose keys may only read."""

from __future__ import annotations

import collections
import errno
import http.server
import os
import shutil
import threading
import warnings
from urllib.parse import urlsplit

import numpy as np
import pytest
import zarr
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.local import LocalFileSystem
from zarr.storage import FsspecStore, LocalStore, WrapperStore

import distboost
from distboost import GDMCBoostClassifier
from distboost.data.source import fingerprint
from distboost.errors import MissingChunkError, StoreError
from distboost.inputs.choose import adapter_of

N = 300
X = np.random.default_rng(0).normal(size=(N, 4))
Y = (X[:, 0] > 0).astype(int)
UNLISTED = "cannot be listed"


class Files(http.server.BaseHTTPRequestHandler):
    """Serves the files of a folder by their names, and counts the requests; it lists none."""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        server, url = self.server, urlsplit(self.path)
        server.seen[self.command, url.path] += 1
        file = server.folder / url.path.strip("/")
        if "list-type" in url.query:
            return self.send_error(403)
        if server.failing and server.seen[self.command, url.path] == 1:
            return self.send_error(503)
        if not body and not server.heads:
            return self.send_error(405)
        if not file.is_file() or (server.closed and "/c/" in url.path):
            return self.send_error(server.missing)
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        if "ETag" in server.versions:
            self.send_header("ETag", f'"{file.stat().st_mtime_ns}"')
        if "Last-Modified" in server.versions:
            self.send_header("Last-Modified", self.date_time_string(file.stat().st_mtime))
        self.end_headers()
        if body:
            self.wfile.write(content)
        return None


@pytest.fixture
def server(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.folder, server.seen = tmp_path / "served", collections.Counter()
        server.heads, server.missing, server.failing, server.closed = True, 404, False, False
        server.versions = {"ETag", "Last-Modified"}
        group = server.folder / "bucket" / "data.zarr"
        write(group)
        server.chunk = group / "x" / "c" / "1" / "0"
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def write(group, zarr_format=3, **options):
    zarr.create_group(str(group), attributes={"feature_names": list("abcd")}, zarr_format=zarr_format)
    zarr.create_array(str(group / "x"), data=X, chunks=(50, 2), zarr_format=zarr_format, **options)
    zarr.create_array(str(group / "y"), data=Y, chunks=(100,), zarr_format=zarr_format)


def model(**parameters):
    return GDMCBoostClassifier(**{"calibration": None, "n_estimators": 2, **parameters})


def known():
    return model().fit(X, Y)


def places(server):
    return tuple(f"{server.url}/bucket/data.zarr/{name}" for name in "xy")


def trees(fitted):
    """What a fit has learned, without the names of its features."""
    with warnings.catch_warnings(action="ignore"):
        return fitted.predict_proba(X).tobytes()


@pytest.mark.parametrize(("heads", "failing"), [(True, False), (False, True)])
def test_a_web_server(server, heads, failing):
    server.heads, server.failing = heads, failing
    x, y = places(server)
    with pytest.warns(UserWarning, match=UNLISTED):
        fitted = model().fit(x, y)
    assert list(fitted.feature_names_in_) == list("abcd")
    assert trees(fitted) == trees(known())
    with pytest.warns(UserWarning, match=UNLISTED):
        np.testing.assert_array_equal(fitted.predict(x), known().predict(X))


def test_each_chunk_is_asked_for_once(server):
    x, y = places(server)
    fitted = model(missing_chunks="ignore").fit(x, y)
    assert asked(server) == [1] * (6 * 2 + 3)
    server.seen.clear()
    fitted.predict(x).compute()
    assert asked(server) == [1] * (6 * 2)


def asked(server):
    return [n for (method, path), n in server.seen.items() if method == "HEAD" and "/c/" in path]


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
@pytest.mark.parametrize("answer", [403, 404])
def test_chunks_that_were_never_written(server, answer):
    server.missing = answer
    server.chunk.unlink()
    x, y = places(server)
    with pytest.warns(UserWarning, match=r"1 chunks of X .*not in the store") as caught:
        found = model().fit(x, y)
    assert len([w for w in caught if UNLISTED in str(w.message)]) == 2  # X and y
    filled = np.where((np.arange(N) // 50 == 1)[:, np.newaxis] & (np.arange(4) < 2), 0.0, X)
    assert trees(found) == trees(model().fit(filled, Y))
    with pytest.raises(MissingChunkError):
        model(missing_chunks="error").fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        unwarned = model(missing_chunks="ignore").fit(x, y)
    assert trees(unwarned) == trees(found)


@pytest.mark.parametrize("missing_chunks", ["warn", "ignore"])
def test_unreadable_chunks_are_not_missing(server, missing_chunks):
    server.missing, server.closed = 403, True
    with pytest.raises(StoreError, match="right to read"):
        model(missing_chunks=missing_chunks).fit(*places(server))


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
@pytest.mark.pairwise
@pytest.mark.parametrize("answer", [403, 404])
@pytest.mark.parametrize("layout", [{"zarr_format": 2}, {"shards": (100, 4)}], ids=["format 2", "shards"])
@pytest.mark.parametrize("opened", [True, False])
def test_layouts(server, answer, layout, opened):
    server.missing = answer
    write(server.folder / "other.zarr", **layout)
    x, y = (f"{server.url}/other.zarr/{name}" for name in "xy")
    if opened:
        stores = (FsspecStore.from_url(url, read_only=True) for url in (x, y))
        x, y = (
            zarr.open_array(store, mode="r", zarr_format=layout.get("zarr_format", 3)) for store in stores
        )
    fitted = model().fit(x, y)
    assert list(fitted.feature_names_in_) == list("abcd")
    assert trees(fitted) == trees(known())


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_an_array_that_is_the_root_of_a_server(server):
    server.folder /= "bucket/data.zarr/x"
    assert model().fit(server.url, Y).digest() == known().digest()


@pytest.mark.parametrize("versions", [{"ETag"}, {"Last-Modified"}, set()], ids=repr)
def test_data_written_again_have_another_fingerprint(server, versions):
    server.versions = versions
    url = f"{server.url}/plain"
    before = {}
    for values in (X, -X):
        zarr.create_array(str(server.folder / "plain"), data=values, compressors=None, overwrite=True)
        for chunk in (server.folder / "plain").rglob("c/*/*"):
            os.utime(chunk, (1e9 + len(before),) * 2)
        before[fingerprint([adapter_of(url, "X").column()])] = values
    assert len(before) == 2


class Guarded(LocalFileSystem):
    """Files in folders that their reader may not list, some of which may not be read."""

    protocol = ("guarded",)
    cachable = False

    def __init__(self, closed=""):
        super().__init__()
        self.closed = closed

    def _check(self, path):
        if self.closed and self.closed in path:
            raise PermissionError(errno.EACCES, "Permission denied", path)

    def find(self, path, **options):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    def info(self, path, **options):
        self._check(path)
        return super().info(path, **options)

    def cat_file(self, path, *args, **options):
        self._check(path)
        return super().cat_file(path, *args, **options)


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_a_chunk_the_system_refuses_is_not_missing(server):
    def x(files):
        files = AsyncFileSystemWrapper(files, asynchronous=True)
        return zarr.open_array(
            FsspecStore(files, read_only=True, path=str(server.chunk.parents[2])), mode="r"
        )

    assert trees(model().fit(x(Guarded()), Y)) == trees(known())
    with pytest.raises(StoreError, match=r"c/1/0 .*Permission denied"):
        model(missing_chunks="ignore").fit(x(Guarded("c/1/0")), Y)


class Unlisted(WrapperStore):
    """A store that lists nothing."""

    supports_listing = False


def test_a_store_that_does_not_list(server):
    def x():
        return zarr.open_array(Unlisted(LocalStore(server.chunk.parents[2], read_only=True)), mode="r")

    with pytest.warns(UserWarning, match=UNLISTED):
        fitted = model().fit(x(), Y)
    assert trees(fitted) == trees(known())
    server.chunk.unlink()
    with pytest.raises(MissingChunkError):
        model(missing_chunks="error").fit(x(), Y)


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
@pytest.mark.parametrize(("kind", "answer"), [("HTTPStore", 404), ("S3Store", 403)])
def test_stores_of_obstore(server, answer, kind):
    found = pytest.importorskip("obstore.store")
    server.missing = answer
    if kind == "S3Store":
        options = {"endpoint": server.url, "region": "us-east-1", "skip_signature": True}
        inner = found.S3Store("bucket", prefix="data.zarr", client_options={"allow_http": True}, **options)
    else:
        inner = found.HTTPStore.from_url(
            f"{server.url}/bucket/data.zarr", client_options={"allow_http": True}
        )
    store = zarr.storage.ObjectStore(inner, read_only=True)
    x, y = (zarr.open_array(store, path=name, mode="r", zarr_format=3) for name in "xy")
    assert trees(model().fit(x, y)) == trees(known())
    server.chunk.unlink()
    with pytest.warns(UserWarning, match=r"1 chunks of X .*not in the store"):
        model().fit(x, y)


def test_a_chunk_of_another_size_is_noticed(server):
    x, _ = places(server)
    source = adapter_of(x, "X").features()
    part = source.part(0, N)
    server.chunk.write_bytes(server.chunk.read_bytes()[:-1])
    with pytest.raises(StoreError, match="bytes when the store was listed"):
        part.load()


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_workers_and_binned_stores(server, clients):
    x, y = places(server)
    binned = server.folder / "bucket" / "binned"
    distboost.bin(x, y, str(binned), max_bins=63)
    expected = model(max_bins=63).fit(str(server.folder / "bucket/data.zarr/x"), Y).digest()
    for data in ((x, y), (f"{server.url}/bucket/binned",)):
        fitted = model(max_bins=63)
        fitted.client = clients[2]
        assert fitted.fit(*data).digest() == expected


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_an_object_store_whose_keys_may_only_read(server):
    pytest.importorskip("s3fs")
    server.missing = 403  # as S3 answers for a missing object, to a key that may not list
    options = {"anon": True, "client_kwargs": {"endpoint_url": server.url, "region_name": "us-east-1"}}
    x, y = (f"s3://bucket/data.zarr/{name}" for name in "xy")
    assert trees(model(storage_options=options).fit(x, y)) == trees(known())
    alone = server.folder / "bucket" / "alone"
    shutil.copytree(server.chunk.parents[2], alone)
    store = FsspecStore.from_url("s3://bucket/alone", storage_options=options, read_only=True)
    assert model().fit(zarr.open_array(store, mode="r", zarr_format=3), Y).digest() == known().digest()
    server.chunk.unlink()
    with pytest.warns(UserWarning, match=r"1 chunks of X .*not in the store"):
        model(storage_options=options).fit(x, y)


@pytest.mark.parametrize("kind", ["http", "s3"])
def test_a_group_says_that_its_arrays_cannot_be_listed(server, kind):
    options, url = {}, f"{server.url}/bucket/data.zarr"
    if kind == "s3":
        pytest.importorskip("s3fs")
        server.missing, url = 403, "s3://bucket/data.zarr"
        options = {"anon": True, "client_kwargs": {"endpoint_url": server.url, "region_name": "us-east-1"}}
    with pytest.raises(distboost.errors.DataError, match=r"is a zarr group .*cannot be listed"):
        model(storage_options=options).fit(url, Y)


@pytest.mark.parametrize("url", ["file://{}", "local://{}", "simplecache::file://{}", "filecache::file://{}"])
def test_paths_that_begin_with_a_slash(url, tmp_path):
    zarr.create_array(str(tmp_path / "g" / "x"), data=X, chunks=(50, 2))
    zarr.create_array(str(tmp_path / "g" / "y"), data=Y, chunks=(100,))
    place = url.format(tmp_path / "g")
    store = FsspecStore.from_url(place, read_only=True)
    x, y = (zarr.open_array(store, path=name, mode="r") for name in "xy")
    for data in ((x, y), (f"{place}/x", f"{place}/y")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = model().fit(*data)
        assert fitted.digest() == known().digest()
        np.testing.assert_array_equal(fitted.predict(data[0]), fitted.predict(X))
