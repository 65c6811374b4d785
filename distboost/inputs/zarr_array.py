"""Arrays of zarr, or paths and URLs of them: opened, named, and unpacked.

The attribute `feature_names`, of the array or of its group, names the columns. The attributes of the CF conventions say how an
array is packed: stored = (value - add_offset) / scale_factor, with marks of missing values.
"""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import zarr
from zarr.errors import ContainsArrayError, NodeTypeValidationError
from zarr.storage import FsspecStore, LocalStore, StorePath

from distboost.data.listing import described_group, innermost
from distboost.data.source import Source, at_hand, load
from distboost.data.sparse import SparseRows
from distboost.data.stored import Packing, ZarrSource
from distboost.data.stored_sparse import CSC, CSR, ENCODING
from distboost.errors import DataError, StoreError
from distboost.inputs.base import BLOCK_BYTES, Input, LazyInput
from distboost.inputs.forks import check_default_scheduler
from distboost.io.remote import may_be_absent
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import MANIFEST, found_group, is_binned, local_path, open_store

if TYPE_CHECKING:
    import dask.array as da

FEATURE_NAMES = "feature_names"
SCALE, OFFSET, MISSING = "scale_factor", "add_offset", ("_FillValue", "missing_value")
ANNDATA, MATRIX = "anndata", "X"
ENCODED = (ANNDATA, CSR, CSC, "categorical", "nullable-integer", "nullable-boolean", "nullable-string-array")
ATTRIBUTES = (SCALE, OFFSET, *MISSING, "_Unsigned")


class NoArray(NamedTuple):
    """What is at a path or URL, if it is not an array of zarr that can be opened. `error` says why."""

    url: str | os.PathLike[str]
    error: Exception
    is_binned: bool = False


