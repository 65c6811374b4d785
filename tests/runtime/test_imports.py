"""What a training run imports."""

from __future__ import annotations

import subprocess
import sys

ROWS_IN_MEMORY = """
import sys
import numpy as np
from distboost import GDMCBoostClassifier
X = np.eye(4).repeat(5, axis=0)
model = GDMCBoostClassifier(n_estimators=1, calibration=None).fit(X, X.argmax(1))
model.predict(X)
print({"dask.array", "xarray", "dask.dataframe"} & sys.modules.keys())
"""


def test_rows_in_memory_need_no_dask_arrays() -> None:
    """They would take half a second and 14 MB, as Dask imports xarray where it is installed."""
    done = subprocess.run(
        [sys.executable, "-c", ROWS_IN_MEMORY], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"


ON_WORKERS = """
import sys, tempfile
import numpy as np
import zarr
from distributed import Client, LocalCluster

def imported():
    return sorted({"sklearn", "pandas", "pyarrow", "dask.array"} & sys.modules.keys())

with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
    from distboost import GDMCBoostClassifier
    X = np.eye(4).repeat(50, axis=0)
    model = GDMCBoostClassifier(n_estimators=2, eval_metric="log_loss")
    model.client = client
    model.fit(X, X.argmax(1), eval_set=(X, X.argmax(1))).set_params(eval_metric="error").fit(X, X.argmax(1))
    print(*client.run(imported).values())
    from distboost import evaluate
    from distboost.estimators.writing import write_predictions
    with tempfile.TemporaryDirectory() as folder:
        zarr.save_array(f"{folder}/x", X)
        evaluate(model, f"{folder}/x", X.argmax(1))
        for method in ("temperature", "vector"):
            model.calibrate(f"{folder}/x", X.argmax(1), method=method)
        for proba in (False, True):
            write_predictions(model, f"{folder}/x", f"{folder}/{proba}", proba=proba, overwrite=False, client=client)
        print(*client.run(imported).values())
        # This imports dask.array, which imports xarray and pandas where they are installed.
        np.asarray(model.predict(f"{folder}/x"))
        print(*client.run(lambda: "sklearn" in sys.modules).values())
"""


def test_workers_train_judge_and_predict_without_scikit_learn_and_pandas() -> None:
    """They would take 130 MB of each worker. Metrics and calibration bring algorithms there."""
    done = subprocess.run(
        [sys.executable, "-c", ON_WORKERS], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout.split() == ["[]", "[]", "False"]
