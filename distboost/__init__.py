"""Distributed, out-of-core multiclass boosting on zarr and Dask."""

from distboost import errors
from distboost.binning import bin
from distboost.estimators import GAMBLEClassifier, GDMCBoostClassifier, load
from distboost.training import Progress

__version__ = "0.1.0"

__all__ = ["GAMBLEClassifier", "GDMCBoostClassifier", "Progress", "bin", "errors", "load"]
