"""Results by name, which print as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


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
