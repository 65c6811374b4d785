"""The whole way on S3: arrays, binned stores, models and predictions, on a server of its own on this machine."""

import gc
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections import Counter

import fsspec
import numpy as np
import pytest
import sklearn.pipeline
import zarr
from click.testing import CliRunner
from zarr.core.sync import sync

import distboost
from distboost import GDMCBoostClassifier
from distboost.active import QueryByCommittee
from distboost.cli import main
from distboost.data import ingest
from distboost.data.dataset import RawDataset
from distboost.data.ingest_plan import least_memory
from distboost.data.result import Result
from distboost.errors import BinnedStoreError, CheckpointError, DataError, StoreError
from distboost.io import retry
from distboost.io.storage import create_group, open_store
from distboost.prediction import streamed as stream
from distboost.prediction.streamed import write_predictions
from distboost.training.memory_plan import while_reading
from tests.lines import DEADLINE, Line
from tests.ports import free_ports

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")
aiobotocore = pytest.importorskip("aiobotocore.client")


@pytest.fixture(scope="module")
def server():
    """The URL of an S3 server in a process of its own, to which the environment leads."""
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", url)
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        try:
            _wait_for(url)
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_for(url):
    end = time.monotonic() + DEADLINE
    while True:
        try:
            with urllib.request.urlopen(f"{url}/moto-api/"):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@pytest.fixture
def bucket(server, request):
    """The URL of a new bucket."""
    name = f"b{abs(hash(request.node.nodeid))}"
    s3fs.S3FileSystem().mkdir(name)
    return f"s3://{name}"


@pytest.fixture
def arrays(bucket, blobs):
    """URLs of the blobs' features and labels."""
    zarr.create_array(f"{bucket}/data/x", data=np.asarray(blobs[0]), chunks=(60, 2))
    zarr.create_array(f"{bucket}/data/y", data=np.asarray(blobs[1]), chunks=(100,))
    return f"{bucket}/data/x", f"{bucket}/data/y"


def model():
    return GDMCBoostClassifier(calibration=None, n_estimators=3)


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
        limit = while_reading(on_cluster=False) + least_memory(*RawDataset.of(*arrays, None).sources, 255, 40)
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


def test_predictions_and_models_on_s3(arrays, bucket, blobs):
    fitted = model().fit(*arrays)
    fitted.save(f"{bucket}/models/m.dboost")
    loaded = distboost.load(f"{bucket}/models/m.dboost")
    array = write_predictions(
        loaded, arrays[0], f"{bucket}/predicted", proba=False, overwrite=False, client=None
    )
    np.testing.assert_array_equal(array[:], fitted.predict(blobs[0]))
    with pytest.raises(DataError, match="already"):
        write_predictions(loaded, arrays[0], f"{bucket}/predicted", proba=False, overwrite=False, client=None)
    array = write_predictions(
        loaded, arrays[0], f"{bucket}/predicted", proba=True, overwrite=True, client=None
    )
    np.testing.assert_array_equal(array[:], fitted.predict_proba(blobs[0]))
    np.testing.assert_array_equal(np.asarray(loaded.predict(arrays[0])), fitted.predict(blobs[0]))


