"""A sample of the distinct rows of a set, with the rows that each stands for.

The *content* of a row is its bins. The sample has the contents of the smallest keys, which are hashes, so it depends neither on
blocks nor on the order of rows, and the samples of blocks merge to that of the whole. `data.division` divides rows by the upper
half of the same hash, so a key has the lower half above: the sample has its share of each side.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from distboost.data.blocks import AnyRows, BinnedSet, TaskRunner
from distboost.data.categories import Categories
from distboost.kernels.digest import hashes_of
from distboost.rows.sums import ERROR_FACTOR


@dataclass(frozen=True)
class Contents:
    """Contents with their labels: rows of equal bins and label are one entry. Entries are sorted by key, then by label.

    Attributes
    ----------
    keys : ndarray of shape (n,), uint64
    labels : ndarray of shape (n,), int32
    bins : ndarray of shape (n, D), uint8
    n_rows : ndarray of shape (n,), int64
        The rows of each entry, without those of weight 0.
    units : ndarray of shape (n,), int64
        Their weight, in units of 1/ERROR_FACTOR.
    values : ndarray of shape (n, D), float64, or None
        Raw values, if the rows have them: the smallest of the entry.
    """

    keys: np.ndarray
    labels: np.ndarray
    bins: np.ndarray
    n_rows: np.ndarray
    units: np.ndarray
    values: np.ndarray | None

    @cached_property
    def is_first(self) -> np.ndarray:
        """Whether an entry is the first one of its content, (n,) bool."""
        return _differs(self.keys)

    @property
    def weights(self) -> np.ndarray:
        """The weight of each entry, (n,) float64."""
        return self.units / ERROR_FACTOR

    @property
    def mixed(self) -> float:
        """The share of the contents that have several labels."""
        first = self.is_first
        several = first[:-1] & ~first[1:]
        return float(several.sum() / first.sum())

    def selected(self, chosen: np.ndarray | slice) -> Contents:
        """Return the entries of a mask, (n,) bool, or of a slice."""
        return Contents(
            self.keys[chosen],
            self.labels[chosen],
            self.bins[chosen],
            self.n_rows[chosen],
            self.units[chosen],
            None if self.values is None else self.values[chosen],
        )

    def merged(self, other: Contents, most: int) -> Contents:
        """Return the first contents of both that have at most `most` entries."""
        joined = Contents(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.bins, other.bins]),
            np.concatenate([self.n_rows, other.n_rows]),
            np.concatenate([self.units, other.units]),
            None
            if self.values is None or other.values is None
            else np.concatenate([self.values, other.values]),
        )
        return joined._compact(most)

    def _compact(self, most: int) -> Contents:
        """Sort the entries, unite those of equal content and label, and keep the first contents: one, or up to `most` entries."""
        order = np.lexsort((self.labels, self.keys))
        keys, labels = self.keys[order], self.labels[order]
        is_first = _differs(keys)
        begins = np.flatnonzero(is_first | _differs(labels))
        number = np.cumsum(is_first)[begins]
        kept = number < max(number[most], 2) if most < len(number) else np.full(len(number), True)
        return Contents(
            keys[begins][kept],
            labels[begins][kept],
            self.bins[order[begins[kept]]],
            np.add.reduceat(self.n_rows[order], begins)[kept],
            np.add.reduceat(self.units[order], begins)[kept],
            None if self.values is None else np.minimum.reduceat(self.values[order], begins)[kept],
        )


def _differs(values: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it; the first does."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def contents_of(part: BinnedSet, most: int, work: TaskRunner) -> Contents:
    """Return the first contents of a set, of at most `most` entries. This reads the rows once."""
    calls = [(most, part.function, *call) for call in part.calls]
    return reduce(lambda a, b: a.merged(b, most), work.each(_contents, calls))


def _contents(most: int, function: Callable[..., AnyRows], *call: Any) -> Contents:
    """Return the contents of a block."""
    rows = function(*call)
    keys = keys_of(rows.bins)
    chosen = rows.weights > 0
    distinct = np.unique(keys[chosen])
    if len(distinct) > most:  # each has an entry at least
        chosen &= keys <= distinct[most - 1]
    return Contents(
        keys[chosen],
        rows.labels[chosen],
        rows.bins[chosen],
        np.ones(np.count_nonzero(chosen), np.int64),
        np.rint(rows.weights[chosen] * ERROR_FACTOR).astype(np.int64),
        None if rows.values is None else rows.values[chosen],
    )._compact(most)


def keys_of(bins: np.ndarray) -> np.ndarray:
    """Return the key of each row, (n,) uint64: the halves of its hash, exchanged."""
    hashes = hashes_of(bins)
    return (hashes << np.uint64(32)) | (hashes >> np.uint64(32))


def representatives(
    bins: np.ndarray, edges: Sequence[np.ndarray], categories: Mapping[int, Categories] | None = None
) -> np.ndarray:
    """Return rows of these bins, (n, D) float64."""
    columns = [
        np.append(cuts, [np.nextafter(cuts[-1], np.inf) if len(cuts) else 0.0, np.nan]) for cuts in edges
    ]
    for d, known in (categories or {}).items():
        columns[d] = np.full(known.n_bins + 1, np.nan)
        columns[d][known.bins[::-1]] = known.values[::-1]  # the first category of each bin
    return np.stack([column[bins[:, d]] for d, column in enumerate(columns)], axis=1)


def values_of(
    contents: Contents, edges: Sequence[np.ndarray], categories: Mapping[int, Categories]
) -> np.ndarray:
    """Return a row of each entry, (n, D) float64: its raw values, or others with the same bins."""
    if contents.values is not None:
        return contents.values
    return representatives(contents.bins, edges, categories)
