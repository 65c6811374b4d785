"""Stage-wise boosting with the exponential loss and stumps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.reference.saberian_vasconcelos import residuals
from tests.reference.trees import Table, group_sums, one_hot


def coefficients(A: np.ndarray, ν: float) -> np.ndarray:
    """w >= 0 that minimises log Σ A[y, r] exp(w_r - w_y) + ν Σ w, one coordinate after the other."""
    w = np.zeros(len(A))
    for _ in range(1000):
        before = w.copy()
        for r in range(len(w)):
            up, down = A[:, r] @ np.exp(-w), A[r] @ np.exp(w)
            up, down = up - A[r, r] * np.exp(-w[r]), down - A[r, r] * np.exp(w[r])
            penalty = ν * (np.exp(-w) @ A @ np.exp(w))
            # The root x = exp(w_r) of up x^2 + penalty x - down = 0.
            w[r] = np.log(2 * down / (penalty + np.sqrt(penalty**2 + 4 * up * down))) if down > 0 else 0.0
        w -= w.min()
        if np.abs(w - before).max() < 1e-11:
            break
    return w


def stagewise(table: Table, y: np.ndarray, K: int, ν: float = 1e-9, η: float = 0.5) -> Iterator[np.ndarray]:
    own, F = one_hot(y, K), np.zeros((table.n_rows, K))
    while True:
        exponents = F[: table.n] - F[np.arange(table.n), y][:, None]
        E = np.exp(exponents - exponents.max())
        E /= E.sum()
        split = table.best_split(residuals(E, own), lambda L, R: np.abs(R - L).max(axis=1))
        if split.value <= ν:
            return
        right = table.right(split)
        T = group_sums(right[: table.n] * K + y, E, 2 * K)
        # A row with h = -1 has the factor exp(w_y - w_r): that of the pair (r, y) on the other side.
        F = F + η * np.where(right, 1, -1)[:, None] * coefficients(T[K:] + T[:K].T, ν)
        yield F
