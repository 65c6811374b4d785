"""Prediction of arrays that do not fit in memory, whatever their chunks: the same labels, and a bounded peak."""

import os

import dask.array as da
import numpy as np
import pytest
import zarr

from distboost import GDMCBoostClassifier
from distboost.estimators.evaluating import confusion
from distboost.estimators.writing import write_predictions
from distboost.inputs import dask_array, zarr_array
from tests.programs import Program

CHUNKS = [(240, 1), (240, 4), (100, 2), (50, 4), (1, 4), (7, 3)]


@pytest.fixture(scope="module")
def model(blobs):
    return GDMCBoostClassifier(calibration=None, n_estimators=3).fit(*blobs)


@pytest.fixture
def small_tasks(monkeypatch):
    """Nothing fits but a few rows."""
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    for module in (dask_array, zarr_array):
        monkeypatch.setattr(module, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(dask_array, "KEPT", 0)


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
def test_one_prediction_whatever_the_chunks(chunks, model, blobs, small_tasks, tmp_path):
    X, y = map(np.asarray, blobs)
    x = zarr.create_array(str(tmp_path / "x"), data=X, chunks=chunks)
    zarr.create_array(str(tmp_path / "y"), data=y, chunks=(200,))
    expected = model.predict(X)
    written = write_predictions(
        model, str(tmp_path / "x"), str(tmp_path / "out"), proba=False, overwrite=False, client=None
    )
    np.testing.assert_array_equal(written[:], expected)
    for data in (x, da.from_array(X, chunks=chunks)):
        np.testing.assert_array_equal(np.asarray(model.predict(data)), expected)
        np.testing.assert_array_equal(np.asarray(model.predict_proba(data)), model.predict_proba(X))
    found = confusion(model, str(tmp_path / "x"), str(tmp_path / "y"))
    assert found.accuracy == (expected == y).mean()


def test_on_a_cluster(model, blobs, clients, small_tasks):
    X = np.asarray(blobs[0])
    lazily = model.predict(da.from_array(X, chunks=(240, 1)))
    np.testing.assert_array_equal(clients[2].compute(lazily).result(), model.predict(X))


MEASURE = """
import sys, dask.array as da, numpy as np, zarr, distboost
from distboost.estimators.writing import write_predictions
from distboost.inputs import dask_array, zarr_array
folder, way = sys.argv[1:]
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024
model = distboost.load(f"{folder}/model")
def predict(x, out):
    if way == "command":
        return write_predictions(model, f"{folder}/{x}", f"{folder}/{out}", proba=False, overwrite=True, client=None)[:]
    array = zarr.open_array(f"{folder}/{x}", mode="r")
    return np.asarray(model.predict(array if way == "zarr" else da.from_array(array, chunks=array.chunks)))
predict("small", "warm")
import distboost.prediction.streamed as stream
stream.TASK_BYTES = zarr_array.BLOCK_BYTES = dask_array.BLOCK_BYTES = 2**23
dask_array.KEPT = 0
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
predict("x", "out")
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak can't be reset here")
def test_the_peak_of_a_prediction(tmp_path):
    """128 MB of columns, of which a process never holds more than three quarters (half, unless the machine is busy)."""
    n, d = 1_000_000, 32
    rng = np.random.default_rng(0)
    few = rng.normal(size=(500, d)).astype("f4")
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(few, few[:, 0] > 0)
    model.save(str(tmp_path / "model"))
    zarr.create_array(str(tmp_path / "small"), data=few, chunks=(100, 3))
    x = zarr.create_array(
        str(tmp_path / "x"), shape=(n, d), chunks=(100_000, 1), dtype="f4", compressors=None
    )
    column = rng.normal(size=(n, 1)).astype("f4")
    for j in range(d):
        x[:, j : j + 1] = column
    peaks = {}
    for way in ("command", "zarr", "dask"):
        done = Program(MEASURE, tmp_path, way)
        said, errors = done.communicate(timeout=100)
        assert done.returncode == 0, errors
        peaks[way] = int(said)
    assert max(peaks.values()) < 0.75 * n * d * 4, peaks
