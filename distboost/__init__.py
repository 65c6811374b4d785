"""Distributed, out-of-core multiclass boosting on zarr and Dask."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distboost import errors
    from distboost.binning import bin
    from distboost.estimators import GAMBLEClassifier, GDMCBoostClassifier, load
    from distboost.training import Progress

__version__ = "0.1.0"

__all__ = ["GAMBLEClassifier", "GDMCBoostClassifier", "Progress", "bin", "errors", "load"]

# Imported when first asked for: Dask, Numba and scikit-learn take seconds that `distboost --help` need not.
_PLACES = {
    "GAMBLEClassifier": "estimators",
    "GDMCBoostClassifier": "estimators",
    "Progress": "training",
    "bin": "binning",
    "load": "estimators",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("distboost.errors")
    if name not in _PLACES:
        raise AttributeError(f"module 'distboost' has no attribute {name!r}")
    value = getattr(import_module(f"distboost.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
