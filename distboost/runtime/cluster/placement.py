"""Which worker gets which blocks, and how many rows these have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from distboost.rows.messages import RowCounts
from distboost.rows.sums import ERROR_FACTOR
from distboost.runtime.block import Block, Key

Place = TypeVar("Place", bound=Hashable)  # what holds blocks: a session


def count_rows(block: Block) -> RowCounts:
    """Count the rows of positive weight; return this with their total weight and their digests."""
    weights = block.weights[block.weights > 0]
    units = np.rint(weights * ERROR_FACTOR).astype(np.int64)
    return RowCounts(len(weights), int(units.sum()), bool((weights != 1).any()), block.digest)


def total(counts: list[RowCounts]) -> RowCounts:
    """Add the counts of several blocks."""
    content, exact = (sum(c.digest[lane] for c in counts) % 2**64 for lane in (0, 1))
    return RowCounts(
        sum(c.n_rows for c in counts),
        sum(c.weight_units for c in counts),
        any(c.weighted for c in counts),
        (content, exact),
    )


def shares(n_blocks: int, capacities: list[float]) -> list[range]:
    """Split blocks into contiguous ranges whose lengths are in proportion to the capacities.

    >>> shares(6, [1, 2])
    [range(0, 2), range(2, 6)]
    """
    ends = np.rint(np.cumsum([0, *capacities]) / sum(capacities) * n_blocks).astype(int)
    return [range(int(a), int(b)) for a, b in pairwise(ends)]


def distribute(
    sizes: Mapping[Key, int], held: Mapping[Place, int], threads: Mapping[Place, int]
) -> dict[Place, list[Key]]:
    """Distribute blocks so that each place holds rows in proportion to its threads.

    Parameters
    ----------
    sizes : mapping of Key to int
        The blocks to distribute, with their numbers of rows.
    held : mapping of Place to int
        The rows that each place holds already.
    threads : mapping of Place to int
        The threads of each place.

    >>> blocks = {Key(0, b): 10 for b in range(4)}
    >>> {place: [key.block for key in keys] for place, keys in distribute(blocks, {"a": 20, "b": 0}, {"a": 1, "b": 1}).items()}
    {'a': [0], 'b': [1, 2, 3]}
    """
    if not held:
        return {}
    per_thread = (sum(sizes.values()) + sum(held.values())) / sum(threads.values())
    room = [max(per_thread * threads[place] - n, 0.0) for place, n in held.items()]
    found: dict[Place, list[Key]] = {place: [] for place in held}
    for number in sorted({key.number for key in sizes}):
        keys = sorted(key for key in sizes if key.number == number)
        for place, run in zip(held, shares(len(keys), room), strict=True):
            found[place] += keys[run.start : run.stop]
    return {place: keys for place, keys in found.items() if keys}


def excess(sizes: Mapping[Key, int], fair: float) -> list[Key]:
    """Return the last blocks of a place that holds more than its fair share of rows: without them it holds about that.

    Parameters
    ----------
    sizes : mapping of Key to int
        The blocks that it holds, with their numbers of rows.
    fair : float
        Rows.

    >>> [key.block for key in excess({Key(0, b): 10 for b in range(4)}, 18.0)]
    [2, 3]
    """
    n = sum(sizes.values())
    keys = []
    for key in sorted(sizes, reverse=True):
        if n - sizes[key] / 2 < fair:
            break
        n -= sizes[key]
        keys.append(key)
    return keys[::-1]


def combined(one: Any, other: Any) -> Any:
    """Return the answer over the rows and features of both, in a new object. The order of several makes no difference.

    Arrays and counters are added; None stands for nothing; the members of a tuple are combined one by one.

    >>> from collections import Counter
    >>> combined((1, None), (2, Counter(passes=3)))
    (3, Counter({'passes': 3}))
    """
    if one is None or other is None:
        return one if other is None else other
    if hasattr(one, "combined"):
        return one.combined(other)
    if isinstance(one, RowCounts):
        return total([one, other])
    if isinstance(one, tuple):
        return tuple(map(combined, one, other))
    return one + other
