"""Constraints on the values of parameters.

scikit-learn checks them, with classes that are not part of its public interface: `tests/test_private_interfaces.py` tests the
parts that distboost uses. They are imported when an estimator is made. A Dask worker has algorithms, too, but does without
scikit-learn, which takes 130 MB with the pandas that it imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from distboost.message import Message


class RealNotInt:
    """Stands for the type of real numbers that are no integers."""


class Interval(NamedTuple):
    """Numbers of a type between two limits. None: no limit."""

    type: type
    left: float | None
    right: float | None
    closed: str  # which limits are allowed: "left", "right", "both" or "neither"


class Options(NamedTuple):
    """Some values of a type."""

    type: type
    options: set[Any]


class StrOptions(NamedTuple):
    """Some texts."""

    options: set[str]


def as_of_sklearn(allowed: Iterable[Any]) -> list[Any]:
    """Return constraints as scikit-learn reads them: those of this module, and what it knows by itself, such as types."""
    from sklearn.utils import _param_validation as sklearn

    def converted(one: Any) -> Any:
        if isinstance(one, Interval):
            return sklearn.Interval(
                sklearn.RealNotInt if one.type is RealNotInt else one.type, *one[1:3], closed=one.closed
            )
        if isinstance(one, Options):
            return sklearn.Options(*one)
        return sklearn.StrOptions(one.options) if isinstance(one, StrOptions) else one

    return [converted(one) for one in allowed]


def check_parameters(constraints: Mapping[str, Any], given: dict[str, Any], caller: str) -> None:
    """Raise scikit-learn's error if a value breaks its constraints, which are as scikit-learn reads them."""
    from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints

    try:
        validate_parameter_constraints(constraints, given, caller_name=caller)
    except InvalidParameterError as error:
        name = str(error).split("'")[1]
        said = str(error).replace(
            f"The {name!r} parameter of {caller}", f"``{name}|The {name!r} parameter`` of ``{caller}``"
        )
        raise InvalidParameterError(Message(said)) from None


def validate_parameters(allowed: Mapping[str, Iterable[Any]], given: dict[str, Any], caller: str) -> None:
    """Raise scikit-learn's error if the value of a function's parameter is not allowed."""
    check_parameters({name: as_of_sklearn(some) for name, some in allowed.items()}, given, caller)
