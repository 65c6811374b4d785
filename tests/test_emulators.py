"""Google's and Azure's object stores: `make object-stores` runs their emulators. tests/object_store has S3."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import fsspec
import numpy as np
import pytest
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import BinnedStoreError, DataError, StoreError
from distboost.io import retry
from tests.lines import Line
from tests.ports import free_ports

DEADLINE = 60.0
# gcsfs asks for the kind of a bucket by gRPC, which the emulator does not speak. Read when gcsfs is imported.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
AZURITE = Path(__file__).parents[1] / "build" / "azurite" / "node_modules" / ".bin"
# The account that every Azurite has.
ACCOUNT, KEY = (
    "devstoreaccount1",
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
)

# The libraries leave connections to the end of the process.
pytestmark = [pytest.mark.emulators, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::ResourceWarning"),
              pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.filterwarnings("ignore::FutureWarning"),
              pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]  # fmt: skip


@contextmanager
def running(command: list[str], port: int, folder: Path):
    """A server on this machine, ended by its process."""
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        _wait_for(f"http://127.0.0.1:{port}", process, folder / "log")
        yield
    finally:
        process.kill()
        process.wait()


def _wait_for(url: str, process: subprocess.Popen, log: Path) -> None:
    end = time.monotonic() + DEADLINE
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except urllib.error.HTTPError:  # it answers
            return
        except OSError:
            assert process.poll() is None, log.read_text()
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def google(port: int) -> tuple[list[str], str]:
    pytest.importorskip("gcsfs")
    program = shutil.which(
        "gcp-storage-emulator", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    )
    if program is None:
        pytest.skip("gcp-storage-emulator is not installed")
    return [program, "start", "--host", "127.0.0.1", "--port", str(port), "--in-memory"], "gs"


def azure(port: int) -> tuple[list[str], str]:
    pytest.importorskip("adlfs")
    program = shutil.which("azurite-blob", path=os.environ.get("AZURITE", str(AZURITE)))
    if program is None:
        pytest.skip("azurite is not installed")
    options = [
        "--blobHost",
        "127.0.0.1",
        "--blobPort",
        str(port),
        "--inMemoryPersistence",
        "--silent",
        "--skipApiVersionCheck",
    ]
    return [program, *options], "az"


def options_of(protocol: str, url: str) -> dict:
    """What leads to a server at this URL."""
    if protocol == "gs":
        return {"endpoint_url": url, "token": "anon", "project": "test"}
    place = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url}/{ACCOUNT};"
    )
    return {"connection_string": place}


@pytest.fixture(scope="module", params=[google, azure], ids=["google", "azure"])
def server(request, tmp_path_factory):
    """The protocol of a store and the URL of its emulator."""
    [port] = free_ports(1)
    command, protocol = request.param(port)
    with running(command, port, tmp_path_factory.mktemp("emulator")):
        yield protocol, f"http://127.0.0.1:{port}"


@pytest.fixture
def place(server, request):
    """The URL of a new bucket, and the options for it."""
    protocol, url = server
    options, name = options_of(protocol, url), f"b{abs(hash(request.node.nodeid))}"
    fsspec.filesystem(protocol, **options).mkdir(name)
    return f"{protocol}://{name}", options


@pytest.fixture
def arrays(place, blobs):
    bucket, options = place
    for name, values in zip("xy", blobs, strict=True):
        values = np.asarray(values)
        zarr.create_array(
            f"{bucket}/{name}", data=values, chunks=(60, *values.shape[1:]), storage_options=options
        )
    return f"{bucket}/x", f"{bucket}/y"


def model(**how) -> GDMCBoostClassifier:
    return GDMCBoostClassifier(n_estimators=3, calibration=None, **how)


def test_the_whole_way(arrays, place, blobs, saved):
    bucket, options = place
    expected = saved(model().fit(*blobs))
    fitted = model(storage_options=options, checkpoint=f"{bucket}/checkpoint").fit(*arrays)
    assert saved(fitted) == expected
    store = distboost.bin(*arrays, f"{bucket}/store", storage_options=options)
    assert distboost.bin(*arrays, store, storage_options=options) == store
    assert saved(model(storage_options=options).fit(store)) == expected
    fitted.save(f"{bucket}/model")
    for name in ("model", "checkpoint"):
        loaded = distboost.load(f"{bucket}/{name}", storage_options=options)
        np.testing.assert_array_equal(np.asarray(loaded.predict(arrays[0])), fitted.predict(blobs[0]))


def test_damage_is_called_damage(arrays, place):
    bucket, options = place
    store = distboost.bin(*arrays, f"{bucket}/store", storage_options=options)
    files = fsspec.filesystem(bucket.partition(":")[0], **options)
    files.pipe_file(f"{store}/bins/c/0/0", b"nothing like it")
    with pytest.raises(BinnedStoreError, match=r"chunk bins/c/0/0.*[Bb]in the data again"):
        model(storage_options=options).fit(store)
    with pytest.raises(DataError, match="there is no zarr array"):
        model(storage_options=options).fit(f"{bucket}/nothing", arrays[1])


@pytest.fixture
def line(server, arrays, monkeypatch):
    """The line that leads to the emulator, and the options to take it. The libraries try again only once."""
    protocol, url = server
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.01)
    with Line(url) as found:
        options = options_of(protocol, found.url)
        if protocol == "gs":
            monkeypatch.setattr("gcsfs.GCSFileSystem.retries", 1)
        else:
            options |= {"retry_total": 0, "retry_connect": 0, "retry_read": 0, "retry_status": 0}
        yield found, options
        found.shutdown()


def test_a_line_that_is_cut_for_a_moment(line, arrays, blobs, saved):
    connection, options = line
    connection.cut(4)
    assert saved(model(storage_options=options).fit(*arrays)) == saved(model().fit(*blobs))
    assert connection.refused == 0


def test_a_cut_off_line_is_not_damage(line, arrays, monkeypatch):
    if arrays[0].startswith("az:"):
        pytest.skip("azure's library tries again for minutes by itself, at each access")
    connection, options = line
    monkeypatch.setattr(retry, "DEADLINE", 1.0)  # the libraries try again by themselves, for longer
    connection.cut(10**9)
    with pytest.raises(
        StoreError, match=r"cannot be read: .*tried up to 6 times\. Check the disk or the network"
    ):
        model(storage_options=options).fit(*arrays)


def test_a_wrong_key_is_not_damage(arrays, place, server):
    protocol, url = server
    if protocol == "gs":
        pytest.skip("the emulator knows no keys")
    wrong = {
        "connection_string": options_of(protocol, url)["connection_string"].replace(
            KEY, KEY[::-1].replace("=", "A")
        )
    }
    with pytest.raises((StoreError, DataError)) as caught:
        model(storage_options=wrong).fit(*arrays)
    assert "Write its zarr.json again" not in str(caught.value)
    assert KEY not in str(caught.value)
