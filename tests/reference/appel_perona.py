"""REBEL with stumps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.reference.trees import Table, group_sums, one_hot


def rebel(table: Table, y: np.ndarray, K: int) -> Iterator[np.ndarray]:
    z, F = 2 * one_hot(y, K) - 1, np.zeros((table.n_rows, K))

    def sides(L: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s^T and s^F of stumps with -1 on the left, from sums of the wrong classes' weights and of the own ones."""
        return L[..., :K] + R[..., K:], L[..., K:] + R[..., :K]

    while True:
        w = np.exp(-z * F[: table.n]) / (2 * table.n)
        S = np.concatenate([w * (z < 0), w * (z > 0)], axis=1)
        right = table.right(
            table.best_split(S, lambda L, R: -2 * np.sqrt(np.prod(sides(L, R), axis=0)).sum(axis=1))
        )
        s_T, s_F = np.maximum(sides(*group_sums(right[: table.n], S, 2)), 1e-12)
        F = F + np.where(right, 1, -1)[:, None] * np.log(s_T / s_F) / 2
        yield F
