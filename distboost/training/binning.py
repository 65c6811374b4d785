"""Bin once, train many times."""

from __future__ import annotations

from typing import Any

from distboost.data.dataset import RawDataset
from distboost.data.edges import load_merge
from distboost.data.missing import warn_all
from distboost.data.store.writing import write_store
from distboost.runtime.choose import open_runtime


def bin(
    X: Any,
    y: Any,
    out: str,
    *,
    sample_weight: Any = None,
    max_bins: int = 255,
    random_state: int = 0,
    missing_chunks: str = "warn",
    memory_limit: int | None = None,
    keep_values: bool = False,
    wait_for_workers: int | None = None,
    client: Any = None,
) -> str:
    """Write a binned store, which `fit` accepts in place of X and y.

    If `out` already holds a complete store of the same data, it stays as it is. Binning that was interrupted continues.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Features, as for `fit`.
    y : array-like of shape (n_rows,)
        Labels, as for `fit`.
    out : str
        Path or URL of the store to write.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        Weights of the rows, as for `fit`.
    max_bins : int, default=255
        The most bins of a feature, besides one for missing values.
    random_state : int, default=0
        Seed of the sample of rows whose quantiles become bin edges.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
        What to do if chunks of a zarr array were never written: zarr fills them with one value.
    memory_limit : int or None, default=None
        Bytes that binning may take in each process, without libraries and arrays already in memory. The default is 256 MiB per
        thread, or more if the largest chunk needs it.
    keep_values : bool, default=False
        Store the raw values beside the bins. REBEL's similarities need them.
    wait_for_workers : int or None, default=None
        On a cluster: begin when so many workers can take work, as in `fit`.
    client : distributed.Client or None, default=None
        The cluster to run on. By default it is chosen as in `fit`.

    Returns
    -------
    out : str
        The path or URL given.

    Examples
    --------
    >>> import tempfile, distboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> store = distboost.bin(X, y, tempfile.mkdtemp() + "/iris.binned")
    >>> model = distboost.GDMCBoostClassifier(n_estimators=5).fit(store)
    >>> model.n_features_in_
    4
    """
    if wait_for_workers is not None and wait_for_workers < 1:
        raise ValueError(f"wait_for_workers is {wait_for_workers}, expected at least 1, or None.")
    data = RawDataset.of(X, y, sample_weight)
    warn_all(data.missing_chunks(missing_chunks), stacklevel=3)
    with open_runtime(client, None, wait_for_workers=wait_for_workers, loads=[load_merge]) as runtime:
        write_store(data, out, max_bins, random_state, runtime, memory_limit, keep_values)
    return out
