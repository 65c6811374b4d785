"""Raw rows at a path or URL: an array, or a binned store that has its values."""

from __future__ import annotations

from typing import Any

from distboost.data.sources import BinnedStoreGivenError, opened
from distboost.data.store.store import BinnedStore


def open_rows(data: Any, name: str) -> Any:
    """Return the zarr array at a path or URL, or the raw values of the binned store there; anything else as `opened` does.

    Raises
    ------
    DataError
        If there is no array, or the store has no raw values.
    BinnedStoreError
        If the store is damaged.
    """
    try:
        return opened(data, name)
    except BinnedStoreGivenError:
        return BinnedStore.open(data).raw_values(name)
