"""GAMBLE (algorithm 2): least-squares trees of 15 leaves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.reference.trees import Table, group_sums, one_hot

TINY = np.finfo(float).tiny


def decrease(L: np.ndarray, R: np.ndarray) -> np.ndarray:
    """How much less the squared error is around the means of both sides, but for a factor."""
    W_L, W_R = L.sum(axis=1, keepdims=True), R.sum(axis=1, keepdims=True)
    W = np.maximum(W_L + W_R, TINY)  # weights may underflow
    return (W_L * W_R / W * (L / np.maximum(W_L, TINY) - R / np.maximum(W_R, TINY)) ** 2).sum(axis=1)


def gamble(table: Table, y: np.ndarray, K: int, leaves: int = 15) -> Iterator[np.ndarray]:
    own, F = one_hot(y, K), np.zeros((table.n_rows, K))
    while True:
        exponents = -F[np.arange(table.n), y] / (K - 1)
        w = np.exp(exponents - exponents.max())[:, None]
        place = table.tree(w * own, decrease, lambda S: 0.0, leaves=leaves)
        C = group_sums(place[: table.n], w * own, place.max() + 1)
        W = C.sum(axis=1, keepdims=True)
        g = (K / (K - 1) * C - W / (K - 1)) / W
        r = K * (K - 1) * g / ((K - 2) * g + 1)
        F = F + (r - r.mean(axis=1, keepdims=True))[place]
        yield F