class ZarrInput(LazyInput):
    """A zarr array."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return isinstance(data, (zarr.Array, zarr.Group, NoArray))

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        if isinstance(data, NoArray):
            raise data.error
        if isinstance(data, zarr.Group):
            raise DataError(f"{place}: {described_group(data)}", where=place)
        return cls(data, place)

    @cached_property
    def names(self) -> np.ndarray | None:
        return attributed(self.data, self.data.shape, self.place)

    def warnings(self, policy: str) -> list[str]:
        return self.features().warnings(policy)

    def source(self, of_features: bool) -> Source:
        return self._source

    @cached_property
    def _source(self) -> ZarrSource:  # one, so that it is listed once
        try:
            return ZarrSource(self.data, self.place, packed(self.data))
        except ValueError as error:
            source = ZarrSource(self.data, self.place)
            found = [name for name in ATTRIBUTES if name in self.data.attrs]
            source.warning = (
                f"{source.place} has the attributes {', '.join(found)} of a packed array, but cannot be decoded ({error}): its "
                "stored numbers are read as they are. Correct these attributes, or remove them."
            )
            return source

    @cached_property
    def rows(self) -> da.Array:
        self._source.inventory  # noqa: B018 (lists the array here, not in each process that reads)
        return chunkwise(self.features())


def chunkwise(source: Source) -> da.Array:
    """Return the dask array of a source."""
    from dask.array import from_array

    check_default_scheduler()
    chunks = (source.rows_at_once(BLOCK_BYTES), *source.shape[1:])
    found: da.Array = from_array(_Chunkwise(source), chunks=chunks, lock=False, name=False, asarray=False)
    return found


class _Chunkwise:
    """A source that reads blocks of rows chunk by chunk: zarr itself decodes all chunks of a block at once.

    Blocks of sparse rows are CSR of scipy.
    """

    def __init__(self, source: Source):
        self.source = source
        self.shape, self.dtype, self.ndim = source.shape, source.dtype, len(source.shape)

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        rows, *rest = key
        start, stop, _ = rows.indices(self.shape[0])
        found = at_hand(self.source.part(start, stop))
        return (found.matrix if isinstance(found, SparseRows) else load(found))[(slice(None), *rest)]


def at_path(url: str | os.PathLike[str], name: str) -> zarr.Array[Any] | zarr.Group | NoArray:
    """Return what is at a path or URL: an array of zarr, or a group that AnnData has encoded.

    Raises
    ------
    StoreError
        If nobody can tell.
    """
    name, place = f"``{name}``", repr(os.fspath(url))
    try:
        store = open_store(url)
        return retried(
            lambda: zarr.open_array(store, mode="r"), f"{name}: the metadata of the zarr array at {place}"
        )
    except (FileNotFoundError, NodeTypeValidationError) as error:
        refusal = getattr(store, "refusal", None)
        if is_binned(store):
            text = (
                f"{name}: {place} is a binned store, which has its own labels and weights. To train on it, pass it alone, "
                "without ``y`` and ``sample_weight``. For anything else, pass the array that it was made from."
            )
            return NoArray(url, DataError(text), is_binned=True)
        group = found_group(store)
        if group is not None and is_encoded(group):
            return encoded(group)
        if group is not None:
            return NoArray(url, DataError(f"{name}: {described_group(group)}", where=name))
        if refusal is not None:
            raise StoreError(
                f"{name}: the metadata of a zarr array at {place} cannot be read: {quoted(refusal)}.",
                remedy="Grant this process the right to read it, or correct the URL.",
                where=name,
            ) from refusal
        reason, more = quoted(error), ""
        path = local_path(url)
        if path is not None and path.is_dir():
            reason = "a folder without an array's zarr.json"
        elif path is not None and path.is_file():
            reason, more = "a file; an array is a folder", " A table is given as a data frame, in Python."
        text = f"there is no zarr array at {place} ({reason}). Pass the path or URL of an array, such as data.zarr/x.{more}"
        return NoArray(url, DataError(f"{name}: {text}", where=name, value=text))
    except Exception as error:
        if not is_damage(error):
            raise
        text = (
            f"{name}: the metadata of the zarr array at {place} cannot be used ({quoted(error)}). Write its zarr.json again or "
            "restore it from a copy. If it names a codec that is unknown here, install the library that has the codec."
        )
        return NoArray(url, StoreError(text))


def is_encoded(data: Any) -> bool:
    """Whether a zarr group is one that AnnData has encoded, and that has rows or labels."""
    return isinstance(data, zarr.Group) and data.attrs.get(ENCODING) in ENCODED


def encoded(group: zarr.Group) -> zarr.Array[Any] | zarr.Group:
    """Return what has the rows of such a group: the matrix X of a whole AnnData store, else the group itself."""
    found: Any = group[MATRIX] if group.attrs[ENCODING] == ANNDATA and MATRIX in group else group
    return cast("zarr.Array[Any] | zarr.Group", found)


def attributed(node: zarr.Array[Any] | zarr.Group, shape: tuple[int, ...], place: str) -> np.ndarray | None:
    """Return the names in the attribute of an array or a matrix, or else of its group; or those of the AnnData store it is in."""
    if len(shape) != 2:  # no table: its own error says so
        return None
    names, owner = node.attrs.get(FEATURE_NAMES), "its attribute"
    if names is None:
        names, owner = _of_group(node, place), "the attribute of its group,"
    if names is None:
        return None
    n_features = shape[1]
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        raise DataError(
            f"``{place}``: {owner} {FEATURE_NAMES} is {str(names)!r:.100}, expected a list of {n_features} texts, one for "
            "each column.",
            value=owner,
            remedy="Correct it, or remove it.",
        )
    return np.array(names, dtype=object)


def _of_group(array: zarr.Array[Any] | zarr.Group, place: str) -> Any:
    """Return the names in the attribute of the group that holds an array; None if it has none or there is no group."""
    group = folder_of(array)
    if group is None:
        return None
    try:
        read = partial(
            zarr.open_group, group, mode="r", zarr_format=array.metadata.zarr_format, use_consolidated=False
        )
        found = retried(read, f"the attributes of the group of ``{place}``")
        attributes: dict[str, Any] = found.attrs.asdict()
        if attributes.get(ENCODING) == ANNDATA:
            return _names_of_var(found)
        if attributes.get(ENCODING) == "dict":  # the layers of an AnnData store
            return _of_group(found, place)
        return attributes.get(FEATURE_NAMES, attributes.get(MANIFEST, {}).get(FEATURE_NAMES))
    except (FileNotFoundError, ContainsArrayError, NodeTypeValidationError):
        return None  # the array is not in a group
    except Exception as error:
        if may_be_absent(error):  # a server that has the array alone
            return None
        if not is_damage(error):
            raise
        raise StoreError(
            f"the attributes of the group of ``{place}``, which may name the features, cannot be used ({quoted(error)}).",
            remedy="Restore them from a copy, or write them again.",
            where=place,
        ) from error


def _names_of_var(store: zarr.Group) -> list[str] | None:
    """Return the names of the features of an AnnData store; None if it has none."""
    var: Any = store.get("var")
    index = var.get(str(var.attrs.get("_index", "_index"))) if isinstance(var, zarr.Group) else None
    return np.asarray(index[:]).tolist() if isinstance(index, zarr.Array) else None


def folder_of(array: zarr.Array[Any] | zarr.Group) -> StorePath | None:
    """Return the place of the group that holds an array, or a group."""
    if array.path:
        return StorePath(array.store, array.path.rpartition("/")[0])
    store = innermost(array.store)
    if isinstance(store, LocalStore) and store.root.absolute().parent != store.root.absolute():
        return StorePath(LocalStore(store.root.absolute().parent, read_only=True))
    if isinstance(store, FsspecStore):
        folder = store.path.rstrip("/").rpartition("/")[0]
        if folder and not folder.endswith("/"):  # otherwise what follows is the name of a server
            return StorePath(FsspecStore(store.fs, read_only=True, path=folder))
    return None


def packed(array: zarr.Array[Any]) -> Packing | None:
    """Return how a zarr array is packed. In format 2, xarray writes `_FillValue` as the array's own fill value."""
    attributes = array.attrs.asdict()
    if array.metadata.zarr_format == 2 and "_ARRAY_DIMENSIONS" in attributes and array.fill_value is not None:
        attributes = {MISSING[0]: np.asarray(array.fill_value).item(), **attributes}
    return packing_of(attributes, np.dtype(array.dtype))


