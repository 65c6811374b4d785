"""Cubes: rasters of which each is a feature, or a raster that has its features along one of its dimensions.

A raster is an array whose dimensions have names: an array of xarray, or one of zarr with dimension names, also of OME-Zarr. A row
is a cell of the dimensions that hold no features.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import zarr

from distboost.data.cells import Slot
from distboost.data.checks import refuse_date_types
from distboost.data.result import DIMENSIONS
from distboost.data.source import ArraySource, Axis, Bounds, BoxSource, Source
from distboost.data.stored import ZarrSource
from distboost.errors import DataError
from distboost.inputs.array import unmasked
from distboost.inputs.base import Input, is_instance, texts
from distboost.inputs.dask_array import DaskInput
from distboost.inputs.zarr_array import MISSING, OFFSET, SCALE, NoArray, ZarrInput, at_path, folder_of, packed
from distboost.io.packages import missing
from distboost.io.remote import is_unlisted
from distboost.io.storage import found_group, open_store

GRID_MAPPING = "grid_mapping"
_NO_FEATURES = (
    "coordinates",
    "bounds",
    "ancillary_variables",
)  # attributes that name variables beside the values


class Coordinate(NamedTuple):
    """A coordinate, or a grid mapping, which is one without dimensions."""

    dims: tuple[str, ...]
    values: Any
    attributes: dict[str, Any]

    @property
    def encoding(self) -> tuple[Any, ...]:
        """How its values are times, by the CF conventions: the same numbers may be others."""
        units = self.attributes.get("units")
        return (units, self.attributes.get("calendar")) if " since " in str(units) else ()

    def decoded(self) -> np.ndarray:
        """Return its values, those that are times as such."""
        if not self.encoding:
            return np.asarray(self.values)
        try:
            import xarray as xr
        except ImportError as error:
            raise missing("times in different units", "xarray", "cubes") from error
        return np.asarray(xr.decode_cf(xr.Dataset(coords={"time": self}))["time"].values)


@dataclass(frozen=True)
class Raster:
    """An array whose dimensions have names.

    Attributes
    ----------
    place : str
        Its name in messages.
    dims : tuple of str
    source : BoxSource
    coords : mapping of str to Coordinate
    attributes : mapping of str to object
    channels : list of str or None
        The names along the dimension `channel`, if the array is an image.
    channel : str or None
        The dimension of an image's channels.
    """

    place: str
    dims: tuple[str, ...]
    source: BoxSource
    coords: Mapping[str, Coordinate]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    channels: list[str] | None = None
    channel: str | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each dimension."""
        return dict(zip(self.dims, self.source.shape, strict=True))

    @property
    def marks(self) -> tuple[Any, ...]:
        """The values that its attributes mark as missing, if it is read without their being decoded."""
        found = [self.attributes[name] for name in MISSING if name in self.attributes]
        return tuple(one for value in found for one in np.ravel(value).tolist())

    def slot(self, dims: tuple[str, ...], feature_dim: str | None = None, first: int = 0) -> Slot:
        """Return where its values belong in a cube of these dimensions, whose column `first` is its first."""
        if feature_dim is None:
            return Slot(self._axes(dims), None, (first, first + 1))
        return Slot(self._axes(dims), self.dims.index(feature_dim), (first, first + self.sizes[feature_dim]))

    def _axes(self, dims: tuple[str, ...]) -> tuple[int | None, ...]:
        return tuple(dims.index(dim) if dim in dims else None for dim in self.dims)


def raster_of(data: Any, place: str, like: CubeInput | None = None, decoded: bool = True) -> Raster:
    """Return the raster that a user passed, also by path or URL.

    Parameters
    ----------
    data : Any
    place : str
        Its name in messages.
    like : CubeInput or None
        An array without names of dimensions has those of this cube.
    decoded : bool
        Whether whole numbers with marks of missing ones become NaN, as features do. Labels stay whole: see `Raster.marks`.
    """
    if isinstance(data, (str, os.PathLike)):
        data = at_path(data, place)
    if isinstance(data, NoArray):
        raise data.error
    if isinstance(data, zarr.Array):
        dims = dims_of(data)
        if dims is None:
            raise DataError(
                f"``{place}`` ({data.store_path}) has no names of dimensions.",
                remedy="Write it with ``dimension_names``, or pass an array of xarray.",
            )
        return _of_zarr(data, dims, place, decoded)
    if is_instance(data, "xarray", "DataArray"):
        if {SCALE, OFFSET} & data.attrs.keys() or (decoded and set(MISSING) & data.attrs.keys()):
            data = _unpacked(data, place)
        coords = {str(name): _coordinate(one) for name, one in data.coords.items()}
        attributes = {**data.attrs, **{k: v for k, v in data.encoding.items() if k == GRID_MAPPING}}
        return Raster(place, tuple(map(str, data.dims)), _source(_loadable(data), place), coords, attributes)
    source = _source(data, place)
    if like is None or source.shape != like.shape:
        expected = "an array with names of dimensions" if like is None else f"the shape {like.shape} of X"
        raise DataError(
            f"{place} has the shape {source.shape}, expected {expected}.",
            remedy="Pass an array of xarray.",
            where=place,
            value=source.shape,
        )
    return Raster(place, like.dims, source, {})


