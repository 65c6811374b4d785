"""Dask arrays, and what has one: computed chunk by chunk, where the rows are needed.

A scheduler identifies a task by its name. If each part of an array is optimised separately, the tasks that parts share differ but
have one name, and the scheduler fails. The same happens with other computations of the array's owner. So the graph of arrays that
are read together is optimised once, and its tasks get unique names.

A dask array declares the type and the chunks of blocks that nobody has computed yet, and the declaration may be wrong: after a
left merge, for instance, Dask says int64 of a column whose rows are float64 with NaN. Dask itself would cast all blocks to the
type of the first. Here each block keeps its own type.
"""

from __future__ import annotations

import itertools
import uuid
from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from dask._task_spec import Alias, GraphNode, Task, TaskRef, convert_legacy_graph
from dask.base import compute, is_dask_collection, optimize
from dask.core import flatten
from dask.delayed import Delayed, delayed
from dask.utils import ensure_dict
from distributed import Client, futures_of
from distributed.shuffle._core import P2PBarrierTask
from distributed.system import MEMORY_LIMIT
from scipy.sparse import hstack, issparse, vstack

from distboost.data.labels import joined_type
from distboost.data.source import Axis, Bounds, BoxSource, Source, assembled, load, spans
from distboost.data.sparse import SparseRows, sound
from distboost.errors import ClusterError, DataError, DistboostError
from distboost.inputs.array import unmasked
from distboost.inputs.base import BLOCK_BYTES, LazyInput, is_instance
from distboost.inputs.forks import check_default_scheduler

if TYPE_CHECKING:  # its import takes half a second and 14 MB: whoever has a dask array has paid for it
    import dask.array as da

# The largest part of the memory for an array in chunks of columns, which is kept in memory to assemble rows.
KEPT = 0.25
# Kinds of NumPy's types whose values are of one sort. A block of objects may hold values of any sort.
_SORTS = ("iuf", "b", "USTO", "m", "M", "c")
_NUMBERS = "biufO"


