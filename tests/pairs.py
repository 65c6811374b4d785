"""Few cases in place of all: any two values meet in one of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations


def in_pairs(cases: Iterable[Sequence[Hashable]]) -> list[tuple]:
    """Some of the cases, sequences of values. Two values that stand at two places of any case do so in one that is returned.

    >>> in_pairs(itertools.product("ab", "xy", "01"))
    [('a', 'x', '0'), ('b', 'y', '1'), ('a', 'x', '1'), ('a', 'y', '0'), ('b', 'x', '0')]
    """
    met = {
        tuple(case): {(), *combinations(enumerate(case), 1), *combinations(enumerate(case), 2)}
        for case in cases
    }
    left, found = set().union(*met.values()), []
    while left:
        found.append(max(met, key=lambda case: len(met[case] & left)))
        left -= met[found[-1]]
    return found