def _unpacked(data: Any, place: str) -> Any:
    """Return an array of xarray that was opened without decoding, as its attributes say."""
    from xarray.conventions import decode_cf_variable

    for name in (SCALE, OFFSET, *MISSING):
        if np.asarray(data.attrs.get(name, 0)).dtype.kind not in "iuf":
            raise DataError(
                f"{place} has the attribute {name}={data.attrs[name]!r:.100}, which is no number.",
                remedy="Correct it, or pass the array as xarray decodes it.",
                where=place,
                value=data.attrs[name],
            )
    return data.copy(data=decode_cf_variable(place, data.variable, decode_times=False).data)


def _coordinate(one: Any) -> Coordinate:
    values = one.data if one.ndim > 1 else one.values  # those of two dimensions may be as large as the cube
    return Coordinate(tuple(map(str, one.dims)), values, dict(one.attrs))


def _loadable(data: Any) -> Any:
    """Return the array in an array of xarray. What xarray would load as a whole becomes one of Dask."""
    is_opened = {"preferred_chunks", "original_shape"} & data.encoding.keys()
    if data.chunks is not None or not is_opened:
        return data.data
    chunks = data.encoding.get("preferred_chunks", {})
    return data.chunk({dim: chunks.get(dim, "auto") for dim in data.dims}).data


def _source(data: Any, place: str) -> BoxSource:
    found = (
        DaskInput(data, place).source(False)
        if DaskInput.recognises(data)
        else ArraySource(np.asarray(unmasked(data)), place)
    )
    assert isinstance(found, BoxSource)
    return found


def dims_of(array: zarr.Array[Any]) -> tuple[str, ...] | None:
    """Return the names of the dimensions of a zarr array; None if it does not have one for each."""
    names: Any = getattr(array.metadata, "dimension_names", None) or array.attrs.get(DIMENSIONS)
    if names is None:
        names = [axis.get("name") for axis in _image(array).get("axes", [])]
    whole = len(names) == array.ndim and all(isinstance(name, str) for name in names)
    return tuple(names) if whole and len(set(names)) == array.ndim else None


def _of_zarr(array: zarr.Array[Any], dims: tuple[str, ...], place: str, decoded: bool) -> Raster:
    attributes = array.attrs.asdict()
    kind, found = np.dtype(array.dtype).kind, ZarrInput(array, place).source(False)
    is_packed = bool({SCALE, OFFSET} & attributes.keys())
    if kind in "iuf":  # of which the source decodes the marks
        attributes = {name: value for name, value in attributes.items() if name not in MISSING}
    if kind in "iu" and not is_packed and not decoded:
        found = ZarrSource(array, place)
        attributes[MISSING[0]] = _marks(array, place)
    assert isinstance(found, BoxSource)
    image = _image(array)
    channel = next((a["name"] for a in image.get("axes", []) if a.get("type") == "channel"), None)
    channels = [str(one.get("label")) for one in image.get("channels", [])] or None
    return Raster(place, dims, found, _coordinates(array, dims), attributes, channels, channel)


def _marks(array: zarr.Array[Any], place: str) -> list[float]:
    try:
        packing = packed(array)
    except ValueError as error:
        raise DataError(
            f"``{place}`` ({array.store_path}): {error}.",
            remedy="Correct its attributes, or pass the array as xarray decodes it.",
        ) from error
    return [] if packing is None else list(packing.missing)


def _group_of(array: zarr.Array[Any]) -> zarr.Group | None:
    return found_group(folder_of(array))