class DaskInput(LazyInput):
    """A collection of Dask."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return bool(is_dask_collection(data))

    def array(self, of_features: bool) -> da.Array:
        """Return the dask array. The sizes of its chunks may be unknown."""
        if is_instance(self.data, "dask.array", "Array"):
            meta = self.data._meta
            if not (isinstance(meta, np.ndarray) or (of_features and issparse(meta))):
                raise no_dense_array(f"each chunk of {self.place}", type(meta))
            return cast("da.Array", self.data)
        if of_features or not hasattr(type(self.data), "to_dask_array"):
            raise self.no_rows()
        return cast("da.Array", self.data.to_dask_array())

    def source(self, of_features: bool) -> Source:
        return read_together([(self, of_features)])[0]

    @cached_property
    def rows(self) -> da.Array:
        check_default_scheduler()
        array = self._measured_rows()
        return _whole_rows(array) if array.ndim == 2 else array

    def _measured_rows(self) -> da.Array:
        """Return the array of the features with chunks of known sizes, if that takes no reading."""
        return self.array(True)


def read_together(asked: Sequence[tuple[DaskInput, bool]]) -> list[DaskSource]:
    """Return sources of features (True) or of labels and the like. Tasks that they share are computed once."""
    given = {one.place: one.array(of_features) for one, of_features in asked}
    keeper = keeper_of(given)
    apart = set_apart([*given.values()], given, keeper)
    return [
        DaskSource(array, one.place, given[one.place], keeper, of_features)
        for array, (one, of_features) in zip(apart, asked, strict=True)
    ]


class DaskSource(BoxSource):
    """A dask array. Its rows are computed where they are needed, never all at once.

    Parameters
    ----------
    array : dask.array.Array
    place : str
    given : dask.array.Array
        The array from which `array` was made. This reference makes Dask keep the chunks that were persisted.
    keeper : Keeper or None
        What keeps these chunks, or those of an array that is read with it.
    of_features : bool
    """

    copies = 3  # its chunks, their slices, and the result
    comes_whole = True

    def __init__(self, array: Any, place: str, given: Any, keeper: Keeper | None, of_features: bool):
        self._array, self.place, self._keeper, self._of_features = array, place, keeper, of_features
        self._given = given
        self.shape, self.dtype = array.shape, array.dtype
        self.axes = tuple(_cut_axis(chunks) for chunks in array.chunks)
        self.chunk_bytes = self.bytes_of_chunk()

    @property
    def lazy(self) -> da.Array:
        """The array as it was passed."""
        array: da.Array = self._given
        return array

    def box(self, bounds: Bounds) -> DaskPart:
        return part_of(self._array, bounds, self.place, self._of_features, self._keeper)

    def loaded(self) -> np.ndarray:
        """Compute all rows by the scheduler that Dask takes by default, or on the cluster that keeps them."""
        task = self.part(0, self.n_rows).task
        with nullcontext() if self._keeper is None else self._keeper.client.as_current():
            found: Blocks = task.compute(optimize_graph=False)
        return found.load()

    def mark(self) -> Any:
        return self._given.name  # the same for equal arrays


def _cut_axis(chunks: tuple[int, ...]) -> Axis:
    cuts = tuple(sorted({0, *itertools.accumulate(chunks)}))
    return Axis(cuts[-1], max(max(chunks, default=1), 1), cuts)


def _whole_rows(array: da.Array) -> da.Array:
    """Return the array in chunks of whole rows.

    From chunks of columns, Dask makes these by computing all chunks and keeping them in memory. If they do not fit in memory, the
    chunks are computed again for each block of rows instead, and only that block is kept.
    """
    large = array.nbytes > MEMORY_LIMIT * KEPT  # False if its size is unknown
    if len(array.chunks[1]) < 2:
        return array
    from dask.array import blockwise, concatenate, from_delayed

    if not large or futures_of(array):  # Dask would cast all chunks to the type of the first
        width = {"k": array.shape[1]}
        options = {"dtype": array.dtype, "meta": array._meta, "new_axes": width, "concatenate": False}
        return cast("da.Array", blockwise(_side_by_side, "ik", array, "ij", **options))
    source = DaskInput(array, "X").features()
    step = source.rows_at_once(BLOCK_BYTES)
    stretches = source.axes[0].spans(0, source.n_rows, step)
    pieces = [piece for start, stop in stretches for piece in spans(start, stop, step)]
    # A part is computed by one task: Dask does not share its chunks with other tasks.
    compute = delayed(load, pure=False)
    joined: da.Array = concatenate(
        [from_delayed(compute(source.part(a, b)), (b - a, array.shape[1]), array.dtype) for a, b in pieces]
    )
    return joined


def _side_by_side(chunks: list[Any]) -> Any:
    """Return chunks of the same rows as one array of a type that holds the values of all; sparse if all are."""
    if all(map(issparse, chunks)):
        return hstack(chunks, format="csr")
    return np.concatenate([dense(chunk, "a block of X") for chunk in chunks], axis=1)


class Declared(NamedTuple):
    """What Dask says about a block, and the name of its array in messages."""

    shape: tuple[int, ...]
    dtype: np.dtype
    place: str
    position: tuple[int, ...]
    of_features: bool

    @property
    def block(self) -> str:
        return f"chunk {self.position} of {self.place}"

    def values_of(self, chunk: Any) -> Any:
        """Return the values of a computed chunk, as CSR if it is one of scipy.sparse.

        Raises
        ------
        DataError
            Unless they have this shape, and values of this sort.
        """
        values = (
            sound(chunk, self.block) if self.of_features and issparse(chunk) else dense(chunk, self.block)
        )
        if values.shape != self.shape:
            raise DataError(
                f"{self.block} was computed to the shape {values.shape}, but the dask array says {self.shape}.",
                remedy="Pass the function that makes it the chunks that it returns, as in map_blocks(function, chunks=...).",
            )
        if not self._allows(values.dtype):
            raise DataError(
                f"{self.block} was computed to the type {values.dtype}, but the dask array says {self.dtype}.",
                remedy=f"Convert its values, as in x.map_blocks(convert, dtype={str(self.dtype)!r}), or correct the type that "
                "the array declares.",
            )
        if values.dtype.kind in "mM" and values.dtype != self.dtype and self.dtype.kind in "mM":
            return self._in_declared_unit(values)
        return values

    def _allows(self, found: np.dtype) -> bool:
        if self.of_features:
            return found.kind in _NUMBERS or found.kind == self.dtype.kind
        if "O" in (found.kind, self.dtype.kind):
            return True
        return any(found.kind in sort and self.dtype.kind in sort for sort in _SORTS)

    def _in_declared_unit(self, values: np.ndarray) -> np.ndarray:
        converted = values.astype(self.dtype)
        if not np.array_equal(converted, values, equal_nan=True):
            raise DataError(
                f"{self.block} was computed to the type {values.dtype}, but the dask array says {self.dtype}, which cannot "
                "hold its values.",
                remedy="Correct the type that the array declares.",
            )
        return converted


def dense(chunk: Any, what: str) -> np.ndarray:
    """Return a computed chunk as an array, masked values as missing ones; raise DataError if it is none."""
    if issparse(chunk) or not hasattr(chunk, "__array__"):
        raise no_dense_array(what, type(chunk))
    return np.asarray(unmasked(chunk))


def block_rows(block: Any) -> np.ndarray | SparseRows:
    """Return a computed block of X, whose type nobody has declared."""
    what = "a block of X"
    return SparseRows(sound(block, what), what) if issparse(block) else dense(block, what)


def no_dense_array(what: str, kind: type) -> DataError:
    """Return the error for something of a dask array whose blocks are no arrays of NumPy."""
    convert = "block.toarray()" if kind.__module__.startswith("scipy.sparse") else "np.asarray(block)"
    return DataError(
        f"{what} is a {kind.__module__}.{kind.__qualname__}, not an array of NumPy.",
        remedy=f"Make the blocks dense arrays, as in x.map_blocks(lambda block: {convert}, dtype=x.dtype).",
    )


class Blocks(NamedTuple):
    """Rows of a dask array that are computed: cuts of its blocks, each of its own type.

    Attributes
    ----------
    shape : tuple of int
    places : tuple of tuple of int
        Where each cut begins.
    cuts : tuple of (ndarray, or csr_array or csr_matrix of scipy.sparse)
    """

    shape: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    cuts: tuple[Any, ...]

    def compressed(self) -> SparseRows | Blocks:
        """Return the rows in compressed form if all cuts are sparse; else these blocks."""
        if not (self.cuts and all(map(issparse, self.cuts))):
            return self
        bands: dict[int, list[Any]] = {}  # by the first row
        for place, cut in zip(self.places, self.cuts, strict=True):
            bands.setdefault(place[0], []).append(cut)
        rows = [band[0] if len(band) == 1 else hstack(band, format="csr") for band in bands.values()]
        return SparseRows(vstack(rows, format="csr"), "a part of X")

    @property
    def dtype(self) -> np.dtype:
        """A type that holds the values of all cuts."""
        found: np.dtype = self.cuts[0].dtype
        for cut in self.cuts[1:]:
            found = joined_type(found, cut.dtype)
        return found

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield the values of one cut at a time, all of one type, with their position; those of a sparse cut in pieces."""
        dtype = self.dtype
        for place, cut in zip(self.places, self.cuts, strict=True):
            whole = [((0,) * len(place), cut)]
            for within, values in SparseRows(cut, "X").pieces() if issparse(cut) else whole:
                at = tuple(a + b for a, b in zip(place, within, strict=True))
                yield at, values.astype(dtype, copy=False)

    def load(self) -> np.ndarray:
        """Return all values as one array."""
        return self.cuts[0] if len(self.cuts) == 1 and not issparse(self.cuts[0]) else assembled(self)


