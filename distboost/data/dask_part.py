"""Parts of dask arrays: the blocks that they need, each checked and cut by the task that computes it.

A dask array declares the type and the chunks of blocks that nobody has computed yet, and the declaration may be wrong: after a
left merge, for instance, Dask says int64 of a column whose rows are float64 with NaN. Dask itself would cast all blocks to the
type of the first. Here each block keeps its own type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dask._task_spec import GraphNode, Task, TaskRef
from dask.delayed import Delayed
from scipy.sparse import issparse

from distboost.data.graphs import Keeper, named, needed, renamed
from distboost.data.labels import joined_type
from distboost.data.masked import unmasked
from distboost.errors import DataError

if TYPE_CHECKING:
    import dask.array as da

# Kinds of NumPy's types whose values are of one sort. A block of objects may hold values of any sort.
_SORTS = ("iuf", "b", "USTO", "m", "M", "c")
_NUMBERS = "biufO"


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

    def values_of(self, chunk: Any) -> np.ndarray:
        """Return the values of a computed chunk; raise DataError unless they have this shape, and values of this sort."""
        values = dense(chunk, self.block)
        if values.shape != self.shape:
            raise DataError(
                f"{self.block} was computed to the shape {values.shape}, but the dask array says {self.shape}. Pass the function "
                "that makes it the chunks that it returns, as in map_blocks(function, chunks=...)."
            )
        if not self._allows(values.dtype):
            raise DataError(
                f"{self.block} was computed to the type {values.dtype}, but the dask array says {self.dtype}. Convert its "
                f"values, as in x.map_blocks(convert, dtype={str(self.dtype)!r}), or correct the type that the array declares."
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
                f"{self.block} was computed to the type {values.dtype}, but the dask array says {self.dtype}, which cannot hold "
                "its values. Correct the type that the array declares."
            )
        return converted


def dense(chunk: Any, what: str) -> np.ndarray:
    """Return a computed chunk as an array, masked values as missing ones; raise DataError if it is none."""
    if issparse(chunk) or not hasattr(chunk, "__array__"):
        raise no_dense_array(what, type(chunk))
    return np.asarray(unmasked(chunk))


def no_dense_array(what: str, kind: type) -> DataError:
    """Return the error for something of a dask array whose blocks are no arrays of NumPy."""
    convert = "block.toarray()" if kind.__module__.startswith("scipy.sparse") else "np.asarray(block)"
    return DataError(
        f"{what} is a {kind.__module__}.{kind.__qualname__}, not an array of NumPy. Make the blocks dense arrays, as in "
        f"x.map_blocks(lambda block: {convert}, dtype=x.dtype)."
    )


class Blocks(NamedTuple):
    """Rows of a dask array that are computed: cuts of its blocks, each of its own type.

    Attributes
    ----------
    shape : tuple of int
    places : tuple of tuple of int
        Where each cut begins.
    cuts : tuple of ndarray
    """

    shape: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    cuts: tuple[np.ndarray, ...]

    @property
    def dtype(self) -> np.dtype:
        """A type that holds the values of all cuts."""
        found = self.cuts[0].dtype
        for cut in self.cuts[1:]:
            found = joined_type(found, cut.dtype)
        return found

    def pieces(self) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
        """Yield the values of one cut at a time, all of one type, with their position."""
        dtype = self.dtype
        for place, cut in zip(self.places, self.cuts, strict=True):
            yield place, cut.astype(dtype, copy=False)

    def load(self) -> np.ndarray:
        """Return all values as one array."""
        if len(self.cuts) == 1:
            return self.cuts[0]
        out = np.empty(self.shape, self.dtype)
        for place, cut in zip(self.places, self.cuts, strict=True):
            out[tuple(slice(a, a + n) for a, n in zip(place, cut.shape, strict=True))] = cut
        return out


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

    def anywhere(self) -> Blocks:
        """Compute the blocks with the scheduler that Dask takes by default, or on the cluster that keeps them."""
        with nullcontext() if self.keeper is None else self.keeper.client.as_current():
            found: Blocks = self.task.compute(optimize_graph=False)
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
    for cuts in product(*along):
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


def _cut(chunk: Any, index: tuple[slice, ...], declared: Declared) -> np.ndarray:
    values = declared.values_of(chunk)
    cut = values[index]
    return cut.copy() if 2 * cut.size < values.size else cut  # a view keeps the whole chunk in memory


def _joined(shape: tuple[int, ...], places: tuple[tuple[int, ...], ...], *cuts: np.ndarray) -> Blocks:
    return Blocks(shape, places, cuts)
