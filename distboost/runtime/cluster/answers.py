"""How answers of several workers become one."""

from __future__ import annotations

from typing import Any

from distboost.rows.messages import RowCounts
from distboost.runtime.cluster.placement import total


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
