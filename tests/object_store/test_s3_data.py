"""Training and binning from S3: arrays, binned stores, clusters, and the requests that they cost."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
import zarr

import distboost
from distboost.data import ingest
from distboost.data.ingest_plan import least_memory
from distboost.errors import DataError, StoreError
from distboost.estimators.writing import write_predictions
from distboost.inputs.choose import dataset_of
from distboost.io.storage import create_group, open_store
from distboost.training.memory_plan import while_reading
from tests.object_store.s3 import model

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")
aiobotocore = pytest.importorskip("aiobotocore.client")


def test_training_from_s3(arrays, bucket, blobs, saved):
    expected = saved(model().fit(*blobs))
    assert saved(model().fit(*arrays)) == expected
    store = distboost.bin(*arrays, f"{bucket}/store")
    assert saved(model().fit(store)) == expected


@pytest.mark.parametrize("way", ["whole blocks", "bands"])
def test_a_store_on_s3_is_that_on_disk(way, arrays, bucket, tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 40)
    limit = None
    if way == "bands":
        limit = while_reading(on_cluster=False) + least_memory(
            *dataset_of(*arrays, None).sources, max_bins=255, block=40
        )
    stores = [
        distboost.bin(*arrays, place, memory_limit=limit)
        for place in (f"{bucket}/store", str(tmp_path / "store"))
    ]
    files = s3fs.S3FileSystem()
    keys = {key.removeprefix(f"{stores[0][5:]}/") for key in files.find(stores[0], refresh=True)}
    assert keys == {str(f.relative_to(stores[1])) for f in (tmp_path / "store").rglob("*") if f.is_file()}
    for key in keys:
        assert files.cat_file(f"{stores[0]}/{key}") == (tmp_path / "store" / key).read_bytes(), key


def test_a_complete_store_is_used_as_it_is(arrays, bucket, caplog):
    distboost.bin(*arrays, f"{bucket}/store")
    with caplog.at_level("INFO", logger="distboost.data"):
        distboost.bin(*arrays, f"{bucket}/store")
    assert "complete and was made from the same data" in caplog.text
    zarr.open_array(arrays[0])[0, 0] = 7.0
    with pytest.raises(DataError, match="a binned store of other data"):
        distboost.bin(*arrays, f"{bucket}/store")


def test_an_interrupted_store_is_taken_up(arrays, bucket, monkeypatch, saved):
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 60)
    store = distboost.bin(*arrays, f"{bucket}/store")
    group = zarr.open_group(store)
    manifest = dict(group.attrs["distboost-binned"])
    group.attrs.put({"distboost-unfinished": {k: v for k, v in manifest.items() if k != "checksums"}})
    files = s3fs.S3FileSystem()
    files.rm(f"{store}/bins/c/2/0")
    kept = files.info(f"{store}/bins/c/1/0", refresh=True)["LastModified"]
    distboost.bin(*arrays, store)
    assert zarr.open_group(store, mode="r").attrs["distboost-binned"] == manifest
    assert files.info(f"{store}/bins/c/1/0", refresh=True)["LastModified"] == kept


def test_who_begins_second_is_refused(bucket):
    store = open_store(f"{bucket}/store", read_only=False)
    create_group(store, f"{bucket}/store", {"who": "first"})
    with pytest.raises(DataError, match="another process has begun to write to"):
        create_group(store, f"{bucket}/store", {"who": "second"})
    assert dict(zarr.open_group(store, mode="r").attrs) == {"who": "first"}


def test_on_a_cluster(arrays, bucket, server, blobs, saved):
    """Workers that know the server from their environment."""
    from distributed import Client, LocalCluster

    environment = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", env=environment) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        store = distboost.bin(*arrays, f"{bucket}/store", client=client)
        distributed = model()
        distributed.client = client
        assert saved(distributed.fit(store)) == saved(model().fit(*blobs))


def test_a_missing_bucket(arrays, bucket):
    with pytest.raises(DataError, match="there is no zarr array at 's3://nowhere/x'"):
        model().fit("s3://nowhere/x", arrays[1])
    with pytest.raises(StoreError, match=r"cannot write to 's3://nowhere/store': .*bucket"):
        distboost.bin(*arrays, "s3://nowhere/store")


def test_file_urls(blobs, tmp_path, saved):
    url = f"file://{tmp_path}"
    zarr.create_array(str(tmp_path / "x"), data=np.asarray(blobs[0]), chunks=(60, 2))
    zarr.create_array(str(tmp_path / "y"), data=np.asarray(blobs[1]), chunks=(100,))
    store = distboost.bin(f"{url}/x", f"{url}/y", f"{url}/store")
    fitted = model().fit(store)
    assert (tmp_path / "store" / "zarr.json").exists()
    assert saved(fitted) == saved(model().fit(*blobs))
    array = write_predictions(
        fitted, f"{url}/x", f"{url}/predicted", proba=False, overwrite=False, client=None
    )
    np.testing.assert_array_equal(array[:], fitted.predict(blobs[0]))


@pytest.fixture
def requests(monkeypatch):
    """How often each operation of S3 has been asked for."""
    counts, call = Counter(), aiobotocore.AioBaseClient._make_api_call

    async def counted(self, operation, parameters):
        # Not the look for another format's metadata.
        whole = operation == "ListObjectsV2" and not parameters.get("Delimiter")
        counts["listing" if whole else operation] += 1
        return await call(self, operation, parameters)

    monkeypatch.setattr(aiobotocore.AioBaseClient, "_make_api_call", counted)
    return counts


def test_arrays_are_listed_once_before_they_are_read_and_once_after(arrays, requests, monkeypatch):
    """However many chunks and blocks there are; and no chunk is asked for more often than it is read."""
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 60)
    model().fit(*arrays)
    assert requests["listing"] == 2 * len(arrays)
    few = requests["GetObject"]
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 20)
    model().fit(*arrays)
    assert requests["GetObject"] > 2 * few
    assert requests["listing"] == 4 * len(arrays)