def _image(array: zarr.Array[Any]) -> dict[str, Any]:
    """Return the axes and the channels of the OME-Zarr image of which an array is a level."""
    group = _group_of(array)
    attributes: Any = {} if group is None else group.attrs.asdict()
    attributes = attributes.get("ome", attributes)
    levels = attributes.get("multiscales") or [{}]
    return {"axes": levels[0].get("axes", []), "channels": attributes.get("omero", {}).get("channels", [])}


def _coordinates(array: zarr.Array[Any], dims: tuple[str, ...]) -> dict[str, Coordinate]:
    """Return the arrays beside an array that are its coordinates, of one dimension at most, or its grid mapping."""
    group, attributes = _group_of(array), array.attrs.asdict()
    beside = f"{attributes.get('coordinates', '')} {attributes.get(GRID_MAPPING, '')}".split()
    if group is None:
        return {}
    wanted = [name.rstrip(":") for name in (*dims, *beside)]
    found = {name: group[name] for name in wanted if name in group}
    sizes = dict(zip(dims, array.shape, strict=True))
    arrays = {name: (one, dims_of(one) or ()) for name, one in found.items() if isinstance(one, zarr.Array)}
    return {
        name: Coordinate(own, np.asarray(one[...]), _plain(one))
        for name, (one, own) in arrays.items()
        if one.ndim < 2 and one.path != array.path and one.shape == tuple(map(sizes.get, own))
    }


def _plain(array: zarr.Array[Any]) -> dict[str, Any]:
    """Return the attributes of a coordinate, which has no missing values, without xarray's marks."""
    marks = {DIMENSIONS, *MISSING}
    return {name: value for name, value in array.attrs.asdict().items() if name not in marks}


def has_dims(data: Any) -> bool:
    """Whether `data` has names of dimensions."""
    if isinstance(data, zarr.Array):
        return dims_of(data) is not None
    return is_instance(data, "xarray", "DataArray") or CubeInput.recognises(data)