def test_an_interrupted_prediction_on_s3(arrays, bucket, blobs, monkeypatch, capsys):
    """Nobody can open it; it goes on with the same model alone; what was there is kept."""
    monkeypatch.setattr(stream, "TASK_BYTES", 1)
    fitted, out, files = model().fit(*arrays), f"{bucket}/predicted", s3fs.S3FileSystem()
    write = Result.write

    def interrupted(self, start, values):
        if start == 120:
            raise KeyboardInterrupt
        write(self, start, values)

    monkeypatch.setattr(Result, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_predictions(fitted, arrays[0], out, proba=True, overwrite=False, client=None)
    monkeypatch.setattr(Result, "write", write)
    with pytest.raises(FileNotFoundError):
        zarr.open_array(out, mode="r")
    kept = {
        key: files.info(key, refresh=True)["LastModified"] for key in files.find(f"{out}/c", refresh=True)
    }
    assert 2 <= len(kept) < 4  # one more may have been under way
    with pytest.raises(DataError, match=r"an unfinished prediction at .*of another model"):
        write_predictions(
            GDMCBoostClassifier(calibration=None, n_estimators=2).fit(*arrays),
            arrays[0],
            out,
            proba=True,
            overwrite=False,
            client=None,
        )
    array = write_predictions(fitted, arrays[0], out, proba=True, overwrite=False, client=None)
    assert f"continuing after {60 * len(kept)} rows" in capsys.readouterr().err
    np.testing.assert_array_equal(array[:], fitted.predict_proba(blobs[0]))
    np.testing.assert_array_equal(zarr.open_array(out, mode="r")[:], array[:])
    assert {key: files.info(key, refresh=True)["LastModified"] for key in kept} == kept
    assert f"{out[5:]}/distboost-unfinished.json" not in files.find(out, refresh=True)


def test_a_checkpoint_on_s3(arrays, bucket, saved):
    """As if killed in round 7: before the next write, and with what a writer that was killed before its manifest left."""
    url = f"{bucket}/checkpoints/c"

    def die(progress):
        if progress.round == 7:
            raise KeyboardInterrupt

    whole = GDMCBoostClassifier(calibration=None, n_estimators=9, subsample=0.7).fit(*arrays)
    made = whole.get_params() | {"checkpoint": url, "checkpoint_every": 3}
    with pytest.raises(KeyboardInterrupt):
        GDMCBoostClassifier(**made | {"callbacks": [die]}).fit(*arrays)
    assert distboost.load(url).n_iter_ == 6
    files = s3fs.S3FileSystem()
    stray = f"{url}/rounds-6-7-{16 * 'a'}.safetensors"
    files.pipe_file(stray, b"half")
    resumed = GDMCBoostClassifier(**made).fit(*arrays, resume=True)
    assert saved(resumed) == saved(whole) == saved(distboost.load(url))
    names = sorted(
        key.rpartition("/")[2].rpartition("-")[0] for key in files.ls(url, detail=False, refresh=True)
    )
    assert names == ["", "rounds-0-3", "rounds-3-6", "rounds-6-9"]
    with pytest.raises(
        CheckpointError, match=r"cannot write the checkpoint s3://nowhere/c: \d+ bytes to .*bucket"
    ):
        GDMCBoostClassifier(**made | {"checkpoint": "s3://nowhere/c"}).fit(*arrays)
    with pytest.raises(FileNotFoundError):
        distboost.load(f"{bucket}/checkpoints/d")


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


# Options: the environment of these tests knows neither the server nor its keys.

SECRET = "not-to-be-told"


@pytest.fixture
def options(arrays, server, monkeypatch):
    """The storage options of the server; without them, nothing on it can be read."""
    forget_connections()
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name)
    yield {
        "endpoint_url": server,
        "key": "test",
        "secret": SECRET,
        "client_kwargs": {"region_name": "us-east-1"},
    }
    forget_connections()


def test_storage_options_reach_every_url(arrays, bucket, blobs, options, saved, tmp_path, caplog):
    places = {"checkpoint": f"{bucket}/checkpoint", "scratch": f"{bucket}/scratch"}
    log = distboost.EventLog(f"{bucket}/events.jsonl")
    with caplog.at_level("DEBUG", logger="distboost"):
        fitted = model().set_params(storage_options=options, callbacks=[log], **places)
        fitted.fit(*arrays, eval_set=arrays)
        assert saved(fitted) == saved(model().fit(*blobs, eval_set=blobs))
        fitted.save(f"{bucket}/m.dboost")
        loaded = distboost.load(f"{bucket}/m.dboost", storage_options=options)
        np.testing.assert_array_equal(np.asarray(loaded.predict(arrays[0])), fitted.predict(blobs[0]))
        assert loaded.score(*arrays) == fitted.score(*blobs)
        np.testing.assert_array_equal(
            next(loaded.staged_scores(arrays[0])), next(fitted.staged_scores(blobs[0]))
        )
        store = distboost.bin(*arrays, f"{bucket}/store", storage_options=options)
        assert saved(model().set_params(storage_options=options).fit(store)) == saved(model().fit(*blobs))
        local = distboost.load(f"{bucket}/checkpoint", storage_options=options)
        local.storage_options = None
        found = distboost.evaluate(local, *arrays, storage_options=options)
        assert found["accuracy"] == fitted.score(*blobs)
        page, events = f"{bucket}/report.html", f"{bucket}/events.jsonl"
        report = distboost.report(local, *arrays, page, storage_options=options, events=events)
        assert report["accuracy"] == found["accuracy"]
        assert local.calibrate(*blobs).storage_options is None
        trials = distboost.cross_validate(model().set_params(storage_options=options), *arrays, folds=2)
        assert trials["test_accuracy"].shape == (2,)
        again = (
            model().set_params(n_estimators=5, storage_options=options, **places).fit(*arrays, resume=True)
        )
        assert again.n_iter_ == 5
    files = s3fs.S3FileSystem(**options)
    written = [files.cat_file(key) for key in files.find(bucket[5:], refresh=True)]
    assert len(written) > 10
    assert not [content for content in written if SECRET.encode() in content]
    assert SECRET not in caplog.text


