"""Dask arrays whose parts are computed one by one.

A scheduler identifies a task by its name. If each part of an array is optimised separately, the tasks that parts share differ but
have one name, and the scheduler fails. The same happens with other computations of the array's owner. So a graph is optimised
once, and its tasks get unique names.
"""

from __future__ import annotations

import uuid
from asyncio import CancelledError
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dask._task_spec import Alias, GraphNode, convert_legacy_graph
from dask.base import compute, optimize
from dask.core import flatten
from dask.utils import ensure_dict
from distributed import Client, futures_of
from distributed.shuffle._core import P2PBarrierTask

from distboost.data.forks import check_default_scheduler
from distboost.errors import ClusterError, DataError, DistboostError

if TYPE_CHECKING:  # its import takes half a second and 14 MB: whoever has a dask array has paid for it
    import dask.array as da


class Cluster(NamedTuple):
    """A scheduler: the identifier that it has chosen, and an address at which it is reached."""

    id: str
    address: str

    @classmethod
    def of(cls, client: Client) -> Cluster:
        scheduler: Any = client.scheduler
        return cls(client.scheduler_info()["id"], str(scheduler.address))


class Keeper(NamedTuple):
    """The cluster that keeps a collection, which was persisted there, and the name of the collection in messages."""

    cluster: Cluster
    place: str
    client: Client

    def check_reader(self, reader: Cluster | None) -> None:
        """Raise DataError if another cluster (None: this process) is to read the collection."""
        if reader is not None and reader.id == self.cluster.id:
            return
        here = "this process" if reader is None else f"the cluster at {reader.address}"
        raise DataError(
            f"{self.place} was persisted on the cluster at {self.cluster.address}, but {here} is to read it. Use the client that "
            "persisted it, or pass the collection as it was before it was persisted."
        )


def keeper_of(collections: Mapping[str, Any]) -> Keeper | None:
    """Return what keeps the values of Dask collections that are read together, by name; None if none is persisted on a cluster.

    Raises
    ------
    DataError
        If different clusters keep them, or one whose client is closed.
    """
    found: Keeper | None = None
    for place, collection in collections.items():
        futures = futures_of(collection)
        if not futures:
            continue
        client: Client = futures[0].client
        if client.status != "running":
            raise DataError(
                f"{place} was persisted with a client that is {client.status} now, so its values are gone. Persist it with a "
                "connected client, or pass the collection as it was before it was persisted."
            )
        cluster = Cluster.of(client)
        if found is None:
            found = Keeper(cluster, place, client)
        found.check_reader(cluster)
    return found


def set_apart(
    arrays: Sequence[da.Array], places: Iterable[str], keeper: Keeper | None = None
) -> list[da.Array]:
    """Return the same arrays, with chunks of known sizes, in one separate graph that contains each common task once.

    Futures among the tasks keep their names: Dask keeps their data as long as the caller references the original arrays. The
    `keeper` keeps them.
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
    tasks = renamed(graph, mark)
    for key in (key for array in arrays for key in flatten(array.__dask_keys__()) if key not in graph):
        tasks[named(key, mark)] = Alias(named(key, mark), key)  # a future: a chunk that was persisted
    apart = [_array(array, tasks, named(array.name, mark)) for array in arrays]
    try:
        with nullcontext() if keeper is None else keeper.client.as_current():
            return _measured(apart)
    except (DistboostError, ValueError, TypeError):
        raise
    except (Exception, CancelledError) as error:
        raise ClusterError(
            f"the sizes of the chunks of {' or '.join(places)} cannot be computed: {type(error).__name__}: {error}"
        ) from error


def needed(graph: Mapping[Any, GraphNode], keys: Iterable[Any]) -> dict[Any, GraphNode]:
    """Return tasks, and those that they need."""
    tasks: dict[Any, GraphNode] = {}
    todo = list(keys)
    while todo:
        key = todo.pop()
        if key not in tasks and key in graph:
            tasks[key] = graph[key]
            todo += tasks[key].dependencies
    return tasks


def _array(like: da.Array, tasks: Mapping[Any, GraphNode], name: str) -> da.Array:
    """Return an array of other tasks in the same chunks."""
    return type(like)(tasks, name, like.chunks, meta=like._meta)


def renamed(graph: Mapping[Any, GraphNode], mark: str) -> dict[Any, GraphNode]:
    """Return the same tasks under other names, which they share only with tasks of the same mark."""
    names = {key: named(key, mark) for key in graph}
    return {names[key]: task.substitute(names, key=names[key]) for key, task in graph.items()}


def named(key: Any, mark: str) -> Any:
    """Return the name of a task with this mark."""
    return (named(key[0], mark), *key[1:]) if isinstance(key, tuple) else f"{key}-{mark}"


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
    if unknown:
        check_default_scheduler()
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
