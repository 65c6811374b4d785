"""Results by name, which print as a table, and results as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from distboost.data.labels import plain


class Results(Mapping[str, Any]):
    """Values by name, which do not change. As text it is a table, of the values that `_shown` returns."""

    def __init__(self, values: Mapping[str, Any]):
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        lines = self._shown()
        width = max(map(len, lines), default=0)
        return "\n".join(f"{name:{width}}  {text}" for name, text in lines.items())

    def _shown(self) -> dict[str, str]:
        """Return the values that the table has, as text."""
        return {name: str(value) for name, value in self.items()}


def as_json(value: Any) -> str:
    """Return arrays, numbers and texts as JSON; numbers that are not defined are null."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist() if value.ndim > 1 else plain(value))
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
