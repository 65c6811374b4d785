"""Storage options, where the environment knows neither the server nor its keys."""

from __future__ import annotations

import gc
import json

import numpy as np
import pytest
import sklearn.pipeline
from click.testing import CliRunner

import distboost
from distboost.active import QueryByCommittee
from distboost.cli import main
from distboost.errors import StoreError
from tests.object_store.s3 import forget_connections, model

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")


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


def command(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("given", "said"),
    [("anon", "neither of the form NAME=VALUE"), ('{"secret": oh', "begins as a JSON object")],
)
def test_bad_storage_options_are_not_quoted(given, said, tmp_path):
    done = CliRunner().invoke(main, ["inspect", str(tmp_path), "--storage-options", given])
    assert done.exit_code == 2
    assert said in done.stderr
    assert given not in done.stderr


def test_an_unknown_file_system_option_is_not_damage(arrays):
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
