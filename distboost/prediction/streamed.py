"""Streamed prediction of zarr arrays of any length: only a few chunks are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.delayed import delayed

from distboost.data.checks import as_numbers, refuse_date_types
from distboost.data.result import OutputArray
from distboost.data.source import Source, assembled, at_hand, spans
from distboost.data.sparse import SparseRows, rows_together
from distboost.errors import DataError
from distboost.inputs.base import LazyInput
from distboost.inputs.dask_array import block_rows
from distboost.io.phases import SILENT, Phases
from distboost.prediction.predictor import Predictor
from distboost.runtime.choose import open_runtime
from distboost.runtime.cluster.cancelled import check_wanted, ends_if_unwanted
from distboost.threads import Threads

if TYPE_CHECKING:  # its import takes half a second and 14 MB, which rows in memory do not need
    import dask.array as da

TASK_BYTES = 2**26  # bytes of the rows of one task, unless a single chunk is larger
PIECE_ROWS = 2**14  # rows that are predicted together; interrupts are checked between pieces


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


def check_features(shape: tuple[int, ...], place: str, n_features: int) -> None:
    """Raise DataError unless an array of this shape has rows of so many features."""
    if len(shape) != 2 or shape[1] != n_features:
        raise DataError(
            f"{place} has shape {shape}, but the model expects rows of {n_features} features.", where=place
        )


def rows_per_task(source: Source) -> int:
    """Return the rows of a task: whole chunks of the source, so that each is read once; fewer rows if chunks are too tall."""
    rows = source.rows_at_once(TASK_BYTES)
    strip = rows * max(source.shape[1], 1) * 8
    return rows * max(1, TASK_BYTES // strip) if rows == source.chunk_rows else rows


def each(
    function: Callable[..., Any],
    common: Any,
    calls: Iterable[tuple[Any, ...]],
    *,
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
def predict_into(predictor: Predictor, part: Any, start: int, result: OutputArray, place: str) -> None:
    """Write the answers for a part of the rows at this place, whose first row has the number `start`."""
    result.check_seen()
    X = loaded(part)
    values = np.empty((len(X), *result.array.shape[1:]), result.array.dtype)
    for rows in _pieces(len(X), rows_together(X, PIECE_ROWS)):
        values[rows] = predictor(as_numbers(X[rows], place), Threads(1), place, start + rows.start)
    result.write(start, values)


def loaded(part: Any) -> np.ndarray | SparseRows:
    """The rows of a part; raises UnwantedError if the caller is gone."""
    found = at_hand(part)
    return found if isinstance(found, SparseRows) else assembled(found, check_wanted)


def _pieces(n_rows: int, at_once: int) -> Iterator[slice]:
    """Yield the rows to predict together; raise UnwantedError if the caller is gone."""
    for start, stop in spans(0, n_rows, at_once):
        check_wanted()
        yield slice(start, stop)


def map_rows(
    X: LazyInput,
    function: Callable[[Any, Any], np.ndarray],
    n_features: int,
    *,
    argument: Any,
    shape: tuple[int, ...],
    dtype: Any,
) -> da.Array:
    """Return a dask array (n, *shape) of `dtype`: function(rows, argument) for the rows, (m, n_features), of each chunk."""
    array: Any = X.rows
    refuse_date_types(array.dtype, "X")
    if array.ndim != 2:
        raise DataError(
            f"``X`` has {array.ndim} dimensions (its shape is {array.shape}), but the model is expecting 2: rows and "
            f"{n_features} features.",
            value=array.ndim,
            remedy="Reshape your data.",
        )
    if array.shape[1] != n_features:
        raise DataError(
            f"``X`` has {array.shape[1]} features (its shape is {array.shape}), but the model is expecting {n_features} "
            "features as input."
        )

    def apply(block: Any, both: tuple[Any, ...]) -> np.ndarray:
        function, argument = both
        rows = block_rows(block)
        answer: np.ndarray = function(
            rows if isinstance(rows, SparseRows) else as_numbers(rows, "X"), argument
        )
        return answer.astype(dtype, copy=False)

    mapped: da.Array = array.map_blocks(
        apply,
        delayed((function, argument), pure=False),
        dtype=dtype,
        chunks=(array.chunks[0], *((length,) for length in shape)),
        drop_axis=None if shape else 1,
        new_axis=list(range(2, 1 + len(shape))) or None,
        meta=np.empty((0,) * (1 + len(shape)), dtype),
    )
    return mapped
