"""What data are, by libraries that need not be installed."""

from __future__ import annotations

import sys
from typing import Any


def is_instance(data: Any, library: str, name: str) -> bool:
    """Whether `data` is of the class `name` of a library. A library that nobody has imported has made nothing."""
    found = getattr(sys.modules.get(library), name, None)
    return found is not None and isinstance(data, found)


def is_dask_frame(data: Any) -> bool:
    """Whether `data` is a data frame of Dask."""
    return is_instance(data, "dask.dataframe", "DataFrame")


def is_xarray(data: Any) -> bool:
    """Whether `data` is an array of xarray."""
    return is_instance(data, "xarray", "DataArray")
