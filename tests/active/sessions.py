"""What the tests of active learning share: a pool in every form, and learners that are quick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr

from distboost import GAMBLEClassifier
from distboost.active import QueryByCommittee


def committee(n_estimators: int = 3, client: Any = None, **parameters: Any) -> GAMBLEClassifier:
    made = GAMBLEClassifier(
        **{"n_estimators": n_estimators, "max_leaf_nodes": 4, "n_jobs": 1, "calibration": None, **parameters}
    )
    made.client = client
    return made


def learner(pool: Any, estimator: Any = None, **parameters: Any) -> QueryByCommittee:
    return QueryByCommittee(
        estimator or committee(), pool, **{"n_initial": 20, "batch_size": 10, **parameters}
    )


def asked(learner: QueryByCommittee, y: np.ndarray, n_queries: int = 3) -> list[list[int]]:
    """The rows of each query; all are taught."""
    rows = []
    for _ in range(n_queries):
        rows.append(learner.query())
        learner.teach(rows[-1], y[rows[-1]])
    return [some.tolist() for some in rows]


def state(learner: QueryByCommittee) -> dict[str, Any]:
    """All that there is to know of what was asked and taught."""
    return {
        "labelled": learner.labelled_.tolist(),
        "labels": learner.labels_.tolist(),
        "asked": learner.asked_.tolist(),
        "queries": learner.n_queries_,
        "open": learner.n_open_,
    }


def _zarr(**layout: Any) -> Callable[[np.ndarray, Path], Any]:
    return lambda X, folder: zarr.create_array(str(folder / "pool"), data=X, **layout)


def _path(X: np.ndarray, folder: Path) -> str:
    zarr.create_array(str(folder / "pool"), data=X, chunks=(33, 4))
    return str(folder / "pool")


def _parquet(X: np.ndarray, folder: Path) -> str:
    """Two files, in row groups."""
    table = pa.table({f"x{d}": pa.array(X[:, d], from_pandas=True) for d in range(X.shape[1])})
    (folder / "pool.parquet").mkdir()
    for part, rows in enumerate((slice(0, 100), slice(100, None))):
        some = table.take(np.arange(len(X))[rows])
        pq.write_table(some, folder / "pool.parquet" / f"{part}.parquet", row_group_size=30)
    return str(folder / "pool.parquet")


FORMS: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "numpy": lambda X, folder: X,
    "zarr, few rows": _zarr(chunks=(7, 6)),
    "zarr, tall columns": _zarr(chunks=(300, 1)),
    "zarr, both cut": _zarr(chunks=(16, 4)),
    "zarr, shards": _zarr(chunks=(10, 3), shards=(50, 6)),
    "zarr in memory": lambda X, folder: zarr.create_array(zarr.storage.MemoryStore(), data=X, chunks=(40, 6)),
    "dask": lambda X, folder: da.from_array(X, chunks=(53, 6)),
    "dask, columns": lambda X, folder: da.from_array(X, chunks=(101, 2)),
    "path": _path,
    "parquet": _parquet,
}
