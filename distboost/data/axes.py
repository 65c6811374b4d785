"""Axes of an array: how chunks divide them, and spans of them."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Bounds = tuple[tuple[int, int], ...]  # along each axis: the first item, and the last one + 1


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


def box_shape(axes: Sequence[Axis], most: int) -> list[int]:
    """Return the shape of as many whole chunks as `most` items hold, at least one; the last axis grows first."""
    left, sizes = max(most // math.prod(axis.chunk for axis in axes), 1), []
    for axis in reversed(axes):
        n = max(min(left, -(-axis.length // axis.chunk)), 1)
        sizes.append(n * axis.chunk)
        left //= n
    return sizes[::-1]


def boxes(axes: Sequence[Axis], bounds: Bounds, sizes: Sequence[int]) -> Iterator[Bounds]:
    """Yield boxes of about these sizes that cover the bounds, divided at chunk boundaries."""
    cuts = zip(axes, bounds, sizes, strict=True)
    return itertools.product(*(list(axis.spans(a, b, size)) for axis, (a, b), size in cuts))
