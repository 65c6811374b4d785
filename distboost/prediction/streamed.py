"""Streamed prediction of zarr arrays of any length: only a few chunks are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import click
import numpy as np

from distboost.data.axes import spans
from distboost.data.encoding import encoded_for
from distboost.data.fingerprint import changed, fingerprint
from distboost.data.labels import plain
from distboost.data.missing import warn_about
from distboost.data.names import Named
from distboost.data.parts import pieces
from distboost.data.result import Array, Result
from distboost.data.source import Source
from distboost.data.sources import as_features, rows_at_once
from distboost.data.store.values import open_rows
from distboost.errors import DataError
from distboost.io.phases import SILENT, Phases
from distboost.io.progress import phases_shown
from distboost.io.storage import local_path
from distboost.prediction.wanted import check_wanted, ends_if_unwanted
from distboost.runtime.choose import open_runtime

TASK_BYTES = 2**26  # bytes of the rows of one task, unless a single chunk is larger
PIECE_ROWS = 2**14  # rows that are predicted together; interrupts are checked between pieces


def write_predictions(
    model: Any, x: str, out: str, *, proba: bool, overwrite: bool, client: Any, verbose: int = 0
) -> Array:
    """Predict the rows of the zarr array `x` into a new zarr array at `out`. One task writes each chunk as a whole.

    The array can be opened once it is complete. Chunks that an interrupted call with the same model and rows wrote are kept.
    """
    _check_apart(x, out)
    model.set_params(n_jobs=1)
    source = _rows(model, x)
    step = rows_per_task(source)
    n_classes = len(model.classes_)
    made_from = {"model": model.digest(), "x": fingerprint([source]), "proba": proba}
    result = Result.of(
        out,
        made_from,
        shape=(source.n_rows, n_classes) if proba else (source.n_rows,),
        chunks=(min(step, max(source.n_rows, 1)), n_classes)[: 1 + proba],
        dtype=np.dtype(np.float64) if proba else _storable(model.classes_.dtype),
        attributes={"distboost": {"classes": plain(model.classes_), "complete": True}},
    )
    row_spans = list(spans(0, source.n_rows, step))
    with result.under_way(overwrite) as kept:
        todo = [(start, stop) for start, stop in row_spans if result.key(start) not in kept]
        done = source.n_rows - _length(todo)
        if done:
            click.echo(f"{out}: continuing after {done:,} rows that were predicted before", err=True)
        calls = ((source.part(a, b), a, result, proba) for a, b in todo)
        with phases_shown(verbose) as phases:
            answers = each(_predict_into, model, calls, client, phases=phases)
            for _ in counted(phases, "predict", answers, todo, source.n_rows):
                pass
        if changed([source]):
            raise DataError(
                f"{source.place} was changed during the prediction. Repeat the command with --overwrite when it is stable."
            )
    return result.array


def _check_apart(x: str, out: str) -> None:
    """Raise DataError if the places to read and to write are the same, or one lies within the other."""
    x, out = (str(path.resolve()) if (path := local_path(url)) else url.rstrip("/") for url in (x, out))
    if f"{out}/".startswith(f"{x}/") or f"{x}/".startswith(f"{out}/"):
        raise DataError(
            f"--out {out!r} and --x {x!r} are the same place, or one is within the other. Give another place with --out."
        )


def _length(row_spans: Iterable[tuple[int, int]]) -> int:
    return sum(stop - start for start, stop in row_spans)


def counted(
    phases: Phases, name: str, answers: Iterable[Any], row_spans: list[tuple[int, int]], n_rows: int
) -> Iterator[Any]:
    """Yield the answers for these spans, the last of `n_rows` rows, and count their rows in a phase."""
    with phases.begin(name, n_rows, "rows", n_rows - _length(row_spans)) as advance:
        for (start, stop), answer in zip(row_spans, answers, strict=True):
            advance(stop - start)
            yield answer


def _rows(model: Any, x: str) -> Source:
    source = as_features(encoded_for(open_rows(x, "X"), "X", model.learned_.ensemble.categories), "X")
    check_features(source, model.n_features_in_)
    warn_about(source, "warn", 2)
    return source


def check_features(source: Source, n_features: int) -> None:
    """Raise DataError unless these are rows of so many features."""
    if len(source.shape) != 2 or source.shape[1] != n_features:
        raise DataError(
            f"{source.place} has shape {source.shape}, but the model expects rows of {n_features} features."
        )


def rows_per_task(source: Source) -> int:
    """Return the rows of a task: whole chunks of the source, so that each is read once; fewer rows if chunks are too tall."""
    rows = rows_at_once(source, TASK_BYTES)
    strip = rows * max(source.shape[1], 1) * 8
    return rows * max(1, TASK_BYTES // strip) if rows == source.chunk_rows else rows


def each(
    function: Callable[..., Any],
    common: Any,
    calls: Iterable[tuple[Any, ...]],
    client: Any,
    n_threads: int | None = None,
    phases: Phases = SILENT,
) -> Generator[Any, None, None]:
    """Yield function(common, *call) for each call. `common` is sent to a cluster once; each task takes one thread."""
    with open_runtime(client, n_threads, phases=phases) as runtime:
        sent = runtime.share(common)
        yield from runtime.each(
            function, ((sent, *call) for call in calls), runtime.n_parallel // runtime.n_processes
        )


@ends_if_unwanted
def _predict_into(model: Any, part: Any, start: int, result: Result, proba: bool) -> None:
    result.check_seen()
    X, names = loaded(part), getattr(model, "feature_names_in_", None)
    values = np.empty((len(X), *result.array.shape[1:]), result.array.dtype)
    for rows in _pieces(len(X)):
        some = X[rows] if names is None else Named(X[rows], names)  # the caller has compared the names
        values[rows] = model.predict_proba(some) if proba else model.predict(some)
    result.write(start, values)


def loaded(part: Any) -> np.ndarray:
    """The rows of a part; raises UnwantedError if the caller is gone."""
    X = np.empty(part.shape, part.dtype)
    for position, values in pieces(part):
        check_wanted()
        X[tuple(slice(a, a + n) for a, n in zip(position, values.shape, strict=True))] = values
        del values  # a view may keep a chunk in memory: it must go before the next one is read
    return X


def _pieces(n_rows: int) -> Iterator[slice]:
    """Yield the rows to predict together; raise UnwantedError if the caller is gone."""
    for start, stop in spans(0, n_rows, PIECE_ROWS):
        check_wanted()
        yield slice(start, stop)


def _storable(dtype: np.dtype) -> np.dtype:
    """Return the dtype to store labels with: zarr 3 specifies text of variable length, not NumPy's of fixed length."""
    return np.dtypes.StringDType() if dtype.kind in "UO" else dtype