def test_storage_options_are_not_shown(options):
    fitted = sklearn.pipeline.make_pipeline(model().set_params(storage_options=options))
    clone = sklearn.base.clone(fitted)
    assert clone[0].storage_options == options
    for text in (repr(clone), str(clone[0]), clone._repr_html_(), repr(clone[0].storage_options)):
        assert "secret" in text
        assert SECRET not in text


def test_storage_options_reach_workers(arrays, bucket, options, blobs, saved):
    """Workers whose environment does not know the server."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        distributed = model().set_params(storage_options=options, scratch=f"{bucket}/scratch")
        distributed.client = client
        assert saved(distributed.fit(*arrays)) == saved(model().fit(*blobs))
        lazy = distributed.predict(arrays[0])
        np.testing.assert_array_equal(client.compute(lazy).result(timeout=60), distributed.predict(blobs[0]))
        learner = QueryByCommittee(
            distributed, arrays[0], n_initial=20, batch_size=5, classes=np.unique(blobs[1]), warm_start=True
        )
        for _ in range(3):
            rows = learner.query()
            learner.teach(rows, np.asarray(blobs[1])[rows])
        del learner
        gc.collect()  # removes the scores of the pool


def test_commands_with_storage_options(arrays, bucket, options, blobs, saved, monkeypatch):
    monkeypatch.setenv(
        "DISTBOOST_STORAGE_OPTIONS", json.dumps({name: options[name] for name in ("key", "secret")})
    )
    there = ("--storage-options", f"endpoint_url={options['endpoint_url']}")
    settings = ("--set", "n_estimators=3", "--set", "calibration=null", *there)
    command(
        "train",
        "--algorithm",
        "gd-mcboost",
        "--x",
        arrays[0],
        "--y",
        arrays[1],
        "--model",
        f"{bucket}/m",
        *settings,
    )
    loaded = distboost.load(f"{bucket}/m", storage_options=options)
    assert saved(loaded) == saved(model().fit(*blobs))
    command("predict", "--model", f"{bucket}/m", "--x", arrays[0], "--out", f"{bucket}/p", *there)
    command("bin", "--x", arrays[0], "--y", arrays[1], "--out", f"{bucket}/store", *there)
    assert "accuracy" in command(
        "evaluate", "--model", f"{bucket}/m", "--x", arrays[0], "--y", arrays[1], *there
    )
    shown = command("inspect", f"{bucket}/m", "--storage-options", json.dumps(options))
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [("anon", "neither of the form NAME=VALUE"), ('{"secret": oh', "begins as a JSON object")],
)
def test_bad_storage_options_are_not_quoted(given, said, tmp_path):
    done = CliRunner().invoke(main, ["inspect", str(tmp_path), "--storage-options", given])
    assert done.exit_code == 2
    assert said in done.stderr
    assert given not in done.stderr


def test_an_option_that_a_file_system_does_not_know_is_no_damage(arrays):
    with pytest.raises(StoreError, match=r"metadata of .* cannot be read: TypeError: .*unknown"):
        model().set_params(storage_options={"unknown": SECRET}).fit(*arrays)


def test_anonymous_access(arrays, bucket, options, server, blobs, saved):
    """To a bucket that everybody may read; no keys are known here."""
    files = s3fs.S3FileSystem(**options)
    files.call_s3("put_bucket_acl", Bucket=bucket[5:], ACL="public-read")
    for key in files.find(bucket[5:], refresh=True):
        files.chmod(key, "public-read")
    anonymous = {"anon": True, "endpoint_url": server}
    assert saved(model().set_params(storage_options=anonymous).fit(*arrays)) == saved(model().fit(*blobs))


def command(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


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


def forget_connections():
    """Closes the sessions that fsspec keeps, too: nobody would close those of asynchronous filesystems."""
    for files in list(s3fs.S3FileSystem._cache.values()):
        if files._s3 is not None:
            if files.asynchronous:
                sync(files._s3.close())
            else:
                fsspec.asyn.sync(files.loop, files._s3.close)
    s3fs.S3FileSystem.clear_instance_cache()


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
    for data, what in (((store,), "binned store"), (arrays, "X: the metadata")):
        started = time.monotonic()
        with pytest.raises(
            StoreError,
            match=rf"{what}.* cannot be read: .*tried up to 6 times\. Check the disk or the network",
        ):
            model().fit(*data)
        assert time.monotonic() - started < DEADLINE


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
