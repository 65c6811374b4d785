"""REBEL with stumps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.reference.trees import Table, one_hot


def rebel(table: Table, y: np.ndarray, K: int) -> Iterator[np.ndarray]:
    z, F = 2 * one_hot(y, K) - 1, np.zeros((table.n_rows, K))

    def right_and_wrong(L: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s^T and s^F of stumps with -1 on the left, from the sums of the wrong classes' and of the own weights."""
        return L[..., :K] + R[..., K:], L[..., K:] + R[..., :K]

    def minus_loss(L: np.ndarray, R: np.ndarray) -> np.ndarray:
        s_T, s_F = right_and_wrong(L, R)
        return -2 * np.sqrt(s_T * s_F).sum(axis=-1)

    while True:
        w = np.exp(-z * F[: table.n]) / (2 * table.n)
        S = np.concatenate([w * (z < 0), w * (z > 0)], axis=1)
        right = table.right(table.best_split(S, minus_loss))
        s_T, s_F = right_and_wrong(S[~right[: table.n]].sum(axis=0), S[right[: table.n]].sum(axis=0))
        a = (np.log(np.maximum(s_T, 1e-12)) - np.log(np.maximum(s_F, 1e-12))) / 2
        F = F + np.where(right, 1, -1)[:, None] * a
        yield F