class CubeInput(Input):
    """Rasters on the same cells.

    Parameters
    ----------
    data : Any
        What the user passed.
    place : str
    rasters : list of Raster
    feature_dim : str or None
        The dimension along which the only raster has its features. None: each raster is a feature.
    names : ndarray of shape (n_features,), object, or None
    """

    def __init__(
        self, data: Any, place: str, rasters: list[Raster], feature_dim: str | None, names: np.ndarray | None
    ):
        super().__init__(data, place, names)
        self.rasters, self.feature_dim = rasters, feature_dim
        sizes: dict[str, int] = {}
        for raster in rasters:
            refuse_date_types(raster.source.dtype, raster.place)
            if raster.source.dtype.kind in "UST":
                raise DataError(
                    f"{raster.place} has texts, which are no numbers.",
                    remedy="Encode them, or leave the variable out.",
                    where=raster.place,
                )
            for dim, length in raster.sizes.items():
                if sizes.setdefault(dim, length) != length:
                    raise DataError(
                        f"{raster.place} has {length} cells along {dim!r}, but {rasters[0].place} has {sizes[dim]}.",
                        remedy="Pass rasters of the same cells.",
                        where=raster.place,
                        value=dim,
                    )
        sizes.pop(feature_dim or "", None)
        self.dims, self.shape = tuple(sizes), tuple(sizes.values())
        if not sizes:
            raise DataError(
                f"{place} has no dimension besides {feature_dim!r}.",
                remedy="Pass one with cells.",
                where=place,
                value=feature_dim,
            )
        self.coords = {
            name: one
            for raster in rasters
            for name, one in raster.coords.items()
            if set(one.dims) <= set(self.dims)
        }
        mappings = [r.attributes[GRID_MAPPING] for r in rasters if GRID_MAPPING in r.attributes]
        self.attributes = {GRID_MAPPING: mappings[0]} if mappings else {}

    @classmethod
    def recognises(cls, data: Any) -> bool:
        if isinstance(data, zarr.Array):
            return data.ndim > 2 and dims_of(data) is not None
        if is_instance(data, "xarray", "DataArray"):
            return bool(data.ndim > 2)
        return is_instance(data, "xarray", "Dataset") or bool(_variables(_group(data)))

    @classmethod
    def of(cls, data: Any, place: str) -> CubeInput:
        return cls.along(data, place, None)

    @classmethod
    def along(cls, data: Any, place: str, feature_dim: str | None) -> CubeInput:
        """Return the cube in an array or several, whose features are along this dimension; None: each array is one."""
        several = _dataset(data, place)
        if several is not None:
            rasters = list(several.values())
            if any(feature_dim in raster.dims for raster in rasters):
                raise DataError(
                    f"{place} has the variables {_listed(several)}, each of which is a feature: ``feature_dim`` cannot be "
                    f"{feature_dim!r}.",
                    remedy="Pass one variable, or leave out ``feature_dim``.",
                    where=place,
                    value=feature_dim,
                )
            if not rasters:
                raise DataError(
                    f"{place} has no variable with cells.",
                    remedy="Pass one with a variable for each feature.",
                    where=place,
                )
            return cls(data, place, rasters, None, texts(list(several), place))
        raster = raster_of(data, place)
        chosen = raster.channel if feature_dim is None else feature_dim
        if chosen not in raster.dims:
            raise DataError(
                f"{place} has the dimensions {_listed(raster.dims)}, "
                + (
                    "and no ``feature_dim``."
                    if chosen is None
                    else f"none of which is {chosen!r}, the ``feature_dim``."
                ),
                remedy=f"Set that of the features: ``feature_dim={raster.dims[0]!r}``, for instance.",
                where=place,
                value=chosen,
            )
        return cls(data, place, [raster], chosen, _names_along(raster, str(chosen)))

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.rasters) if self.feature_dim is None else self.rasters[0].sizes[self.feature_dim]

    def ordered(self, names: np.ndarray | None) -> CubeInput:
        """Return the same variables in the order of these names, if they have these names: a dataset's have no order."""
        if self.feature_dim is not None or names is None or self.names is None:
            return self
        known = dict(zip(self.names.tolist(), self.rasters, strict=True))
        if known.keys() != set(names.tolist()):
            return self
        return CubeInput(self.data, self.place, [known[name] for name in names], None, names)

    @cached_property
    def slots(self) -> list[Slot]:
        """Where the values of each raster belong."""
        return [raster.slot(self.dims, self.feature_dim, first) for first, raster in enumerate(self.rasters)]

    @property
    def sources(self) -> list[BoxSource]:
        """Those of the rasters."""
        return [raster.source for raster in self.rasters]

    @cached_property
    def axes(self) -> list[Axis]:
        """The chunks along each dimension."""
        return cell_axes(self.shape, self.sources, self.slots)

    @property
    def is_encoded(self) -> bool:
        """Whether the coordinates are stored numbers, which the CF conventions decode."""
        return not is_instance(self.data, "xarray", "DataArray", "Dataset")

    @cached_property
    def dtype(self) -> np.dtype:
        """A type that holds the values of all features."""
        return np.result_type(*(raster.source.dtype for raster in self.rasters))

    def source(self, of_features: bool) -> Source:
        raise DataError(
            f"{self.place} is a cube of the dimensions {_listed(self.dims)}: it has no rows without labels.",
            remedy="Pass ``y``, a raster of labels, or make rows of its cells first.",
            where=self.place,
        )

    def warnings(self, policy: str) -> list[str]:
        return [message for raster in self.rasters for message in raster.source.warnings(policy)]

    def aligned(self, data: Any, place: str, decoded: bool = True) -> Raster:
        """Return a raster of one value for each cell.

        Raises
        ------
        DataError
            If it has other dimensions, or other coordinates.
        """
        raster = raster_of(data, place, self, decoded)
        sizes, own = raster.sizes, dict(zip(self.dims, self.shape, strict=True))
        other = [dim for dim in sizes.keys() - own.keys() if sizes[dim] > 1]
        other += [dim for dim in own.keys() - sizes.keys() if own[dim] > 1]
        if other:
            raise DataError(
                f"{place} has the dimensions {_listed(raster.dims)}, but the cells of {self.place} have {_listed(self.dims)}.",
                remedy="Pass a raster with one value for each cell.",
                where=place,
            )
        for dim in own.keys() & sizes.keys():
            if sizes[dim] != own[dim]:
                raise DataError(
                    f"{place} has {sizes[dim]} cells along {dim!r}, but {self.place} has {own[dim]}.",
                    remedy="Pass rasters of the same cells.",
                    where=place,
                    value=dim,
                )
            _check_same(raster.coords.get(dim), self.coords.get(dim), dim, (place, self.place))
        return raster


