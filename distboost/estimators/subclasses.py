"""Estimators of a user's own class, which derives from one of the library's.

What is stored and what a training run reads are the parameters of the library's class, whatever constructor the subclass has.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from distboost.errors import ArgumentError


def library_class(estimator: Any) -> type[Any]:
    """Return the class that the library made of an algorithm, from which the estimator's class may derive.

    Model files have the algorithm and the parameters of this class alone.
    """
    cls: Any = type(estimator)
    found: type[Any] = next(base for base in reversed(cls.__mro__) if "algorithm" in vars(base))
    if (cls.algorithm, cls.algorithm_name) != (found.algorithm, found.algorithm_name):
        raise ArgumentError(
            f"{cls.__name__} derives from {found.__name__}, but has another algorithm, {cls.algorithm_name!r}: its models "
            "could not be loaded.",
            remedy="Derive from one estimator of distboost, or make one of the algorithm: distboost.classifier.",
            value=cls.algorithm_name,
        )
    return found


def own_names(own: type[Any]) -> list[str]:
    """Return the names of the parameters of a class of the library, in order."""
    return sorted(field.name for field in fields(own))


def own_parameters(estimator: Any) -> dict[str, Any]:
    """Return the library's parameters of an estimator by name, in this order, whatever the constructor of its class is."""
    own = library_class(estimator)
    names = own_names(own)
    missing = [name for name in names if not hasattr(estimator, name)]
    if missing:
        raise ArgumentError(
            f"{type(estimator).__name__} has no {missing[0]}, a parameter of {own.__name__}.",
            remedy="Call super().__init__ in its __init__, with a value for it.",
        )
    return {name: getattr(estimator, name) for name in names}


def adjusted(estimator: Any, **values: Any) -> Any:
    """Set parameters of the library, which the constructor of the estimator's class may not have; return the estimator."""
    for name, value in values.items():
        setattr(estimator, name, value)
    return estimator


def check_methods(estimator: Any, caller: str, instead: str) -> None:
    """Raise ArgumentError if the estimator's class trains or predicts by methods of its own, which the caller does not call."""
    own = library_class(estimator)
    for name in ("fit", "scores", "decision_function", "predict", "predict_proba"):
        if getattr(type(estimator), name) is not getattr(own, name):
            raise ArgumentError(
                f"{type(estimator).__name__} has a method {name} of its own, but {caller} trains and judges as {own.__name__} "
                f"does. {instead}"
            )


def constructed(estimator: Any) -> dict[str, Any]:
    """Return what the constructor of a subclass makes of its parameters for those of the library; of the library's, nothing."""
    cls = type(estimator)
    if cls.__init__ is library_class(estimator).__init__:
        return {}
    return own_parameters(cls(**estimator.get_params(deep=False)))
