"""Raw rows at a path or URL: an array, or a binned store that has its values."""

from __future__ import annotations

import os
from typing import Any

import zarr

from distboost.data.sources import BinnedStoreGivenError, open_zarr
from distboost.data.store.store import BinnedStore


def open_rows(url: str | os.PathLike[str], name: str) -> zarr.Array[Any]:
    """Open the zarr array at a path or URL, or the raw values of the binned store there, (n, n_features).

    Raises
    ------
    DataError
        If there is neither, or the store has no raw values.
    BinnedStoreError
        If the store is damaged.
    """
    try:
        return open_zarr(url, name)
    except BinnedStoreGivenError:
        return BinnedStore.open(url).raw_values(name)
