"""Names of features: those of data frames, of xarray's coordinates, and of zarr's attribute `feature_names`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import zarr
from zarr.errors import ContainsArrayError, NodeTypeValidationError
from zarr.storage import FsspecStore, LocalStore, StorePath

from distboost.data.frames import as_frame, is_frame
from distboost.data.kinds import is_xarray
from distboost.data.listing import innermost
from distboost.errors import DataError, StoreError
from distboost.io.remote import may_be_absent
from distboost.io.retry import is_damage, quoted, retried
from distboost.io.storage import MANIFEST

ATTRIBUTE = "feature_names"


@dataclass(frozen=True)
class Named:
    """An array in memory with the names of its features.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features)
    names : ndarray of shape (n_features,), object
    """

    values: np.ndarray
    names: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def names_of(data: Any, place: str) -> np.ndarray | None:
    """Return the names of the features of anything that `fit` accepts, (n_features,) object, or None if they have none.

    As in scikit-learn, names are texts: columns without any text as a name have none.

    Raises
    ------
    TypeError
        If some names are texts and others are not.
    DataError
        If the attribute of a zarr array does not name its features.
    """
    if isinstance(data, Named):
        return data.names
    if isinstance(data, zarr.Array):
        return _attributed(data, place)
    return _texts(_labels_of(data, place), place)


def without_names(data: Any) -> Any:
    """Return the array within one of xarray (a NumPy or a dask array) or a `Named`; anything else as it is."""
    if isinstance(data, Named):
        return data.values
    return data.data if is_xarray(data) else data


def _labels_of(data: Any, place: str) -> list[Any]:
    """Return the labels of the columns of a frame, of any type."""
    if is_xarray(data):
        if data.ndim != 2 or data.dims[1] not in data.coords:
            return []
        return list(data.coords[data.dims[1]].values.tolist())
    if is_frame(data):
        return list(as_frame(data, place).columns)
    return list(getattr(data, "columns", ()))  # of Dask


def _texts(labels: list[Any], place: str) -> np.ndarray | None:
    n_texts = sum(isinstance(label, str) for label in labels)
    if not n_texts:
        return None
    if n_texts < len(labels):
        types = sorted({type(label).__qualname__ for label in labels})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but "
            f"{place} has {types} as feature name / column name types. If you want feature names to be stored and validated, you "
            "must convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you can remove "
            "feature / column names from your input data, or convert them all to a non-string data type."
        )
    return np.array(labels, dtype=object)


def _attributed(array: zarr.Array[Any], place: str) -> np.ndarray | None:
    """Return the names in the attribute of an array, or else of its group."""
    if array.ndim != 2:  # no table: its own error says so
        return None
    names, owner = array.attrs.get(ATTRIBUTE), "its attribute"
    if names is None:
        names, owner = _of_group(array, place), "the attribute of its group,"
    if names is None:
        return None
    n_features = array.shape[1]
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(n, str) for n in names):
        raise DataError(
            f"``{place}``: {owner} {ATTRIBUTE} is {str(names)!r:.100}, expected a list of {n_features} texts, one for each "
            "column. Correct it, or remove it."
        )
    return np.array(names, dtype=object)


def _of_group(array: zarr.Array[Any], place: str) -> Any:
    """Return the names in the attribute of the group that holds an array; None if it has none or there is no group."""
    group = _folder_of(array)
    if group is None:
        return None
    try:
        read = partial(
            zarr.open_group, group, mode="r", zarr_format=array.metadata.zarr_format, use_consolidated=False
        )
        attributes: dict[str, Any] = retried(
            read, f"the attributes of the group of ``{place}``"
        ).attrs.asdict()
        return attributes.get(ATTRIBUTE, attributes.get(MANIFEST, {}).get(ATTRIBUTE))
    except (FileNotFoundError, ContainsArrayError, NodeTypeValidationError):
        return None  # the array is not in a group
    except Exception as error:
        if may_be_absent(error):  # a server that has the array alone
            return None
        if not is_damage(error):
            raise
        raise StoreError(
            f"the attributes of the group of ``{place}``, which may name the features, cannot be used ({quoted(error)}). Restore "
            "them from a copy, or write them again."
        ) from error


def _folder_of(array: zarr.Array[Any]) -> StorePath | None:
    """Return the place of the group that holds an array."""
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
