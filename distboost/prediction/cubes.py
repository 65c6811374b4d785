"""Predictions for the cells of a cube: maps, whose numbers stand for classes as the CF conventions say, and arrays of Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from dask.delayed import delayed

from distboost.data.cells import Slot, whole_box
from distboost.data.checks import as_numbers
from distboost.data.labels import shown
from distboost.data.result import OutputArray
from distboost.data.source import Bounds, BoxSource, box_shape, load
from distboost.errors import DataError, LimitError
from distboost.inputs.base import BLOCK_BYTES
from distboost.inputs.cube import CubeInput
from distboost.inputs.dask_array import DaskSource
from distboost.inputs.forks import check_default_scheduler
from distboost.io.packages import missing
from distboost.prediction.predictor import Predictor
from distboost.runtime.cluster.cancelled import check_wanted, ends_if_unwanted
from distboost.threads import Threads

if TYPE_CHECKING:
    import dask.array as da

# Types of a map, each with the number for cells without data: the smallest that has room for all classes.
_TYPES = (
    ("uint8", 255),
    ("int16", -(2**15)),
    ("uint16", 2**16 - 1),
    ("int32", -(2**31)),
    ("int64", -(2**63)),
)


class Coding(NamedTuple):
    """How a map stands for classes.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Sorted.
    codes : ndarray of shape (n_classes,)
        The number of each class: the class itself, if all are whole numbers.
    nodata : int
        The number of cells without data.
    """

    classes: np.ndarray
    codes: np.ndarray
    nodata: int

    @classmethod
    def of(cls, classes: np.ndarray) -> Coding:
        """Return the coding of these classes; raise LimitError if no type has room for them."""
        is_whole = classes.dtype.kind in "iub" or (
            classes.dtype.kind == "f" and bool((classes == np.floor(classes)).all())
        )
        numbers = [int(one) for one in classes] if is_whole else [*range(len(classes))]
        for dtype, nodata in _TYPES:
            limits = np.iinfo(dtype)
            if limits.min <= min(numbers) and max(numbers) <= limits.max and nodata not in numbers:
                return cls(classes, np.array(numbers, dtype), nodata)
        raise LimitError(
            f"no type of a map holds the classes {shown(classes[0])} to {shown(classes[-1])} and a number for missing cells.",
            remedy="Train on smaller numbers, or on texts.",
        )

    def coded(self, labels: np.ndarray) -> np.ndarray:
        """Return the numbers of classes."""
        found: np.ndarray = self.codes[np.searchsorted(self.classes, labels)]
        return found

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a map by the CF conventions."""
        meanings = ("_".join(str(label).split()) or "_" for label in self.classes.tolist())
        return {
            "long_name": "class",
            "flag_values": self.codes.tolist(),
            "flag_meanings": " ".join(meanings),
            "_FillValue": self.nodata,
        }


class CellAnswers(NamedTuple):
    """Gives the answers for cells of a cube: those of a function of rows, or `nodata` where all features are missing.

    Attributes
    ----------
    function : callable
        function(rows) are the answers for some rows (n, n_features).
    shape : tuple of int
        Of the answer for one cell.
    dtype : numpy.dtype
    nodata : int or float
    coding : Coding or None
        What makes the numbers of a map of the answers, which are classes.
    """

    function: Callable[[np.ndarray], np.ndarray]
    shape: tuple[int, ...]
    dtype: np.dtype
    nodata: float
    coding: Coding | None = None

    def __call__(self, box: np.ndarray) -> np.ndarray:
        """Return the answers for the cells of a box, (..., *shape), of its features, (..., n_features)."""
        X = box.reshape(-1, box.shape[-1])
        present = np.flatnonzero(~_is_missing(X))
        out = np.full((len(X), *self.shape), self.nodata, self.dtype)
        if len(present):
            found = self.function(as_numbers(X[present], "X"))
            out[present] = found if self.coding is None else self.coding.coded(found)
        return out.reshape(box.shape[:-1] + self.shape)


def _is_missing(X: np.ndarray) -> np.ndarray:
    """Return which rows have no value, (n,) bool."""
    if X.dtype.kind != "f":
        return np.zeros(len(X), bool)
    found: np.ndarray = np.isnan(X).all(axis=1)
    return found


def check_cube(cube: CubeInput, n_features: int) -> None:
    """Raise DataError unless a cube has so many features."""
    if cube.n_features != n_features:
        raise DataError(
            f"{cube.place} has {cube.n_features} features, but the model is expecting {n_features} features as input.",
            where=cube.place,
            value=cube.n_features,
        )


