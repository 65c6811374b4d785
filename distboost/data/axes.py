"""How the axes of an array are cut, and spans of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass


def spans(start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """Cuts start .. stop - 1 into spans of `size` items, the last one perhaps shorter: first and last (exclusive) of each."""
    return ((first, min(first + size, stop)) for first in range(start, stop, size))


@dataclass(frozen=True)
class Axis:
    """How an axis of an array is cut: after every `chunk` items, or at `cuts` (then `chunk` is the longest stretch)."""

    length: int
    chunk: int
    cuts: tuple[int, ...] | None = None

    def end(self, start: int, size: int) -> int:
        """Where a read of about `size` items should end: at the last cut within them, else at the first one after `start`."""
        if self.cuts is None:
            within = (start + size) // self.chunk * self.chunk
            after = (start // self.chunk + 1) * self.chunk
        else:
            within = self.cuts[bisect_right(self.cuts, start + size) - 1]
            after = self.cuts[min(bisect_right(self.cuts, start), len(self.cuts) - 1)]
        return min(max(within, after), self.length)

    def spans(self, start: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
        """Cuts start .. stop - 1 into spans of about `size`, at chunk boundaries."""
        while start < stop:
            end = min(self.end(start, size), stop)
            yield start, end
            start = end
