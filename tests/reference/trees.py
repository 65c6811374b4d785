"""Trees and stumps by exhaustive search: a threshold between any two neighbouring values of the training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

TIES = 1e-10  # relative difference up to which two values are equal

Worth = Callable[[np.ndarray], np.ndarray]  # sums (.., m) -> (..)


class Split(NamedTuple):
    value: float
    feature: int
    bin: int


def group_sums(group: np.ndarray, S: np.ndarray, n_groups: int) -> np.ndarray:
    """The sums of S, (n, m), over the rows of each group, (groups, m)."""
    return np.stack([np.bincount(group, s, n_groups) for s in S.T], axis=1)


def first_largest(values: np.ndarray) -> np.ndarray:
    """Where the first of the largest is, on the last axis."""
    largest = values.max(axis=-1, keepdims=True)
    return np.argmax(values >= largest - TIES * np.abs(largest), axis=-1)


def one_hot(y: np.ndarray, n_classes: int) -> np.ndarray:
    return np.eye(n_classes)[y]


class Table:
    """Training rows, followed by test rows: for each value, the number of thresholds below it.

    A tree is the number of the leaf of each row.
    """

    def __init__(self, X: np.ndarray, X_test: np.ndarray) -> None:
        self.n = len(X)
        values = [np.unique(x) for x in X.T]
        self.thresholds = [(v[:-1] + v[1:]) / 2 for v in values]
        self.bins = [
            np.searchsorted(t, x) for t, x in zip(self.thresholds, np.concatenate([X, X_test]).T, strict=True)
        ]

    @property
    def n_rows(self) -> int:
        return len(self.bins[0])

    def right(self, split: Split) -> np.ndarray:
        return self.bins[split.feature] > split.bin

    def best_split(
        self, S: np.ndarray, value: Callable, rows: slice | np.ndarray = slice(None)
    ) -> Split | None:
        """The first split of largest value(L, R), from the sums of S over either side."""
        S, found = np.ascontiguousarray(S[rows].T).T, []
        for d, thresholds in enumerate(self.thresholds):
            bins = self.bins[d][: self.n][rows]
            H = group_sums(bins, S, len(thresholds) + 1)
            cuts = np.flatnonzero(np.bincount(bins))[:-1]  # above each value in these rows but the largest
            L, R = H.cumsum(axis=0)[cuts], H[::-1].cumsum(axis=0)[::-1][cuts + 1]
            found.append((value(L, R), np.full(len(cuts), d), cuts))
        values, features, cuts = map(np.concatenate, zip(*found, strict=True))
        if not len(values):
            return None
        i = first_largest(values)
        return Split(values[i], int(features[i]), int(cuts[i]))

    def tree(
        self, S: np.ndarray, value: Callable, alone: Worth, depth: float = np.inf, leaves: float = np.inf
    ) -> np.ndarray:
        """Splits the leaf that gains most over its worth alone, until there are so many."""
        leaf, depths, ready = np.zeros(self.n_rows, int), [0], {}

        def consider(node: int) -> None:
            rows = np.flatnonzero(leaf[: self.n] == node)
            split = self.best_split(S, value, rows) if depths[node] < depth else None
            if split:
                gain = split.value - alone(S[rows].sum(axis=0))
                if gain > 1e-12 * abs(split.value):
                    ready[node] = gain, split

        consider(0)
        while ready and len(depths) < leaves:
            node = max(ready, key=lambda node: ready[node][0])
            _, split = ready.pop(node)
            depths[node] += 1
            leaf[(leaf == node) & self.right(split)] = len(depths)
            depths.append(depths[node])
            consider(node)
            consider(len(depths) - 1)
        return leaf

    def tree_of(self, S: np.ndarray, worth: Worth, **size: float) -> tuple[np.ndarray, np.ndarray]:
        """Where a split is worth what its sides are; also the sums of S over each leaf."""
        leaf = self.tree(S, lambda L, R: worth(L) + worth(R), worth, **size)
        return leaf, group_sums(leaf[: self.n], S, leaf.max() + 1)


def largest(S: np.ndarray) -> np.ndarray:
    return S.max(axis=-1)


def length(S: np.ndarray) -> np.ndarray:
    return np.sqrt((S**2).sum(axis=-1))
