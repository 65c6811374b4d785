"""The choice of the adapter: after it, nobody asks what a user has passed."""

from __future__ import annotations

import os
from typing import Any

from distboost.data.dataset import RawDataset
from distboost.inputs.anndata import AnnDataInput, EncodedInput
from distboost.inputs.array import ArrayInput
from distboost.inputs.base import Input
from distboost.inputs.binned_store import StoreInput
from distboost.inputs.cube import CubeInput, has_dims
from distboost.inputs.dask_array import DaskInput, read_together
from distboost.inputs.dask_frame import DaskFrameInput
from distboost.inputs.frame import FrameInput
from distboost.inputs.parquet import ParquetInput, is_parquet, parquet_at
from distboost.inputs.sparse import SparseInput
from distboost.inputs.xarray import XarrayInput
from distboost.inputs.zarr_array import ZarrInput, at_path

# The first that recognises a container adapts it.
ADAPTERS: tuple[type[Input], ...] = (
    CubeInput,
    StoreInput,
    EncodedInput,
    ZarrInput,
    ParquetInput,
    XarrayInput,
    AnnDataInput,
    DaskFrameInput,
    DaskInput,
    FrameInput,
    SparseInput,
    ArrayInput,
)


def adapter_of(data: Any, place: str, feature_dim: str | None = None) -> Input:
    """Return the adapter of anything that `fit` accepts as rows, labels or weights.

    `place` is its name in messages; `feature_dim` the dimension of its features, if it has names of dimensions.
    """
    if isinstance(data, Input):
        return data
    found = opened(data, place) if isinstance(data, (str, os.PathLike)) else data
    if feature_dim is not None and has_dims(found):
        return CubeInput.along(found, place, feature_dim)
    return next(kind for kind in ADAPTERS if kind.recognises(found)).of(found, place)


def opened(url: str | os.PathLike[str], place: str) -> Any:
    """Return what is at a path or URL: Parquet files, by its name, or an array of zarr."""
    return parquet_at(url, place) if is_parquet(url) else at_path(url, place)


def dataset_of(X: Any, y: Any, sample_weight: Any = None) -> RawDataset:
    """Return labelled rows, given as to `fit` or as adapters of it. Tasks that dask arrays among them share are computed once."""
    x, labels = adapter_of(X, "X"), adapter_of(y, "y")
    weights = None if sample_weight is None else adapter_of(sample_weight, "sample_weight")
    of_dask = {one.place: (one, one is x) for one in (x, labels, weights) if isinstance(one, DaskInput)}
    apart = dict(zip(of_dask, read_together([*of_dask.values()]), strict=True))
    of_x, of_y = x.features(apart.get(x.place)), labels.column(apart.get(labels.place))
    of_weights = None if weights is None else weights.column(apart.get(weights.place))
    return RawDataset(of_x, of_y, of_weights, x.names)
