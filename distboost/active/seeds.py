"""Seeds: labelled rows from outside the pool, whose values the log holds, or where they are."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from distboost.active.pool import Pool
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.validation import check_same
from distboost.io.options import storage_options, url_of
from distboost.io.storage import local_path

MOST_VALUES = 2**20  # in a line of the log


def as_recorded(X: Any, pool: Pool, home: BoostingClassifier) -> list[list[float | None]] | str:
    """Return what the log says of the seeds X: their values, or where they are if X is a path or URL."""
    if pool.labels:
        raise DataError(
            "the pool is a data frame whose columns have labels: seeds are rows of numbers.",
            remedy="Append them to the pool instead, and teach them.",
        )
    found = _values(X, pool, home)
    if isinstance(X, str | os.PathLike):
        path = local_path(url := url_of(X, "X"))
        return str(url) if path is None else os.path.abspath(path)
    if found.size > MOST_VALUES:
        raise DataError(
            f"the seeds have {found.size} values, a line of the log at most {MOST_VALUES}.",
            remedy="Write them to a zarr array, and pass its path.",
            value=found.size,
        )
    return [[None if value != value else value for value in row] for row in found.tolist()]


def read_seeds(seed: dict[str, Any], pool: Pool, home: BoostingClassifier) -> np.ndarray:
    """Return the values of seeds that the log has, (n, n_features) float; NaN where one is missing."""
    x = seed["x"]
    found = _values(x, pool, home) if isinstance(x, str) else np.array(x, np.float64)
    if len(found) != len(seed["labels"]):
        raise DataError(
            f"{x} has {len(found)} rows, but {len(seed['labels'])} when they were seeded.",
            remedy="Restore that array.",
        )
    return found


def _values(X: Any, pool: Pool, home: BoostingClassifier) -> np.ndarray:
    with storage_options(home.storage_options):
        given = Pool(X)
        if given.n_features != pool.n_features or given.labels:
            raise DataError(
                f"the seeds have {given.n_features} features{' with labels' if given.labels else ''}, but the pool has "
                f"{pool.n_features} of numbers.",
                remedy="Pass the same features.",
                value=given.n_features,
            )
        if given.names is not None and pool.names is not None:
            check_same(pool.names.tolist(), given.names.tolist(), "seeds")
        with given.runtime(home) as runtime:
            found: np.ndarray = given.take(np.arange(given.n_rows), runtime, coded=True).data
    return found
