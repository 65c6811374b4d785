"""How far people agree who have labelled the same rows, beyond chance: J. Cohen, *A coefficient of agreement*, 1960."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import cohen_kappa_score


class Agreement(NamedTuple):
    """How far two people agree.

    Attributes
    ----------
    people : tuple of str
    n_rows : int
        That both have labelled.
    kappa : float
        Cohen's: 1 if they always agree, 0 if no more often than by chance.
    """

    people: tuple[str, str]
    n_rows: int
    kappa: float


def agreements_of(opinions: Mapping[int, Mapping[str | None, Any]]) -> list[Agreement]:
    """Return the agreement of all pairs of people that have labelled the same rows.

    >>> agreements_of({1: {"ann": "a", "bob": "a"}, 2: {"ann": "b", "bob": "b"}, 3: {"ann": "b"}})
    [Agreement(people=('ann', 'bob'), n_rows=2, kappa=1.0)]
    """
    common: dict[tuple[str, str], list[tuple[Any, Any]]] = {}
    for told in opinions.values():
        named = sorted(person for person in told if person is not None)
        for first, second in combinations(named, 2):
            common.setdefault((first, second), []).append((told[first], told[second]))
    return [
        Agreement(people, len(pairs), kappa(*np.array(pairs).T)) for people, pairs in sorted(common.items())
    ]


def kappa(first: np.ndarray, second: np.ndarray) -> float:
    """Return Cohen's kappa of labels (n,); 1 if they are equal, also where all are of one class and it is undefined."""
    return 1.0 if np.array_equal(first, second) else float(cohen_kappa_score(first, second))
