"""The same model, byte for byte, of any chunks and workers. (Of each algorithm: tests/algorithms.)"""

from __future__ import annotations

import threading
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from distboost import GAMBLEClassifier, GDMCBoostClassifier
from distboost.kernels import random

N, D = 1500, 7

ESTIMATORS = {
    "direction": lambda: GDMCBoostClassifier(calibration=None, n_estimators=6, max_depth=4),
    "sampled": lambda: GDMCBoostClassifier(
        calibration=None,
        n_estimators=6,
        max_leaf_nodes=9,
        subsample=0.6,
        max_features=0.5,
        max_bins=20,
        random_state=3,
    ),
    "gamble": lambda: GAMBLEClassifier(
        calibration=None, n_estimators=6, class_weight="balanced", learning_rate=0.5
    ),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    y = np.array(["ash", "birch", "cedar", "elm"])[np.clip(X[:, 0] + X[:, 1] * X[:, 2] + 2, 0, 3).astype(int)]
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, y, rng.integers(0, 3, N).astype(float), (X[:300], y[:300])


@pytest.fixture(scope="module")
def expected(data, tmp_path_factory):
    """Model files of the same trainings on numpy arrays, in this process, with one thread."""
    folder = tmp_path_factory.mktemp("expected")
    X, y, weights, evaluation = data
    files = {}
    for name, make in ESTIMATORS.items():
        model = make().set_params(n_jobs=1).fit(X, y, weights, eval_set=evaluation)
        model.save(folder / name)
        files[name] = (folder / name).read_bytes()
    return files


def trained(folder: Path, make, client, X, y, weights, evaluation) -> bytes:
    model = make()
    model.client = client
    model.fit(X, y, weights, eval_set=evaluation).save(folder / "model")
    return (folder / "model").read_bytes()


def on_disk(folder: Path, array: np.ndarray, rows: int, name: str, columns: int | None = None) -> str:
    if array.dtype.kind == "U":
        array = array.astype(np.dtypes.StringDType())
    chunks = (rows,) if array.ndim == 1 else (rows, columns or array.shape[1])
    zarr.create_array(folder / name, data=array, chunks=chunks)
    return str(folder / name)


FEW_AND_MANY = pytest.mark.parametrize(
    ("workers", "n_chunks"),
    [
        (3, 1),
        (None, 3),
        (3, 17),
        *(pytest.param(*case, marks=pytest.mark.soak) for case in ((None, 1), (3, 3), (None, 17))),
    ],
)


@FEW_AND_MANY
def test_chunks_of_a_zarr_array(n_chunks, workers, data, expected, clients, tmp_path):
    X, y, weights, evaluation = data
    x_url = on_disk(tmp_path, X, -(-N // n_chunks), "x", columns=3)
    y_url = on_disk(tmp_path, y, 400, "y")
    w_url = on_disk(tmp_path, weights, 333, "w")
    client = clients.get(workers)
    for name in ("direction", "sampled"):
        got = trained(tmp_path, ESTIMATORS[name], client, x_url, y_url, w_url, evaluation)
        assert got == expected[name]


@FEW_AND_MANY
def test_chunks_of_a_dask_array(n_chunks, workers, data, expected, clients, tmp_path):
    X, y, weights, evaluation = data
    rows = -(-N // n_chunks)
    lazy = da.from_array(X, chunks=(rows, 4)), da.from_array(y, chunks=170), da.from_array(weights, chunks=N)
    got = trained(tmp_path, ESTIMATORS["sampled"], clients.get(workers), *lazy, evaluation)
    assert got == expected["sampled"]


def test_zarr_array_in_memory_on_a_cluster(data, expected, clients, tmp_path):
    X, y, weights, evaluation = data
    array = zarr.create_array(zarr.storage.MemoryStore(), data=X, chunks=(100, D))
    assert (
        trained(tmp_path, ESTIMATORS["gamble"], clients[3], array, y, weights, evaluation)
        == expected["gamble"]
    )


def test_more_workers_than_rows(clients, tmp_path):
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    make = lambda: GDMCBoostClassifier(calibration=None, n_estimators=2)  # noqa: E731
    alone = trained(tmp_path, make, None, X, y, None, None)
    assert trained(tmp_path, make, clients[3], X, y, None, None) == alone


def test_inside_a_dask_task(data, expected, clients, tmp_path):
    """A task that trains uses the cluster it runs on, also where every worker has one thread only."""

    def task(folder, X, y, weights, evaluation):
        return trained(folder, ESTIMATORS["direction"], None, X, y, weights, evaluation)

    future = clients[3].submit(task, tmp_path, *data, pure=False)
    assert future.result(timeout=100) == expected["direction"]


def test_trainings_share_a_cluster(data, expected, clients, tmp_path):
    got: dict[str, bytes] = {}

    def run(name: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        got[name] = trained(folder, ESTIMATORS[name], clients[3], *data)

    threads = [threading.Thread(target=run, args=(name,)) for name in ESTIMATORS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=100)
    assert got == expected
    # Nothing is left behind for the user's own computations.
    assert dask.config.get("scheduler", None) is None


def test_nothing_stays_on_the_workers(data, clients):
    X, y, _, _ = data
    client = clients[3]
    model = GDMCBoostClassifier(calibration=None, n_estimators=2)
    model.client = client
    model.fit(X, y)

    def kept(dask_worker):
        return len(dask_worker.data) + len(dask_worker.state.actors)

    for _ in range(100):
        if not any(client.run(kept).values()):
            break
        threading.Event().wait(0.1)
    assert client.run(kept) == dict.fromkeys(client.nthreads(), 0)


def test_draws_depend_on_position_alone():
    key = random.key(7, random.ROW_SUBSAMPLE, 3)
    whole = random.uniforms(key, 0, 1000)
    np.testing.assert_array_equal(random.uniforms(key, 137, 200), whole[137:337])
    assert 0.4 < whole.mean() < 0.6
    assert len({int(random.key(s, t, r)) for s in (0, 1) for t in (1, 2) for r in (0, 1)}) == 8
