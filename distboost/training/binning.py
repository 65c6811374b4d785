"""Bin once, train many times."""

from __future__ import annotations

from typing import Any

from distboost.data.dataset import RawDataset
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
    client: Any = None,
) -> str:
    """Writes a binned store, which `fit` takes in place of X and y.

    A complete store of the same data that is at `out` already is left as it is; one that was interrupted is gone on with.

    Parameters
    ----------
    X, y, sample_weight
        What `fit` takes.
    out : str
        Path or URL of the store to write.
    max_bins : int, default=255
    random_state : int, default=0
        Seed of the sample whose quantiles become bin edges.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
    memory_limit : int or None, default=None
        Bytes that binning may take in each process, libraries and arrays already in memory not counted. By default 256 MiB per
        thread, or what the largest chunk needs.
    keep_values : bool, default=False
        Store the values beside the bins: REBEL's similarities need them.
    client : distributed.Client or None, default=None
        Where to run; found as for `fit` if not given.

    Returns
    -------
    out : str

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
    data = RawDataset.of(X, y, sample_weight)
    warn_all(data.missing_chunks(missing_chunks), stacklevel=3)
    with open_runtime(client, None) as runtime:
        write_store(data, out, max_bins, random_state, runtime, memory_limit, keep_values)
    return out
