"""Bin once, train many times."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from distboost.algorithms.constraints import Interval, validate_parameters
from distboost.data.blocks import TaskRunner
from distboost.data.checks import naming
from distboost.data.dataset import RawDataset
from distboost.data.edges import load_merge
from distboost.data.store.writing import write_store
from distboost.errors import DataError, LimitError
from distboost.inputs.choose import adapter_of
from distboost.io import options
from distboost.io.options import url_of
from distboost.io.progress import phases_shown
from distboost.io.text import megabytes, megabytes_up
from distboost.runtime.choose import open_runtime
from distboost.training.cubes import CubeReading, labelled_rows
from distboost.training.memory_plan import parse_limit, while_reading
from distboost.warn import warn_of_all

_POSITIVE = Interval(Integral, 1, None, closed="left")
_ALLOWED: Mapping[str, Any] = {
    "max_bins": [Interval(Integral, 2, 255, closed="both")],
    "random_state": [Interval(Integral, 0, None, closed="left"), None],
    "memory_limit": [_POSITIVE, str, None],
    "keep_values": ["boolean"],
    "wait_for_workers": [_POSITIVE, None],
    "verbose": ["verbose"],
}


def bin(
    X: Any,
    y: Any,
    out: str,
    *,
    sample_weight: Any = None,
    max_bins: int = 255,
    random_state: int | None = 0,
    categorical_features: Any = "from_dtype",
    feature_dim: str | None = None,
    nodata: Any = None,
    missing_chunks: str = "warn",
    memory_limit: int | str | None = None,
    keep_values: bool = False,
    wait_for_workers: int | None = None,
    verbose: int = 0,
    client: Any = None,
    storage_options: Mapping[str, Any] | None = None,
) -> str:
    """Write a binned store, which `fit` accepts in place of X and y.

    If `out` already holds a complete store of the same data, it stays as it is. Binning that was interrupted continues.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Features, as for `fit`. The store keeps their names.
    y : array-like of shape (n_rows,)
        Labels, as for `fit`.
    out : str
        Path or URL of the store to write.
    sample_weight : array-like of shape (n_rows,) or None, default=None
        Weights of the rows, as for `fit`.
    max_bins : int, default=255
        The most bins of a feature, besides one for missing values.
    random_state : int or None, default=0
        Seed of the sample of rows whose quantiles become bin edges. None means 0, as in `fit`.
    categorical_features : "from_dtype", array-like of int, str or bool, or None, default="from_dtype"
        The features whose values are categories, as for the estimators.
    feature_dim : str or None, default=None
        The dimension along which a cube has its features, as for the estimators.
    nodata : int, float, str or None, default=None
        The label of a cell of a cube that has none, as for the estimators.
    missing_chunks : {"warn", "error", "ignore"}, default="warn"
        What to do if chunks of a zarr array were never written: zarr fills them with one value.
    memory_limit : int, str or None, default=None
        Bytes (or a text such as "2GB") that each process may use, libraries included, as in `fit`. Arrays that are in memory
        already do not count. None: 256 MiB per thread besides the libraries, or more if the largest chunk needs it.
    keep_values : bool, default=False
        Store the raw values beside the bins. REBEL's similarities need them.
    wait_for_workers : int or None, default=None
        On a cluster: begin when so many workers can take work, as in `fit`.
    verbose : int, default=0
        1: show the progress of the scan and the binning.
    client : distributed.Client, str or None, default=None
        The cluster to run on, or the address of its scheduler. By default it is chosen as in `fit`.
    storage_options : dict or None, default=None
        Options of the file systems of URLs, as in `fit`. The store does not have them.

    Returns
    -------
    out : str
        The path or URL given.

    Raises
    ------
    ValueError
        If a parameter has an invalid value. The message names the valid ones.
    distboost.errors.LimitError
        If the memory limit is too small. The message names a sufficient one.
    distboost.errors.DataError
        If the data cannot be used, or if there is a store of other data at `out`.

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
    given = {
        "max_bins": max_bins, "random_state": random_state, "memory_limit": memory_limit,
        "keep_values": keep_values, "wait_for_workers": wait_for_workers, "verbose": verbose,
    }  # fmt: skip
    validate_parameters(_ALLOWED, given, "bin")
    limit, place = parse_limit(memory_limit), url_of(out, "out")
    if y is None:
        raise DataError(
            "``y`` is None: pass one label per row. A binned store has the labels that its rows are trained on."
        )
    with options.storage_options(storage_options):
        x = adapter_of(X, "X", feature_dim).coded(categorical_features)
        if x.labels and keep_values:
            raise DataError(
                f"feature {min(x.labels)} has labels, and ``keep_values`` stores numbers.",
                remedy="Leave out ``keep_values``, or pass codes instead of labels.",
            )
        reading = CubeReading(client, None, limit, None, nodata, missing_chunks, verbose)
        data = labelled_rows(x, y, sample_weight, reading)
    data.set_categorical(categorical_features, data.names)
    warn_of_all(data.warnings(missing_chunks))
    with (
        naming(data.names),
        options.storage_options(storage_options),
        phases_shown(verbose) as phases,
        open_runtime(
            client, None, wait_for_workers=wait_for_workers, loads=[load_merge], phases=phases
        ) as runtime,
    ):
        memory = None if limit is None else _for_binning(limit, data, max_bins, runtime, keep_values)
        write_store(
            data,
            place,
            max_bins,
            seed=random_state or 0,
            work=runtime,
            memory=memory,
            keep_values=keep_values,
        )
    return out


def _for_binning(limit: int, data: RawDataset, max_bins: int, work: TaskRunner, keep_values: bool) -> int:
    """Return what a limit leaves for reading and binning, beside the libraries; raise LimitError if that is too little."""
    libraries = while_reading(work.on_cluster)
    least = libraries + data.least_ingest(max_bins, work, keep_values)
    if limit < least:
        raise LimitError(
            f"``memory_limit`` is {megabytes(limit)} per process, but reading and binning {data.place} takes "
            f"{megabytes_up(least)}, libraries included.",
            remedy=f"Raise the limit to that, or rechunk the arrays into smaller chunks: {data.largest_chunk()}.",
        )
    return limit - libraries