def packing_of(attributes: Mapping[str, Any], dtype: np.dtype) -> Packing | None:
    """Return how an array of numbers is packed, as its attributes say; None if it is not packed.

    Raises
    ------
    ValueError
        If an attribute cannot be used.
    """
    found = {name: attributes[name] for name in ATTRIBUTES if name in attributes}
    if dtype.kind not in "iuf" or not found:
        return None
    if "_Unsigned" in found:
        raise ValueError("_Unsigned gives the stored numbers another type")
    scale, offset = _number(found.get(SCALE, 1.0), SCALE), _number(found.get(OFFSET, 0.0), OFFSET)
    marks = [(name, found[name]) for name in MISSING if name in found]
    numbers = {
        _number(one, name) for name, value in marks for one in (value if isinstance(value, list) else [value])
    }
    missing = tuple(sorted(number for number in numbers if number == number))  # NaN is missing anyway
    if scale == 1 and offset == 0:
        if not missing:
            return None
        return Packing(1.0, 0.0, missing, dtype if dtype.kind == "f" else np.dtype(np.float64))
    return Packing(float(scale), float(offset), missing, np.dtype(np.float64))


def _number(value: Any, name: str) -> float:
    """Return the number in an attribute. xarray writes one of a floating-point array as text: the base64 of its bytes."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        try:
            [number] = struct.unpack("<d", base64.b64decode(value, validate=True))
            return float(number)
        except (ValueError, struct.error):
            pass
    raise ValueError(f"{name} is {value!r:.100}, not a number")
