"""Arrays of xarray: of NumPy or of Dask, with the names of the columns as a coordinate."""

from __future__ import annotations

from typing import Any

from distboost.inputs.array import ArrayInput
from distboost.inputs.base import Input, is_instance, texts
from distboost.inputs.dask_array import DaskInput


class XarrayInput(Input):
    """An array of xarray, which becomes the input that is within it."""

    @classmethod
    def recognises(cls, data: Any) -> bool:
        return is_instance(data, "xarray", "DataArray")

    @classmethod
    def of(cls, data: Any, place: str) -> Input:
        has_names = data.ndim == 2 and data.dims[1] in data.coords
        names = texts(data.coords[data.dims[1]].values.tolist(), place) if has_names else None
        kind = DaskInput if DaskInput.recognises(data.data) else ArrayInput
        return kind(data.data, place, names)
