"""Checks of the arrays of an ensemble that was read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distboost.errors import ModelFormatError


class Requirement:
    """A check of one part of a model: check(condition, fault) raises ModelFormatError if the condition is false."""

    def __init__(self, part: str):
        self.part = part

    def __call__(self, condition: Any, what: str) -> None:
        """Raise ModelFormatError unless the condition holds; `what` says what is wrong otherwise."""
        if not condition:
            raise ModelFormatError(
                f"the model's {self.part} are damaged: {what}.",
                remedy="Copy the file again from where it was saved.",
            )

    def arrays(self, arrays: Mapping[str, np.ndarray], dtypes: Mapping[str, Any]) -> None:
        """Require an array of each name and dtype."""
        for name, dtype in dtypes.items():
            self(
                name in arrays and arrays[name].dtype == dtype,
                f"array {name!r} is missing or is not {np.dtype(dtype)}",
            )