@ends_if_unwanted
def predict_box(
    predictor: Predictor,
    answers: CellAnswers,
    slots: tuple[Slot, ...],
    dtype: np.dtype,
    bounds: Bounds,
    result: OutputArray,
    *parts: Any,
) -> None:
    """Write the answers for the cells within these bounds, whose features are in parts."""
    result.check_seen()

    def predicted(X: np.ndarray) -> np.ndarray:
        check_wanted()
        return predictor(X, Threads(1))

    shape = tuple(b - a for a, b in bounds)
    box = whole_box(shape, slots, dtype, *parts)
    values = answers._replace(function=predicted)(box)
    result.write_box(box_start(bounds, answers), values if not answers.shape else np.moveaxis(values, -1, 0))


def box_start(bounds: Bounds, answers: CellAnswers) -> tuple[int, ...]:
    """Return where the answers for a box begin in a written map: classes come first there, as the bands of images do."""
    return (0,) * len(answers.shape) + tuple(a for a, _ in bounds)


def lazy_map(cube: CubeInput, answers: CellAnswers, classes: np.ndarray) -> Any:
    """Return the answers for all cells as a DataArray of xarray over an array of Dask, with the coordinates of the cube."""
    try:
        import xarray as xr
    except ImportError as error:
        raise missing("a map of predictions", "xarray", "cubes") from error
    X: Any = _features(cube)
    mapped: da.Array = X.map_blocks(
        _applied,
        delayed(answers, pure=False),
        dtype=answers.dtype,
        chunks=(*X.chunks[:-1], *((length,) for length in answers.shape)),
        drop_axis=X.ndim - 1,
        new_axis=[X.ndim - 1 + n for n in range(len(answers.shape))] or None,
        meta=np.empty((0,) * (X.ndim - 1 + len(answers.shape)), answers.dtype),
    )
    of_classes = answers.shape == classes.shape
    more = ("class",) if of_classes else tuple(f"answer_{n}" for n in range(len(answers.shape)))
    coords: dict[str, Any] = {
        name: (one.dims, one.values, one.attributes) for name, one in cube.coords.items()
    }
    found = xr.Dataset({"answers": ((*cube.dims, *more), mapped)}, coords)
    if cube.is_encoded:
        found = xr.decode_cf(found)
    if of_classes:
        found = found.assign_coords({"class": classes})
    coded = {} if answers.coding is None else answers.coding.attributes()
    return (
        found["answers"]
        .rename(None if answers.coding is None else "label")
        .assign_attrs(cube.attributes | coded)
    )


def _applied(box: np.ndarray, answers: CellAnswers) -> np.ndarray:
    return answers(box)


def _features(cube: CubeInput) -> da.Array:
    """Return the features of all cells as a dask array, (*cells, n_features), in chunks of all features."""
    from dask.array import broadcast_to, concatenate

    check_default_scheduler()
    sizes = tile_shape(cube)
    found = []
    for raster, slot in zip(cube.rasters, cube.slots, strict=True):
        array = _as_dask(raster.source, cube.n_features)
        array = array[
            tuple(
                0 if axis is None and n != slot.feature_axis else slice(None)
                for n, axis in enumerate(slot.axes)
            )
        ]
        axes = [axis for n, axis in enumerate(slot.axes) if axis is not None or n == slot.feature_axis]
        order = [len(cube.dims) if axis is None else axis for axis in axes]
        array = array.transpose(*np.argsort(order))
        if slot.feature_axis is None:
            array, order = array[..., None], [*order, len(cube.dims)]
        index = tuple(slice(None) if n in order else None for n in range(len(cube.dims) + 1))
        array = broadcast_to(array[index], (*cube.shape, array.shape[-1]))
        found.append(array.rechunk((*sizes, -1)).astype(cube.dtype))
    joined: da.Array = concatenate(found, axis=-1).rechunk({len(cube.dims): -1})
    return joined


def tile_shape(cube: CubeInput) -> tuple[int, ...]:
    """Return how many cells are predicted together along each dimension: whole chunks of the features."""
    sizes = box_shape(cube.axes, BLOCK_BYTES // (8 * cube.n_features))
    return tuple(min(size, length) for size, length in zip(sizes, cube.shape, strict=True))


def _as_dask(source: BoxSource, n_features: int) -> da.Array:
    from dask.array import from_array

    if isinstance(source, DaskSource):
        lazy: da.Array = source.lazy
        return lazy
    shape = box_shape(source.axes, BLOCK_BYTES // (8 * n_features))
    sizes = [min(size, max(axis.length, 1)) for size, axis in zip(shape, source.axes, strict=True)]
    found: da.Array = from_array(_Boxes(source), chunks=tuple(sizes), lock=False, name=False, asarray=False)
    return found


class _Boxes:
    """A source as an array from which Dask takes boxes."""

    def __init__(self, source: BoxSource):
        self.source, self.shape, self.dtype, self.ndim = source, source.shape, source.dtype, len(source.shape)

    def __getitem__(self, key: tuple[slice, ...]) -> np.ndarray:
        bounds = tuple(one.indices(length)[:2] for one, length in zip(key, self.shape, strict=True))
        return load(self.source.box(bounds))
