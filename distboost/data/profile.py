"""The results of a scan of the raw data: classes, weights and bin edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from distboost.data.categories import Categories


@dataclass(frozen=True)
class ClassScan:
    """The counts and weights of the rows of one class, without rows of weight 0."""

    n_rows: int
    largest_weight: float
    whole_weights: bool

    def merged(self, other: ClassScan) -> ClassScan:
        return ClassScan(
            self.n_rows + other.n_rows,
            max(self.largest_weight, other.largest_weight),
            self.whole_weights and other.whole_weights,
        )


@dataclass(frozen=True)
class Profile:
    """The properties of the data that binning and training need.

    Attributes
    ----------
    n_rows, n_features : int
    classes : ndarray of shape (n_classes,)
        The sorted labels.
    class_scans : list of ClassScan
        The scan of each class, in the same order.
    edges : list of ndarray of shape (n_edges,), float64
        The ascending thresholds between the bins of each feature.
    categories : mapping of int to Categories
        The categories of the features that have some. Their edges lie between bins.
    """

    n_rows: int
    classes: np.ndarray
    class_scans: list[ClassScan]
    edges: list[np.ndarray]
    categories: Mapping[int, Categories] = field(default_factory=dict)

    def same_bins(self, other: Profile) -> bool:
        """Whether bins and class indices mean the same in both profiles."""
        same_edges = all(map(np.array_equal, self.edges, other.edges))
        same_edges = same_edges and self.categories == other.categories
        return same_edges and np.array_equal(self.classes, other.classes)

    @property
    def n_features(self) -> int:
        return len(self.edges)

    @property
    def n_bins(self) -> np.ndarray:
        """Bins per feature, (n_features,) int64, without the bin for missing values."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)
