"""The interface of a block of rows to statistics, reductions and steps."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from distboost.rows.stored_bins import StoredBins


class BlockRows(Protocol):
    """Some rows of the training or evaluation data, in memory, with the state that boosting keeps of them.

    n rows, D features, K classes. The rows of node m of the growing tree are ``order[spans[m, 0]:spans[m, 1]]``.

    Attributes
    ----------
    first : int
        Global number of the block's first row.
    n_rows, n_classes : int
        n and K.
    bins : ndarray of shape (n, D), uint8
        Made anew each time if not all are held.
    held : ndarray of shape (n, D), uint8, or StoredBins
    labels : ndarray of shape (n,), int32
        Class indices.
    weights : ndarray of shape (n,), float64
        The rows' own weights, at most 2^8; rows of weight 0 are not used.
    heaviest : float
        The largest of them.
    varying : ndarray of shape (D,), bool
        Whether the rows have more than one bin of a feature.
    values : ndarray of shape (n, D), float64, or None
        Raw values, for algorithms that measure distances.
    present : ndarray of shape (m,), int32
        Rows of weight above 0.
    order : ndarray of shape (n_rows_of_tree,), int32
        The rows that the histograms of this round's tree sum, sorted by node.
    spans : ndarray of shape (nodes, 2), int32
        Where each node's rows begin and end in `order`.
    scores : ndarray of shape (n, n_scores), float32 or float64
    changed : set of str
        Names of the kept arrays that were written to since the block was last read.
    """

    first: int
    n_rows: int
    n_classes: int
    spans: np.ndarray
    changed: set[str]
    held: np.ndarray | StoredBins

    @property
    def bins(self) -> np.ndarray: ...

    @property
    def labels(self) -> np.ndarray: ...

    @property
    def weights(self) -> np.ndarray: ...

    @property
    def values(self) -> np.ndarray | None: ...

    @property
    def present(self) -> np.ndarray: ...

    @property
    def heaviest(self) -> float: ...

    @property
    def varying(self) -> np.ndarray: ...

    @property
    def scores(self) -> np.ndarray: ...

    @property
    def order(self) -> np.ndarray: ...

    def at_zero(self) -> BlockRows:
        """Return a block of the same rows whose scores are 0."""

    def kept(self, name: str) -> np.ndarray:
        """Return a kept array, as the last question left it."""

    def buffer(
        self, name: str, shape: tuple[int, ...], dtype: Any, overwrite: bool = False, clear: bool = True
    ) -> np.ndarray:
        """Return a kept array to write to: as it was left, or zero if it is new.

        With `overwrite`, its content is arbitrary, but a new array is zero unless `clear` is False.
        """

    def leaf_arrays(self, leaves: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the arrays that a reduction over leaves reads: scores, labels, weights, order, spans, leaves."""

    def rows_in(self, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows in these leaves, (m,) int32 ascending, and the leaf of each, (m,) int32: its place in `leaves`."""
