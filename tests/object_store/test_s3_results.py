"""What is written to S3: models, predictions and checkpoints, also after an interruption."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

import distboost
from distboost import GDMCBoostClassifier
from distboost.data.result import OutputArray
from distboost.errors import CheckpointError, DataError
from distboost.estimators.writing import write_predictions
from distboost.prediction import streamed as stream
from tests.object_store.s3 import model

pytest.importorskip("moto")
s3fs = pytest.importorskip("s3fs")


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


def test_an_interrupted_prediction_on_s3(arrays, bucket, blobs, monkeypatch, caplog):
    """Nobody can open it; it goes on with the same model alone; what was there is kept."""
    monkeypatch.setattr(stream, "TASK_BYTES", 1)
    fitted, out, files = model().fit(*arrays), f"{bucket}/predicted", s3fs.S3FileSystem()
    write = OutputArray.write

    def interrupted(self, start, values):
        if start == 120:
            raise KeyboardInterrupt
        write(self, start, values)

    monkeypatch.setattr(OutputArray, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_predictions(fitted, arrays[0], out, proba=True, overwrite=False, client=None)
    monkeypatch.setattr(OutputArray, "write", write)
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
    with caplog.at_level("INFO", "distboost.prediction"):
        array = write_predictions(fitted, arrays[0], out, proba=True, overwrite=False, client=None)
    assert f"continuing after {60 * len(kept)} rows" in caplog.text
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
