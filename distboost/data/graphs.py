"""Dask arrays whose parts are computed one by one.

A scheduler identifies a task by its name. If each part of an array is optimised separately, the tasks that parts share differ but
have one name, and the scheduler fails. The same happens with other computations of the array's owner. So a graph is optimised
once, and its tasks get unique names.
"""

from __future__ import annotations

import uuid
from asyncio import CancelledError
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dask._task_spec import Alias, GraphNode, Task, convert_legacy_graph
from dask.base import compute, optimize
from dask.core import flatten
from dask.utils import ensure_dict
from distributed.shuffle._core import P2PBarrierTask

from distboost.errors import ClusterError, DataError, DistboostError

if TYPE_CHECKING:  # its import takes half a second and 14 MB: whoever has a dask array has paid for it
    import dask.array as da


def set_apart(arrays: Sequence[da.Array], places: Iterable[str]) -> list[da.Array]:
    """Return the same arrays, with chunks of known sizes, in one separate graph that contains each common task once.

    A chunk that is computed to another size raises DataError: kernels rely on the sizes. Futures among the tasks keep their
    names: Dask keeps their data as long as the caller references the original arrays.
    """
    if not arrays:
        return []
    optimized = optimize(*arrays)
    graph = convert_legacy_graph(ensure_dict(optimized[0].__dask_graph__()))
    if any(isinstance(task, P2PBarrierTask) for task in graph.values()):
        raise DataError(
            f"{' or '.join(places)} is rechunked or shuffled peer to peer, which computes the whole array for any part of it. "
            "Rechunk with method='tasks', or persist it."
        )
    mark = uuid.uuid4().hex
    tasks = _renamed(graph, mark)
    for key in (key for array in arrays for key in flatten(array.__dask_keys__()) if key not in graph):
        tasks[_named(key, mark)] = Alias(_named(key, mark), key)  # a future: a chunk that was persisted
    apart = [_array(array, tasks, _named(array.name, mark)) for array in arrays]
    try:
        measured = _measured(apart)
    except (DistboostError, ValueError, TypeError):
        raise
    except (Exception, CancelledError) as error:
        raise ClusterError(
            f"the sizes of the chunks of {' or '.join(places)} cannot be computed: {type(error).__name__}: {error}"
        ) from error
    return [_held_to_sizes(array, tasks, place) for array, place in zip(measured, places, strict=True)]


def _held_to_sizes(array: da.Array, tasks: Mapping[Any, GraphNode], place: str) -> da.Array:
    """Return the array with a check of the shape of each chunk, in the task that computes it."""
    held = {}
    for position in np.ndindex(*array.numblocks):
        key = (array.name, *position)
        shape = tuple(sizes[i] for sizes, i in zip(array.chunks, position, strict=True))
        held[key] = Task(key, _of_shape, tasks[key], shape, place, position)
    return _array(array, {**tasks, **held}, array.name)


def _of_shape(chunk: Any, shape: tuple[int, ...], place: str, position: tuple[int, ...]) -> Any:
    """Return the chunk, if it has the shape that its array says."""
    if np.shape(chunk) != shape:
        raise DataError(
            f"chunk {position} of {place} was computed to the shape {np.shape(chunk)}, but the dask array says {shape}. Give the "
            "function that makes it the chunks that it returns, as in map_blocks(function, chunks=...)."
        )
    return chunk


def part_of(array: da.Array, index: tuple[slice, ...]) -> da.Array:
    """Return a part of an array from `set_apart`, with only the tasks that it needs."""
    part = array[index]
    graph, todo = part.__dask_graph__(), list(flatten(part.__dask_keys__()))
    tasks: dict[Any, GraphNode] = {}
    while todo:
        key = todo.pop()
        if key not in tasks and key in graph:
            tasks[key] = graph[key]
            todo += tasks[key].dependencies
    return _array(part, tasks, part.name)


def renamed(part: da.Array, mark: str) -> da.Array:
    """Return the same part with renamed tasks, which it shares only with parts of the same mark."""
    if not mark:
        return part
    return _array(part, _renamed(part.__dask_graph__(), mark), _named(part.name, mark))


def _array(like: da.Array, tasks: Mapping[Any, GraphNode], name: str) -> da.Array:
    """Return an array of other tasks in the same chunks."""
    return type(like)(tasks, name, like.chunks, meta=like._meta)


def _renamed(graph: Mapping[Any, GraphNode], mark: str) -> dict[Any, GraphNode]:
    names = {key: _named(key, mark) for key in graph}
    return {names[key]: task.substitute(names, key=names[key]) for key, task in graph.items()}


def _named(key: Any, mark: str) -> Any:
    return (_named(key[0], mark), *key[1:]) if isinstance(key, tuple) else f"{key}-{mark}"


def _measured(arrays: list[da.Array]) -> list[da.Array]:
    """Return the arrays with known chunk sizes. All unknown sizes are computed in one call."""
    unknown: list[Any] = [array for array in arrays if np.isnan(array.shape).any()]
    shapes = [
        array.map_blocks(
            _shape_of_chunk,
            dtype=int,
            chunks=(*((1,) * len(sizes) for sizes in array.chunks), (array.ndim,)),
            new_axis=array.ndim,
        )
        for array in unknown
    ]
    sizes = [[_along(shape, axis) for axis in range(shape.ndim - 1)] for shape in shapes]
    for array, found in zip(unknown, compute(sizes, optimize_graph=False)[0], strict=True):
        array._chunks = tuple(tuple(map(int, lengths)) for lengths in found)
    return arrays


def _shape_of_chunk(chunk: Any) -> np.ndarray:
    return np.array(chunk.shape).reshape((1,) * chunk.ndim + (-1,))


def _along(shapes: da.Array, axis: int) -> da.Array:
    """Return the lengths of chunks along an axis, from the chunks that are first along the other axes."""
    index = [0] * (shapes.ndim - 1)
    lengths: da.Array = shapes[(*index[:axis], slice(None), *index[axis + 1 :], axis)]
    return lengths
