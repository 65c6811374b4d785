"""Checks of an ensemble that was read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from distboost.errors import ModelFormatError


class Requirement:
    """A function `require(condition, what)` that raises ModelFormatError unless the condition holds for the model's `part`."""

    def __init__(self, part: str):
        self.part = part

    def __call__(self, condition: Any, what: str) -> None:
        if not condition:
            raise ModelFormatError(
                f"the model's {self.part} are damaged: {what}. Get the file again from where it was saved."
            )

    def arrays(self, arrays: Mapping[str, np.ndarray], dtypes: Mapping[str, Any]) -> None:
        """Requires an array of each name and type."""
        for name, dtype in dtypes.items():
            self(
                name in arrays and arrays[name].dtype == dtype,
                f"array {name!r} is not there or not {np.dtype(dtype)}",
            )
