"""Workers with different processors: the model is the same, byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import zarr
from distributed import Client, LocalCluster
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[attr-defined]

from distboost import GDMCBoostClassifier
from distboost.baselines import OneVsAllAdaBoostClassifier

# The vector instructions that NumPy uses on this processor and not on each.
OWN = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
# NumPy has exponentials of its own for AVX-512. With AVX2, other functions alone may differ.
HAS_EXPONENTIALS = any(name.startswith(("AVX512", "X86_V4")) for name in OWN)
TRAININGS = {
    "vector after a temperature": (lambda: GDMCBoostClassifier(n_estimators=4, calibration="vector"), None),
    # A mean over many rows would hide their last bits.
    "log-losses": (
        lambda: OneVsAllAdaBoostClassifier(n_estimators=4, calibration=None, eval_metric="log_loss"),
        [slice(n, n + 1) for n in range(60)],
    ),
}


@pytest.fixture(scope="module")
def mixed():
    """The client of a cluster of two workers. In one, NumPy does as on a processor without newer vector instructions."""
    environment = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(OWN)}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        command = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--nthreads", "1"]
        other = subprocess.Popen(
            [*command, "--no-nanny", "--no-dashboard"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client.wait_for_workers(2, timeout=40)
            yield client
        finally:
            other.kill()
            other.wait(10)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows and labels, and the paths of both in eight chunks, so that each worker has some."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 4000)
    X = rng.normal(size=(4000, 5)) + np.eye(4, 5)[y]
    for name, array in {"x": X, "y": y}.items():
        zarr.create_array(folder / name, data=array, chunks=(500, *array.shape[1:]))
    return X, y, str(folder / "x"), str(folder / "y")


@pytest.mark.skipif(not OWN, reason="NumPy uses on this processor what it uses on each")
@pytest.mark.parametrize("name", TRAININGS)
def test_processors_of_workers_do_not_matter(name, mixed, rows, saved):
    exponentials = mixed.run(lambda: np.exp(np.linspace(-9, 9, 1000)).tobytes())
    assert len({*exponentials.values()}) == 2 or not HAS_EXPONENTIALS
    X, y, *paths = rows
    make, sets = TRAININGS[name]
    eval_set = sets and [(X[some], y[some]) for some in sets]
    expected = saved(make().fit(*paths, eval_set=eval_set))
    model = make()
    model.client = mixed
    assert saved(model.fit(*paths, eval_set=eval_set)) == expected
