"""Who gets which rows, and how many they are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import TypeVar

import numpy as np

from distboost.rows.messages import RowCounts
from distboost.rows.scales import ERROR_UNIT
from distboost.runtime.block import Block, Key

Place = TypeVar("Place", bound=Hashable)


def count_rows(block: Block) -> RowCounts:
    """The rows of weight above 0, their total weight and their digests."""
    weights = block.weights[block.weights > 0]
    units = np.rint(weights * ERROR_UNIT).astype(np.int64)
    return RowCounts(len(weights), int(units.sum()), bool((weights != 1).any()), block.digest)


def total(counts: list[RowCounts]) -> RowCounts:
    content, exact = (sum(c.digest[lane] for c in counts) % 2**64 for lane in (0, 1))
    return RowCounts(
        sum(c.n_rows for c in counts),
        sum(c.weight_units for c in counts),
        any(c.weighted for c in counts),
        (content, exact),
    )


def shares(n_blocks: int, capacities: list[float]) -> list[range]:
    """Contiguous runs of blocks, in proportion to the capacities.

    >>> shares(6, [1, 2])
    [range(0, 2), range(2, 6)]
    """
    ends = np.rint(np.cumsum([0, *capacities]) / sum(capacities) * n_blocks).astype(int)
    return [range(int(a), int(b)) for a, b in pairwise(ends)]


def handed_out(
    sizes: Mapping[Key, int], held: Mapping[Place, int], threads: Mapping[Place, int]
) -> dict[Place, list[Key]]:
    """Blocks of so many rows, for each place as many as it has too few for its threads.

    >>> blocks = {Key(0, b): 10 for b in range(4)}
    >>> {place: [key.block for key in keys] for place, keys in handed_out(blocks, {"a": 20, "b": 0}, {"a": 1, "b": 1}).items()}
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
    """The last blocks of a place that has more rows than is fair, so many that it keeps about that.

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
