"""What a training imports."""

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