def _check_same(
    mine: Coordinate | None, theirs: Coordinate | None, dim: str, places: tuple[str, str]
) -> None:
    """Raise DataError if two arrays have other coordinates along a dimension. One that has none follows the other."""
    if mine is None or theirs is None:
        return
    ours, others = mine.values, theirs.values
    if mine.encoding != theirs.encoding:
        ours, others = mine.decoded(), theirs.decoded()
    differ = np.flatnonzero(np.asarray(ours != others))
    if len(differ):
        n = int(differ[0])
        raise DataError(
            f"the coordinates of {places[0]} and {places[1]} differ along {dim!r}: item {n} is {ours[n]} in the one and "
            f"{others[n]} in the other, {len(differ)} differ.",
            remedy="Pass rasters of the same cells, as ``labels.reindex_like(dataset)`` makes them.",
            value=dim,
        )


def _names_along(raster: Raster, dim: str) -> np.ndarray | None:
    """Return the names of the features along a dimension: its coordinate, or an image's channels."""
    if dim in raster.coords:
        return texts(raster.coords[dim].values.tolist(), raster.place)
    known = raster.channels if dim == raster.channel else None
    return np.array(known, dtype=object) if known and len(known) == raster.sizes[dim] else None


def _dataset(data: Any, place: str) -> dict[str, Raster] | None:
    """Return the features of a dataset by name; None for a single array."""
    if is_instance(data, "xarray", "Dataset"):
        mapped = {
            one.encoding.get(GRID_MAPPING, one.attrs.get(GRID_MAPPING)) for one in data.data_vars.values()
        }
        with_mapping = data.set_coords([name for name in data.data_vars if name in mapped])
        return {
            str(name): raster_of(one, f"{place}[{name!r}]")
            for name, one in with_mapping.data_vars.items()
            if one.ndim
        }
    group = _group(data)
    if group is None:
        return None
    found = _variables(group)
    return {name: _of_zarr(one, dims, f"{place}[{name!r}]", True) for name, (one, dims) in found.items()}


def _group(data: Any) -> zarr.Group | None:
    """Return a group of zarr arrays, also by its path; None if it is something else."""
    if isinstance(data, NoArray):
        return None if data.is_binned else found_group(open_store(data.url))
    return data if isinstance(data, zarr.Group) else None


def _variables(group: zarr.Group | None) -> dict[str, tuple[zarr.Array[Any], tuple[str, ...]]]:
    """Return the arrays of a group that are features, with their dimensions, as xarray writes a dataset."""
    arrays = _arrays(group)
    known = {name: (one, dims_of(one)) for name, one in arrays.items()}
    attributes = [one.attrs.asdict() for one in arrays.values()]
    named = " ".join(str(found.get(key, "")) for found in attributes for key in (*_NO_FEATURES, GRID_MAPPING))
    beside = {*named.replace(":", " ").split(), *(dim for _, dims in known.values() for dim in dims or ())}
    return {name: (one, dims) for name, (one, dims) in sorted(known.items()) if dims and name not in beside}


def _arrays(group: zarr.Group | None) -> dict[str, zarr.Array[Any]]:
    """Return the arrays of a group; none, if its store cannot list them."""
    try:
        return {} if group is None else dict(group.arrays())
    except Exception as error:
        if not is_unlisted(error):
            raise
        return {}


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(repr, names))


def cell_axes(shape: tuple[int, ...], sources: list[BoxSource], slots: list[Slot]) -> list[Axis]:
    """Return the chunks along each dimension of a cube: those of the largest array that has it."""
    axes = [Axis(length, max(length, 1)) for length in shape]
    for source, slot in sorted(zip(sources, slots, strict=True), key=lambda pair: math.prod(pair[0].shape)):
        for axis, dim in zip(source.axes, slot.axes, strict=True):
            if dim is not None:
                axes[dim] = axis
    return axes


def of_source(bounds: Bounds, slot: Slot, span: tuple[int, int]) -> Bounds:
    """Return the bounds in an array of a box of the cube, with these features of it."""
    found = [(0, 1) if axis is None else bounds[axis] for axis in slot.axes]
    if slot.feature_axis is not None:
        found[slot.feature_axis] = span
    return tuple(found)


def divided_by_chunks(
    sources: list[BoxSource], slots: list[Slot]
) -> Iterator[tuple[BoxSource, Slot, tuple[int, int]]]:
    """Yield each source with a slot, and the features, for each of its chunks of features."""
    for source, slot in zip(sources, slots, strict=True):
        if slot.feature_axis is None:
            yield source, slot, (0, 1)
            continue
        axis, first = source.axes[slot.feature_axis], slot.columns[0]
        for a, b in axis.spans(0, axis.length, 1):
            yield source, slot._replace(columns=(first + a, first + b)), (a, b)
