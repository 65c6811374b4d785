"""The systems that the papers compare with, on the same engine."""

from typing import Any

from distboost import registry

_NAMES = registry.estimator_names(registry.BASELINES)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from distboost.estimators.factory import estimator

    return estimator(_NAMES[name])


def __dir__() -> list[str]:
    return __all__
