"""Axes of an array: how chunks divide them, and spans of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass


def spans(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield spans (first, last + 1) of `size` items that cover start .. stop - 1; the last one may be shorter."""
    return ((first, min(first + size, stop)) for first in range(start, stop, size))


@dataclass(frozen=True)
class Axis:
    """The chunks along one axis: of `chunk` items each, or divided at `cuts`, where `chunk` is the longest."""

    length: int
    chunk: int
    cuts: tuple[int, ...] | None = None

    def end(self, start: int, size: int) -> int:
        """Return where a read of about `size` items should end: at the last cut within them, else at the first after `start`."""
        if self.cuts is None:
            within = (start + size) // self.chunk * self.chunk
            after = (start // self.chunk + 1) * self.chunk
        else:
            within = self.cuts[bisect_right(self.cuts, start + size) - 1]
            after = self.cuts[min(bisect_right(self.cuts, start), len(self.cuts) - 1)]
        return min(max(within, after), self.length)

    def spans(self, start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield spans (first, last + 1) of about `size` items that cover start .. stop - 1 and end at chunk boundaries."""
        while start < stop:
            end = min(self.end(start, size), stop)
            yield start, end
            start = end
