"""The first rows to label: one of each kind, as far as clusters of the pool tell kinds apart."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from threadpoolctl import threadpool_limits

START_ROWS = 10_000  # of the pool, that are clustered


def central_rows(X: np.ndarray, n: int, random_state: int) -> np.ndarray:
    """Return the rows of X (m, n_features) nearest to the centres of n clusters, (n,) int64, those of large clusters first.

    Features are compared by their distance from the median, relative to that of most rows. Missing values are medians.
    """
    Z = standardised(X)
    clusters = MiniBatchKMeans(n, random_state=random_state, n_init=3, batch_size=1024)
    with threadpool_limits(1):  # the last digits depend on the number of threads
        distance = clusters.fit_transform(Z)
    sizes = np.bincount(clusters.labels_, minlength=n)
    chosen: list[int] = []
    is_free = np.full(len(Z), True)
    for cluster in np.argsort(-sizes, kind="stable"):
        row = int(np.argmin(np.where(is_free, distance[:, cluster], np.inf)))
        chosen.append(row)
        is_free[row] = False
    return np.array(chosen, np.int64)


def standardised(X: np.ndarray) -> np.ndarray:
    """Return X with the median 0 in each feature and nine tenths of its values within 1, or all of them; NaN becomes 0."""
    known = np.where(
        np.isnan(X).all(axis=0), 0.0, X.astype(np.float64)
    )  # a feature that is always missing tells nothing
    Z = known - np.nanmedian(known, axis=0)
    spread = np.nanquantile(np.abs(Z), [0.9, 1.0], axis=0)
    unit = np.where(spread[0] > 0, spread[0], spread[1])
    Z = np.clip(Z / np.where(unit > 0, unit, 1.0), -10, 10)
    return np.where(np.isnan(Z), 0.0, Z)
