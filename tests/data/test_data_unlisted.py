"""Stores that return single files but list nothing: web servers, object stores whose keys may only read."""

from __future__ import annotations

import collections
import http.server
import threading
import warnings
from urllib.parse import urlsplit

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import MissingChunkError, StoreError

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
        if not file.is_file():
            return self.send_error(server.missing)
        content = file.read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{file.stat().st_mtime_ns}"')
        self.send_header("Last-Modified", self.date_time_string(file.stat().st_mtime))
        self.end_headers()
        if body:
            self.wfile.write(content)
        return None


@pytest.fixture
def server(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.folder, server.seen = tmp_path / "served", collections.Counter()
        server.heads, server.missing, server.failing = True, 404, False
        group = server.folder / "bucket" / "data.zarr"
        zarr.create_group(str(group), attributes={"feature_names": list("abcd")})
        zarr.create_array(str(group / "x"), data=X, chunks=(50, 2))
        zarr.create_array(str(group / "y"), data=Y, chunks=(100,))
        server.chunk = group / "x" / "c" / "1" / "0"
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


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


@pytest.mark.parametrize("heads", [True, False])
@pytest.mark.parametrize("failing", [True, False])
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
    model(missing_chunks="ignore").fit(x, y)
    asked = [n for (method, path), n in server.seen.items() if method == "HEAD" and "/c/" in path]
    assert asked == [1] * (6 * 2 + 3)


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
@pytest.mark.parametrize("answer", [403, 404, 410])
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


def test_a_chunk_of_another_size_is_noticed(server):
    x, _ = places(server)
    source = distboost.data.sources.as_features(x, "X")
    part = source.part(0, N)
    server.chunk.write_bytes(server.chunk.read_bytes()[:-1])
    with pytest.raises(StoreError, match="bytes when the store was listed"):
        part.load()


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_workers_and_binned_stores(server):
    x, y = places(server)
    binned = server.folder / "bucket" / "binned"
    distboost.bin(x, y, str(binned), max_bins=63)
    expected = model(max_bins=63).fit(str(server.folder / "bucket/data.zarr/x"), Y).digest()
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for data in ((x, y), (f"{server.url}/bucket/binned",)):
            fitted = model(max_bins=63)
            fitted.client = client
            assert fitted.fit(*data).digest() == expected


@pytest.mark.filterwarnings(f"ignore:.*{UNLISTED}")
def test_an_object_store_whose_keys_may_only_read(server):
    pytest.importorskip("s3fs")
    server.missing = 403  # as S3 answers for a missing object, to a key that may not list
    options = {"anon": True, "client_kwargs": {"endpoint_url": server.url, "region_name": "us-east-1"}}
    x, y = (f"s3://bucket/data.zarr/{name}" for name in "xy")
    assert trees(model(storage_options=options).fit(x, y)) == trees(known())
    server.chunk.unlink()
    with pytest.warns(UserWarning, match=r"1 chunks of X .*not in the store"):
        model(storage_options=options).fit(x, y)


def test_a_group_says_that_its_arrays_cannot_be_listed(server):
    with pytest.raises(distboost.errors.DataError, match="group"):
        model().fit(f"{server.url}/bucket/data.zarr", Y)


@pytest.mark.parametrize("url", ["file://{}", "local://{}", "simplecache::file://{}", "filecache::file://{}"])
def test_paths_that_begin_with_a_slash(url, tmp_path):
    zarr.create_array(str(tmp_path / "g" / "x"), data=X, chunks=(50, 2))
    zarr.create_array(str(tmp_path / "g" / "y"), data=Y, chunks=(100,))
    place = url.format(tmp_path / "g")
    store = zarr.storage.FsspecStore.from_url(place, read_only=True)
    x, y = (zarr.open_array(store, path=name, mode="r") for name in "xy")
    for data in ((x, y), (f"{place}/x", f"{place}/y")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fitted = model().fit(*data)
        assert fitted.digest() == known().digest()
        np.testing.assert_array_equal(fitted.predict(data[0]), fitted.predict(X))