class DaskPart:
    """Some rows and columns of a dask array, which a task computes.

    Attributes
    ----------
    shape : tuple of int
    task : dask.delayed.Delayed
        Computes the `Blocks`.
    keeper : Keeper or None
        What keeps blocks of the array, or of one that is read with it.
    """

    def __init__(self, shape: tuple[int, ...], task: Delayed, keeper: Keeper | None):
        self.shape, self.task, self.keeper = shape, task, keeper

    def renamed(self, mark: str) -> Delayed:
        """Return the task with other names, which it shares only with parts of the same mark."""
        if not mark:
            return self.task
        return Delayed(named(self.task.key, mark), renamed(self.task.__dask_graph__(), mark))

    def computed(self) -> Blocks:
        """Compute the blocks, in this thread: the caller decides how many parts are computed at once."""
        if self.keeper is not None:
            self.keeper.check_reader(None)
        found: Blocks = self.task.compute(scheduler="synchronous", optimize_graph=False)
        return found

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield the values of one block at a time, with their position."""
        yield from self.computed().pieces()

    def load(self) -> np.ndarray:
        """Return the values as one array."""
        return self.computed().load()


def part_of(
    array: da.Array, bounds: Sequence[tuple[int, int]], place: str, of_features: bool, keeper: Keeper | None
) -> DaskPart:
    """Return a part of an array from `set_apart`: the items within these bounds along each axis.

    `place` is the name of the array in messages, `keeper` that of a `DaskPart`.
    """
    along = [list(_cuts(sizes, *span)) for sizes, span in zip(array.chunks, bounds, strict=True)]
    key = f"{array.name}-{'-'.join(f'{a}.{b}' for a, b in bounds)}"
    cut_tasks: dict[Any, GraphNode] = {}
    places: list[tuple[int, ...]] = []
    blocks: list[Any] = []
    for cuts in itertools.product(*along):
        position = tuple(cut.chunk for cut in cuts)
        blocks.append((array.name, *position))
        declared = Declared(tuple(cut.length for cut in cuts), array.dtype, place, position, of_features)
        name = f"{key}-{len(places)}"
        index = tuple(slice(cut.start, cut.stop) for cut in cuts)
        cut_tasks[name] = Task(name, _cut, TaskRef(blocks[-1]), index, declared)
        places.append(tuple(cut.place for cut in cuts))
    shape = tuple(b - a for a, b in bounds)
    joined = Task(key, _joined, shape, tuple(places), *map(TaskRef, cut_tasks))
    graph = {**needed(array.__dask_graph__(), blocks), **cut_tasks, key: joined}
    return DaskPart(shape, Delayed(key, graph), keeper)


class _Cut(NamedTuple):
    """The items start .. stop - 1 of a chunk of this `length` along one axis, and their place in the part."""

    chunk: int
    length: int
    start: int
    stop: int
    place: int


def _cuts(sizes: tuple[int, ...], start: int, stop: int) -> Iterator[_Cut]:
    first = 0
    for chunk, length in enumerate(sizes):
        a, b = max(start, first), min(stop, first + length)
        if a < b:
            yield _Cut(chunk, length, a - first, b - first, a - start)
        first += length


def _cut(chunk: Any, index: tuple[slice, ...], declared: Declared) -> Any:
    values = declared.values_of(chunk)
    cut = values[index]
    return cut.copy() if 2 * cut.size < values.size else cut  # a view keeps the whole chunk in memory


def _joined(shape: tuple[int, ...], places: tuple[tuple[int, ...], ...], *cuts: Any) -> Blocks:
    return Blocks(shape, places, cuts)


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
            f"{self.place} was persisted on the cluster at {self.cluster.address}, but {here} is to read it.",
            remedy="Use the client that persisted it, or pass the collection as it was before it was persisted.",
            where=self.place,
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
                f"{place} was persisted with a client that is {client.status} now, so its values are gone.",
                remedy="Persist it with a connected client, or pass the collection as it was before it was persisted.",
                where=place,
                value=client.status,
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
            f"{' or '.join(places)} is rechunked or shuffled peer to peer, which computes the whole array for any part of it.",
            remedy="Rechunk with method='tasks', or persist it.",
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
