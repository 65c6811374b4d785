"""Binned stores, which have labels and weights of their own, and perhaps raw values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distboost.data.source import Source
from distboost.data.store.store import BinnedStore
from distboost.inputs.base import Input, LazyInput
from distboost.inputs.zarr_array import NoArray, ZarrInput

if TYPE_CHECKING:
    import dask.array as da


class StoreInput(LazyInput):
    """The path or URL of a binned store, or of a group that may be an unfinished one."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return isinstance(data, NoArray) and BinnedStore.is_at(data.url)

    def source(self, of_features: bool) -> Source:
        raise self.data.error

    def store(self) -> BinnedStore:
        return BinnedStore.open(self.data.url)

    def values(self) -> Input:
        if not self.data.is_binned:
            raise self.data.error
        return ZarrInput(self.store().raw_values(self.place), self.place)

    @property
    def rows(self) -> da.Array:
        raise self.data.error
