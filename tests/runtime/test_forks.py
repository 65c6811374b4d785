"""A forked process has the clients of its parent without their threads: what waits for them would wait forever."""

from __future__ import annotations

import json

from tests.programs import Program

PROGRAM = """
import json, os, signal, sys
import dask.array as da, numpy as np, zarr
from distributed import Client
from distboost import GAMBLEClassifier, evaluate
from distboost.errors import ClusterError

X = np.random.default_rng(0).normal(size=(60, 3))
y = (X[:, 0] > 0).astype(int)
zarr.create_array(sys.argv[1], data=X, chunks=(20, 3))
model = GAMBLEClassifier(n_estimators=2, calibration=None).fit(X, y)

def fit(client=None):
    again = GAMBLEClassifier(n_estimators=2, calibration=None)
    again.client = client
    return again.fit(X, y)

def connected_again():
    with Client(client.scheduler.address, set_as_default=False) as own:
        return fit(own)

unknown = da.from_array(X, chunks=(20, 3))
unknown = unknown[unknown[:, 0] > -9]
calls = {
    "fit, current": fit,
    "fit, client": lambda: fit(client),
    "fit, cluster": lambda: fit(client.cluster),
    "fit, unknown sizes": lambda: GAMBLEClassifier(n_estimators=2).fit(unknown, da.from_array(y, chunks=20)),
    "evaluate": lambda: evaluate(model, X, y),
    "predict": lambda: model.predict(sys.argv[1]).compute(),
    "works: in memory": lambda: model.predict(X),
    "works: connected again": connected_again,
}
with Client(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None) as client:
    for name, call in calls.items():
        if os.fork() == 0:
            signal.alarm(40)
            try:
                call()
                found = "done"
            except ClusterError as error:
                found = str(error)
            print(json.dumps([name, found]), flush=True)
            os._exit(0)
        os.wait()
"""


def test_what_would_wait_forever_is_refused(tmp_path):
    said, errors = Program(PROGRAM, tmp_path / "x").communicate(timeout=110)
    found = dict(map(json.loads, said.splitlines()))
    assert len(found) == 8, errors
    for name, answer in found.items():
        if name.startswith("works"):
            assert answer == "done", name
        else:
            assert "was forked from" in answer, name
            assert "spawn" in answer, name
