"""Distributed, out-of-core multiclass boosting on zarr and Dask."""

from importlib import import_module
from typing import Any

from distboost import registry

__version__ = "0.2.0"

# The places of the public names. They are imported on first use: importing Dask, Numba and scikit-learn takes seconds, which
# `distboost --help` does not need.
_PLACES = {
    "Algorithm": "algorithms.base",
    "Calibration": "model.learned",
    "CrossValidation": "selection.validation",
    "Evaluation": "evaluation.metrics",
    "EventLog": "training.events",
    "MemoryPlan": "training.memory_plan",
    "Progress": "model.learned",
    "SearchResult": "selection.search",
    "TrainingRecord": "training.record",
    "bin": "training.binning",
    "classifier": "estimators.factory",
    "cross_validate": "selection.validation",
    "evaluate": "estimators.evaluating",
    "expected_scores": "explanation.shap",
    "export_text": "export.text",
    "load": "estimators.factory",
    "plan": "estimators.plan",
    "report": "reporting.report",
    "search": "selection.search",
    "shap_values": "explanation.shap",
    **dict.fromkeys(registry.estimator_names(registry.PAPERS), "estimators.factory"),
}
_MODULES = ("baselines", "errors", "export", "plot")

__all__ = sorted([*_PLACES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"distboost.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'distboost' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"distboost.{_PLACES[name]}"), name)
    except AttributeError as error:  # Python would say that there is no such name, and hide what failed
        raise ImportError(f"distboost.{name} cannot be imported: {error}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
