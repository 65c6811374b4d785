"""How scores become probabilities: what calibration has learned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from distboost.errors import ModelFormatError

TEMPERATURE = "temperature"


@dataclass(frozen=True)
class Calibration:
    """Class probabilities as a function of the scores F: softmax(F / temperature).

    Attributes
    ----------
    method : str
        "temperature".
    temperature : float
        Above 0. The larger it is, the closer are the probabilities to each other.
    """

    method: str
    temperature: float

    def __str__(self) -> str:
        return f"{self.method} {self.temperature:.6g}"

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return class probabilities, (n, K) float64, of scores F, (n, K) float64."""
        found: np.ndarray = special.softmax(F / self.temperature, axis=1)
        return found

    def header(self) -> dict[str, Any]:
        """Return the calibration as JSON values."""
        return {"method": self.method, "temperature": self.temperature}

    @classmethod
    def of_header(cls, given: Mapping[str, Any] | None) -> Calibration | None:
        """Return the calibration in a header; None if it has none."""
        if given is None:
            return None
        method, temperature = given["method"], given["temperature"]
        if method != TEMPERATURE:
            raise ModelFormatError(f"its method of calibration is {method!r:.100}, not {TEMPERATURE!r}.")
        if type(temperature) is not float or not 0 < temperature < math.inf:
            raise ModelFormatError(f"its temperature is {temperature!r:.100}, not a number above 0.")
        return cls(method, temperature)
