"""Prediction and its errors over arrays of any length: a few chunks are in memory at a time, here or on workers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import fsspec
import numpy as np
import zarr
from scipy.sparse import coo_array, csr_array

from distboost.data.ingest import Labelled
from distboost.data.profile import load_labels
from distboost.data.sources import Source, as_source, check_chunks, load, rows_at_once
from distboost.data.storage import open_store
from distboost.errors import DataError
from distboost.labels import plain
from distboost.runtime.choose import runtime

TASK_BYTES = 2**26  # of the rows that one task holds, unless a single chunk is larger


def write_predictions(
    model: Any, x: str, out: str, *, proba: bool, overwrite: bool, client: Any
) -> zarr.Array:
    """Predicts the rows of the zarr array `x` into a new one at `out`, each chunk written whole by one task.

    The attribute `distboost` is written last: an array without it is incomplete.
    """
    source = _rows(model, x)
    _make_room(out, overwrite)
    step = _rows_per_task(source)
    n_classes = len(model.classes_)
    dtype = np.dtype(np.float64) if proba else _storable(model.classes_.dtype)
    array = zarr.create_array(
        open_store(out, read_only=False),
        shape=(source.n_rows, n_classes) if proba else (source.n_rows,),
        chunks=(min(step, source.n_rows), n_classes) if proba else (min(step, source.n_rows),),
        dtype=dtype,
        config={"write_empty_chunks": True},  # so that a chunk that is missing was not written
    )
    calls = ((source.part(a, b), a, b, array, proba) for a, b in _spans(source.n_rows, step))
    for _ in _each(_predict_into, model, calls, client):
        pass
    array.attrs["distboost"] = {"classes": plain(model.classes_), "complete": True}
    return array


class Confusion(NamedTuple):
    """How often each class was predicted as each.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    counts : sparse array of shape (n_classes + 1, n_classes)
        Rows: true classes; the last one is for labels that the model does not know. Columns: predicted ones.
    """

    classes: np.ndarray
    counts: csr_array

    @property
    def n_unknown(self) -> int:
        return int(self.counts[[-1]].sum())

    @property
    def accuracy(self) -> float:
        return float(self.counts.diagonal().sum() / self.counts.sum())

    def per_class(self) -> dict[str, np.ndarray]:
        """Precision, recall, F1 and number of rows of each class."""
        from sklearn.metrics import precision_recall_fscore_support

        cells = self.counts.tocoo()
        values = precision_recall_fscore_support(
            cells.row,
            cells.col,
            labels=np.arange(len(self.classes)),
            sample_weight=cells.data,
            zero_division=0,
        )
        return dict(zip(("precision", "recall", "f1", "rows"), values, strict=True))

    def worst(self, most: int) -> list[tuple[str, str, int]]:
        """The most frequent mistakes: true class, predicted class, how often."""
        cells = self.counts.tocoo()
        wrong = np.flatnonzero((cells.row != cells.col) & (cells.row < len(self.classes)))
        first = wrong[np.argsort(-cells.data[wrong], kind="stable")[:most]]
        names = [str(label) for label in self.classes]
        return [(names[cells.row[i]], names[cells.col[i]], int(cells.data[i])) for i in first]


def confusion(model: Any, x: str, y: str, client: Any) -> Confusion:
    """The confusion matrix of the model on all rows of two zarr arrays."""
    source, labels = _rows(model, x), as_source(y, "y")
    _warn_of_missing(labels)
    if labels.n_rows != source.n_rows:
        raise DataError(
            f"{source.place} has {source.n_rows} rows but {labels.place} has {labels.n_rows}. Each row needs one label."
        )
    if not source.n_rows:
        raise DataError(f"{source.place} has 0 rows: there is nothing to evaluate.")
    step = _rows_per_task(source)
    spans, labels = _spans(source.n_rows, step), Labelled(source, labels, None).near(step).y
    calls = ((source.part(a, b), labels.part(a, b), labels.place, a) for a, b in spans)
    counts = csr_array(sum(_each(_count, model, calls, client)))
    if counts[[-1]].sum() == source.n_rows:
        raise DataError(
            f"no label in {labels.place} is among the {len(model.classes_)} classes of the model ({model.classes_[0]}, ...). "
            "Are these the labels of the same task?"
        )
    return Confusion(model.classes_, counts)


def _rows(model: Any, x: str) -> Source:
    source = as_source(x, "X")
    if len(source.shape) != 2 or source.shape[1] != model.n_features_in_:
        raise DataError(
            f"{source.place} has shape {source.shape}, but the model expects rows of {model.n_features_in_} features."
        )
    _warn_of_missing(source)
    return source


def _warn_of_missing(source: Source) -> None:
    import warnings

    message = check_chunks(source, "warn")
    if message:
        warnings.warn(message, UserWarning, stacklevel=2)


def _rows_per_task(source: Source) -> int:
    """A whole number of the source's chunks, so that each is read once, or fewer rows where chunks are too tall for that."""
    rows = rows_at_once(source, TASK_BYTES)
    strip = rows * max(source.shape[1], 1) * 8
    return rows * max(1, TASK_BYTES // strip) if rows == source.chunk_rows else rows


def _spans(n_rows: int, step: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _each(
    function: Callable[..., Any], model: Any, calls: Iterator[tuple], client: Any
) -> Generator[Any, None, None]:
    """function(model, *call) for each call. The model travels to a cluster once; tasks take one thread each."""
    model.set_params(n_jobs=1)
    with runtime(client, None) as where:
        sent = where.share(model)
        yield from where.each(
            function, ((sent, *call) for call in calls), where.n_parallel // where.n_processes
        )


def _predict_into(model: Any, part: Any, start: int, stop: int, out: zarr.Array, proba: bool) -> None:
    X = load(part)
    out[start:stop] = model.predict_proba(X) if proba else model.predict(X).astype(out.dtype)


def _count(model: Any, part: Any, labels: Any, place: str, first: int) -> csr_array:
    """The confusion matrix of one part."""
    y = load_labels(labels, place, first)
    n_classes = len(model.classes_)
    true, predicted = (
        _codes(y, model.classes_, place),
        _codes(model.predict(load(part)), model.classes_, place),
    )
    return csr_array(coo_array((np.ones(len(y), np.int64), (true, predicted)), (n_classes + 1, n_classes)))


def _codes(labels: np.ndarray, classes: np.ndarray, place: str) -> np.ndarray:
    """The number of each label's class; n_classes for a label that is none."""
    if labels.dtype.kind in "US" and classes.dtype.kind not in "USO":
        raise DataError(
            f"{place} holds text labels, but the classes of the model are numbers ({classes[0]}, ...)."
        )
    try:
        index = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError as error:
        raise DataError(
            f"{place} holds labels of another type than the classes of the model: {error}."
        ) from error
    return np.where(classes[index] == labels, index, len(classes))


def _storable(dtype: np.dtype) -> np.dtype:
    """The type to store labels as: zarr 3 specifies text of any length, not NumPy's texts of a fixed length."""
    return np.dtypes.StringDType() if dtype.kind in "UO" else dtype


def _make_room(out: str, overwrite: bool) -> None:
    filesystem, path = fsspec.core.url_to_fs(out)
    if not filesystem.exists(path):
        return
    if not overwrite:
        raise DataError(
            f"there is something at {out!r} already: give another place with --out, or add --overwrite."
        )
    try:
        zarr.open_array(open_store(out), mode="r")
    except Exception as error:
        raise DataError(
            f"{out!r} is not a zarr array: it will not be overwritten. Remove it yourself."
        ) from error
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        filesystem.rm(path, recursive=True)
