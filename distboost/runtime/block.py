"""A block: some rows of the training or evaluation data, and all that boosting keeps of them."""

from __future__ import annotations

import numpy as np

from distboost.data.blocks import BinnedRows


class Block:
    """Binned rows with their scores F and, while a tree grows, their nodes.

    `values` holds the raw values, if the algorithm needs them. `order` lists the rows in use node by node; node m's rows are
    ``order[spans[m, 0]:spans[m, 1]]``.
    """

    def __init__(self, rows: BinnedRows, n_classes: int, n_scores: int, score_dtype: str):
        self.first, self.bins, self.labels, self.weights, self.values = rows
        self.n_rows = len(self.labels)
        self.n_classes = n_classes
        self.scores = np.zeros((self.n_rows, n_scores), score_dtype)
        self.present = np.flatnonzero(self.weights > 0).astype(np.int32)
        self.order = self.present
        self.rest = np.empty(0, np.int32)  # rows left out of this round's tree
        self.spans = np.zeros((1, 2), np.int32)
        self.buffers: dict[str, np.ndarray] = {}

    def buffer(self, name: str, shape: tuple[int, ...], dtype: type) -> np.ndarray:
        """Working memory that is kept from round to round; zero when new."""
        kept = self.buffers.get(name)
        if kept is None or kept.shape != shape or kept.dtype != dtype:
            kept = self.buffers[name] = np.zeros(shape, dtype)
        return kept

    def start_tree(self, drawn: np.ndarray | None) -> None:
        """All rows in use (of those `drawn`, a mask, if given) are in node 0."""
        if drawn is None:
            rows = self.present
            self.rest = np.empty(0, np.int32)
        else:
            rows = self.present[drawn[self.present]]
            self.rest = np.flatnonzero((self.weights > 0) & ~drawn).astype(np.int32)
        self.order = self.buffer("order", (len(rows),), np.int32)
        self.order[:] = rows
        self.spans = np.zeros((64, 2), np.int32)
        self.spans[0, 1] = len(rows)

    def reserve_nodes(self, n: int) -> None:
        """Makes room for the spans of nodes 0 .. n - 1."""
        if len(self.spans) < n:
            grown = np.zeros((2 * n, 2), np.int32)
            grown[: len(self.spans)] = self.spans
            self.spans = grown

    def partition(self, leaves: np.ndarray) -> tuple[np.ndarray, ...]:
        """What a reduction over leaves reads: (scores, labels, weights, order, spans, leaves)."""
        return self.scores, self.labels, self.weights, self.order, self.spans, leaves
