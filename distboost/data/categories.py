"""Categories: the values of a feature that have no order, and their bins.

Each category has a bin of its own. If a feature has more categories than bins, the rarest ones share the last bin. Missing values
and unknown categories have no bin: they go with the missing values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from distboost.errors import DataError, DistboostError, LimitError
from distboost.kernels.categories import code_values
from distboost.rows.exact import exact_sums, whole_numbers

MOST_CATEGORIES = 2**16  # of a feature
MOST_BINS = 255  # of a feature

# The rows of each value, or their total weight in tiny units: whole numbers, so that sums are exact.
Counts = dict[float, int]


@dataclass(frozen=True, eq=False)
class Categories:
    """The known categories of one feature.

    Attributes
    ----------
    values : ndarray of shape (m,), float64
        The categories as numbers, ascending.
    bins : ndarray of shape (m,), uint8
        The bin of each: 0 .. n_bins - 1.
    labels : tuple or None
        The labels of the categories of a data frame, whose numbers are their places here.
    """

    values: np.ndarray
    bins: np.ndarray
    labels: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, counts: Counts, max_bins: int) -> Categories:
        """Return the categories with these counts. Bins follow the order of the values.

        Of equally rare categories, the smaller ones have bins of their own.
        """
        values = np.array(sorted(counts), np.float64)
        if len(values) <= max_bins:
            return cls(values, np.arange(len(values), dtype=np.uint8))
        frequent = sorted(counts, key=lambda value: (-counts[value], value))[: max_bins - 1]
        has_own = np.isin(values, frequent)
        bins = np.where(has_own, np.cumsum(has_own) - 1, max_bins - 1)
        return cls(values, bins.astype(np.uint8))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categories):
            return NotImplemented
        same = np.array_equal(self.values, other.values) and np.array_equal(self.bins, other.bins)
        return same and self.labels == other.labels

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_bins(self) -> int:
        """The number of bins: at least one."""
        return int(self.bins.max(initial=0)) + 1

    @property
    def named(self) -> list[Any]:
        """The categories as they were given: labels, or numbers."""
        found: list[Any] = self.values.tolist() if self.labels is None else list(self.labels)
        return found

    @property
    def edges(self) -> np.ndarray:
        """The numbers midway between the bins, (n_bins - 1,) float64: the bins are the values of the feature."""
        return np.arange(self.n_bins - 1) + 0.5

    def labelled(self, labels: tuple[Any, ...] | None) -> Categories:
        """Return the categories whose numbers are places in these labels, without the labels that are none of them."""
        if labels is None:
            return self
        named = tuple(labels[int(place)] for place in self.values)
        return Categories(np.arange(float(len(named))), self.bins, named)

    def coded_by(self, labels: tuple[Any, ...] | None, feature: int, place: str) -> Categories:
        """Return these categories by the numbers that they have in other rows: places in these labels, or themselves."""
        if self.labels is None and labels is None:
            return self
        if self.labels is None or labels is None:
            raise DataError(
                f"feature {feature} of {place} has {'numbers' if labels is None else 'labels'} as categories, but those of "
                f"the training rows are {'numbers' if self.labels is None else 'labels'}.",
                remedy="Pass the same in both.",
                where=place,
            )
        bins = dict(zip(self.labels, self.bins.tolist(), strict=True))
        known = [place for place, label in enumerate(labels) if label in bins]
        found = np.array([bins[labels[place]] for place in known], np.uint8)
        return Categories(np.array(known, np.float64), found)

    def joined(self, other: Categories) -> Categories:
        """Return these categories, with bins of their own for those of others, as long as there are bins."""
        if self.labels is not None and other.labels is not None:
            more = [label for label in other.labels if label not in self.labels][: MOST_BINS - self.n_bins]
            bins = np.concatenate([self.bins, self.n_bins + np.arange(len(more))]).astype(np.uint8)
            return Categories(np.arange(float(len(bins))), bins, (*self.labels, *more))
        new = np.setdiff1d(other.values, self.values)[: MOST_BINS - self.n_bins]
        values = np.concatenate([self.values, new])
        bins = np.concatenate([self.bins, self.n_bins + np.arange(len(new))])
        order = np.argsort(values)
        return Categories(values[order], bins[order].astype(np.uint8))

    def codes(self, x: np.ndarray) -> np.ndarray:
        """Return the bins of values x (n,), as float64. Missing values and unknown categories get NaN."""
        out = np.empty(len(x))
        code_values(np.ascontiguousarray(x, np.float64), self.values, self.bins, out)
        return out


def coded(
    X: np.ndarray, categories: Mapping[int, Categories], first: int = 0, dtype: Any = np.float64
) -> np.ndarray:
    """Return a copy of the columns X (n, m), the first of which is feature `first`, with codes instead of categories."""
    out = np.array(X, dtype)
    for d, of_feature in categories.items():
        if first <= d < first + X.shape[1]:
            out[:, d - first] = of_feature.codes(X[:, d - first])
    return out


def put_bins(X: np.ndarray, categories: Mapping[int, Categories], first: int, out: np.ndarray) -> None:
    """Set the bins `out` (n, m) uint8 of the columns of X that have categories; the first one is feature `first`."""
    for d, of_feature in categories.items():
        if first <= d < first + X.shape[1]:
            codes = of_feature.codes(X[:, d - first])
            out[:, d - first] = np.where(np.isnan(codes), of_feature.n_bins, codes)


def count_values(x: np.ndarray, weights: np.ndarray | None) -> Counts:
    """Count the rows of each value in x (n,), or add up their weights (n,). Missing values and rows of weight 0 are left out."""
    counted = ~np.isnan(x) if weights is None else ~np.isnan(x) & (weights > 0)
    values, inverse = np.unique(np.asarray(x, np.float64)[counted] + 0.0, return_inverse=True)
    if weights is None:
        totals = np.bincount(inverse, minlength=len(values)).tolist()
    else:
        totals = whole_numbers(exact_sums(inverse, weights[counted], len(values)))
    return dict(zip(values.tolist(), totals, strict=True))


def merge_counts(known: Counts, found: Counts, feature: int, place: str) -> None:
    """Add the counts of other rows; raise LimitError if the feature has too many categories."""
    for value, count in found.items():
        known[value] = known.get(value, 0) + count
    if len(known) > MOST_CATEGORIES:
        raise LimitError(
            f"feature {feature} of {place} has more than {MOST_CATEGORIES} categories, the most that a feature may have.",
            remedy="Join the rare ones, or leave it out of ``categorical_features``.",
            where=place,
        )


def resolved(given: Any, n_features: int, names: np.ndarray | None) -> tuple[int, ...]:
    """Return the numbers of the features that `categorical_features` names, ascending.

    Raises ValueError if it is neither numbers, names nor a mask of features that exist.
    """
    if given is None or isinstance(given, str):
        return ()
    found = np.asarray(given)
    if found.size == 0:
        return ()
    if found.ndim != 1 or found.dtype.kind not in "biuUSO":
        raise _invalid(given, "a list of numbers or names, or a mask")
    if found.dtype.kind == "b":
        if len(found) != n_features:
            raise _invalid(given, f"a mask of {n_features} features")
        return tuple(np.flatnonzero(found).tolist())
    if found.dtype.kind in "iu":
        outside = [d for d in found.tolist() if not -n_features <= d < n_features or d < 0]
        if outside:
            raise _invalid(given, f"numbers of features from 0 to {n_features - 1}: {outside[0]} is none")
        return tuple(sorted(set(found.tolist())))
    return tuple(sorted({_position(name, given, names) for name in found.tolist()}))


def _position(name: Any, given: Any, names: np.ndarray | None) -> int:
    if not isinstance(name, str):
        raise _invalid(given, f"numbers only or names only: it has {name!r:.100}")
    if names is None:
        raise _invalid(given, "numbers of features or a mask, because the features of ``X`` have no names")
    if name not in names.tolist():
        raise _invalid(given, f"names of features: ``X`` has no feature {name!r:.100}")
    return int(names.tolist().index(name))


def _invalid(given: Any, expected: str) -> DataError:
    return DataError(f"``categorical_features`` is {given!r:.200}. Expected {expected}.", value=given)


def listed(categories: Mapping[int, Categories]) -> list[dict[str, Any]]:
    """Return the categories as JSON values, by feature."""
    return [
        {
            "feature": d,
            "values" if categories[d].labels is None else "labels": categories[d].named,
            "bins": categories[d].bins.tolist(),
        }
        for d in sorted(categories)
    ]


def restored_categories(entries: Any, n_features: int, error: type[DistboostError]) -> dict[int, Categories]:
    """Return the categories of which `listed` has made JSON values; raise an error if these are anything else."""

    def require(condition: bool, what: str) -> None:
        if not condition:
            raise error(f"its categories are damaged: {what}.")

    require(isinstance(entries, list), "they are not a list")
    found: dict[int, Categories] = {}
    for entry in entries:
        require(isinstance(entry, dict), "an entry is not a mapping")
        kind = "labels" if "labels" in entry else "values"
        require(entry.keys() == {"feature", kind, "bins"}, "an entry is unknown")
        d, named, bins = entry["feature"], entry[kind], entry["bins"]
        require(type(d) is int and max(found, default=-1) < d < n_features, "a feature is out of order")
        require(
            isinstance(named, list) and len(named) <= MOST_CATEGORIES, "they are not a list of at most 2^16"
        )
        types = {*map(type, named)}
        require(
            len(types) <= 1 and types <= ({str, int, float, bool} if kind == "labels" else {float}), "a type"
        )
        require(len({*named}) == len(named), "one occurs twice")
        require(isinstance(bins, list) and {*map(type, bins)} <= {int}, "a bin is not a number")
        require(len(bins) == len(named), "a category has no bin")
        require({*bins} == set(range(len({*bins}))) and len({*bins}) <= MOST_BINS, "a bin is out of range")
        values = np.array(named, np.float64) if kind == "values" else np.arange(float(len(named)))
        require(bool(np.isfinite(values).all() and (np.diff(values) > 0).all()), "they are not sorted")
        labels = tuple(named) if kind == "labels" else None
        found[d] = Categories(values, np.array(bins, np.uint8), labels)
    return found
