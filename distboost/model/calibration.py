"""How scores become probabilities: what calibration has learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.errors import LimitError, ModelFormatError
from distboost.kernels.elementary import softmax

TEMPERATURE, VECTOR = "temperature", "vector"
METHODS = (TEMPERATURE, VECTOR)

# Of the method "vector": its fit sums as many numbers as twice the classes, squared.
MOST_CLASSES = 1000


@dataclass(frozen=True)
class Calibration:
    """Class probabilities as a function of the scores F.

    "temperature": softmax(F / temperature). "vector": softmax(scales * (F - mean F) / temperature + shifts), where the mean is
    that of the row.

    Attributes
    ----------
    method : {"temperature", "vector"}
    temperature : float
        Above 0. The larger it is, the closer are the probabilities to each other.
    scales, shifts : tuple of float, or None
        Of the method "vector": one for each class. With scales of 1 and shifts of 0, it is the temperature alone.
    """

    method: str
    temperature: float
    scales: tuple[float, ...] | None = None
    shifts: tuple[float, ...] | None = None

    def __str__(self) -> str:
        found = f"{self.method} {self.temperature:.6g}"
        if self.scales is None or self.shifts is None:
            return found
        scales, shifts = (f"{min(v):.3g} to {max(v):.3g}" for v in (self.scales, self.shifts))
        return f"{found}, scales {scales}, shifts {shifts}"

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, K) float64, of scores F, (n, K) float64."""
        if self.scales is None or self.shifts is None:
            Z = F / self.temperature
        else:
            Z = centred(F) * (np.array(self.scales) / self.temperature) + np.array(self.shifts)
        return softmax(Z)

    def header(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        header: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        if self.scales is not None and self.shifts is not None:
            header |= {"scales": [*self.scales], "shifts": [*self.shifts]}
        return header

    @classmethod
    def of_header(cls, given: Mapping[str, Any] | None, n_classes: int) -> Calibration | None:
        """Return the calibration in a header; None if it has none."""
        if given is None:
            return None
        method, temperature = given["method"], given["temperature"]
        if method not in METHODS:
            raise ModelFormatError(
                f"its method of calibration is {method!r:.100}, not {TEMPERATURE!r} or {VECTOR!r}.",
                value=method,
            )
        if type(temperature) is not float or not 0 < temperature < math.inf:
            raise ModelFormatError(
                f"its temperature is {temperature!r:.100}, not a number above 0.", value=temperature
            )
        if method == TEMPERATURE:
            return cls(method, temperature)
        return cls(method, temperature, *(_numbers(given, name, n_classes) for name in ("scales", "shifts")))


def centred(F: np.ndarray) -> np.ndarray:
    """Return the scores, (n, K), less the mean of each row: algorithms determine them up to a constant."""
    found: np.ndarray = F - F.mean(axis=1, keepdims=True)
    return found


def check_method(method: str, n_classes: int) -> None:
    """Raise LimitError if there are too many classes for this method of calibration."""
    if method == VECTOR and n_classes > MOST_CLASSES:
        raise LimitError(
            f"there are {n_classes} classes, but the calibration {VECTOR!r}, which has two numbers for each class, takes at "
            f"most {MOST_CLASSES}.",
            remedy=f"Use {TEMPERATURE!r}.",
            value=n_classes,
        )


def _numbers(given: Mapping[str, Any], name: str, n_classes: int) -> tuple[float, ...]:
    """Return one number for each class."""
    found = given[name]
    is_list = type(found) is list and len(found) == n_classes
    if not is_list or any(type(value) is not float or not math.isfinite(value) for value in found):
        raise ModelFormatError(
            f"the {name} of its calibration are {found!r:.100}, not {n_classes} finite numbers.", value=found
        )
    return tuple(found)
