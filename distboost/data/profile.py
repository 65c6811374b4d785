"""What a scan of the raw data finds: classes, weights, and the edges of the bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ClassScan:
    """The rows of one class, except those of weight 0."""

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
    """What binning and training need to know of the data.

    Attributes
    ----------
    n_rows, n_features : int
    classes : ndarray of shape (n_classes,)
        Sorted.
    class_scans : list of ClassScan
        In the order of the classes.
    edges : list of ndarray
        Per feature, ascending: the thresholds between its bins.
    """

    n_rows: int
    classes: np.ndarray
    class_scans: list[ClassScan]
    edges: list[np.ndarray]

    @property
    def n_features(self) -> int:
        return len(self.edges)

    @property
    def n_bins(self) -> np.ndarray:
        """Bins per feature, the one for missing values not counted."""
        return np.array([len(edges) + 1 for edges in self.edges], np.int64)
