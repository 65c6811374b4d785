"""MCBoost and the systems beside it: each yields the scores (rows, classes) after each round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from tests.reference.trees import Table, first_largest, group_sums, largest, length, one_hot


def simplex(K: int) -> np.ndarray:
    """The codewords, (K, K - 1), by the recursion over K."""
    if K == 2:
        return np.array([[1.0], [-1.0]])
    others = np.column_stack([np.full(K - 1, -1 / (K - 1)), np.sqrt(1 - 1 / (K - 1) ** 2) * simplex(K - 1)])
    return np.vstack([np.eye(1, K - 1), others])


def pair_weights(F: np.ndarray, own: np.ndarray, scale: float) -> np.ndarray:
    """exp(-scale (F[i, y_i] - F[i, k])) of the wrong classes k, but for a factor."""
    margins = np.where(own > 0, np.inf, scale * ((F * own).sum(axis=1, keepdims=True) - F))
    return np.exp(margins.min() - margins)


def residuals(E: np.ndarray, own: np.ndarray) -> np.ndarray:
    return own * E.sum(axis=1, keepdims=True) - E


def line_search(E: np.ndarray, rise: np.ndarray) -> float:
    """The step that minimises the sum of E exp(-step rise / 2); it multiplies no weight by more than 2^40."""
    low, high = 0.0, 2 * np.log(2.0**40) / np.abs(rise).max()
    for _ in range(100):
        step = (low + high) / 2
        if (E * rise * np.exp(-step * rise / 2)).sum() > 0:
            low = step
        else:
            high = step
    return high


def cd_mcboost(table: Table, y: np.ndarray, K: int) -> Iterator[np.ndarray]:
    """Algorithm 1, left: stumps for one coordinate after the other."""
    own, Y, F = one_hot(y, K), simplex(K), np.zeros((table.n_rows, K))
    for t in count():
        c = Y[:, t % (K - 1)]
        E = pair_weights(F[: table.n], own, 0.5)
        w = residuals(E, own) @ c[:, None]
        split = table.best_split(w, lambda L, R: np.abs(R - L)[:, 0])
        g = np.where(table.right(split), 1, -1)
        g *= 1 if g[: table.n] @ w[:, 0] >= 0 else -1
        rise = np.array([-1, 1])[:, None, None] * (c[:, None] - c)
        T = group_sums((g[: table.n] > 0) * K + y, E, 2 * K)
        F = F + line_search(T, rise.reshape(2 * K, K)) * g[:, None] * c
        yield F


def gd_mcboost(table: Table, y: np.ndarray, K: int, leaf: str) -> Iterator[np.ndarray]:
    """Algorithm 1, right: trees of depth 2 whose leaves are codewords, or any directions."""
    own, F = one_hot(y, K), np.zeros((table.n_rows, K))
    codewords = simplex(K) @ simplex(K).T
    while True:
        E = pair_weights(F[: table.n], own, 0.5)
        place, S = table.tree_of(residuals(E, own), largest if leaf == "codeword" else length, depth=2)
        V = codewords[first_largest(S)] if leaf == "codeword" else S / length(S)[:, None]
        T = group_sums(place[: table.n] * K + y, E, len(V) * K)
        F = F + line_search(T, (V[:, :, None] - V[:, None]).reshape(T.shape)) * V[place]
        yield F


def adaboost_mm(table: Table, y: np.ndarray, K: int, edge: float | None) -> Iterator[np.ndarray]:
    """Mukherjee & Schapire's AdaBoost.MM: with the edge of each tree, or costs and steps for one edge (eq. 6)."""
    own, F = one_hot(y, K), np.zeros((table.n_rows, K))
    while True:
        E = pair_weights(F[: table.n], own, 1.0)
        S = residuals(E, own)
        if edge is not None:
            step = np.log(1 + K * edge / (1 - edge)) / 2
            S = (1 - np.exp(-step)) * own * E.sum(axis=1, keepdims=True) - (np.exp(step) - 1) * E
        place, sums = table.tree_of(S, largest, depth=2)
        if edge is None:
            δ = sums.max(axis=1).sum() / E.sum()
            step = np.log((1 + δ) / (1 - δ)) / 2
        F = F + step * one_hot(first_largest(sums)[place], K)
        yield F


def one_vs_all(table: Table, y: np.ndarray, K: int) -> Iterator[np.ndarray]:
    """AdaBoost for each class against the others."""
    z, F = 2 * one_hot(y, K) - 1, np.zeros((table.n_rows, K))
    while True:
        F = F.copy()
        for k in range(K):
            w = np.exp(-z[:, k] * F[: table.n, k])
            w /= w.sum()
            split = table.best_split((w * z[:, k])[:, None], lambda L, R: np.abs(R - L)[:, 0])
            h = np.where(table.right(split), 1, -1)
            edge = (w * z[:, k]) @ h[: table.n]
            F[:, k] += np.log((1 + edge) / (1 - edge)) / 2 * h
        yield F


def adaboost_mh(table: Table, y: np.ndarray, K: int) -> Iterator[np.ndarray]:
    """A stump, and a vote of +1 or -1 for each class."""
    z, F = 2 * one_hot(y, K) - 1, np.zeros((table.n_rows, K))
    while True:
        D = np.exp(-z * F[: table.n])
        D /= D.sum()
        split = table.best_split(D * z, lambda L, R: np.abs(R - L).sum(axis=1))
        h = np.where(table.right(split), 1, -1)
        edges = h[: table.n] @ (D * z)
        r = np.abs(edges).sum()
        F = F + np.log((1 + r) / (1 - r)) / 2 * h[:, None] * np.where(edges >= 0, 1, -1)
        yield F


def samme(table: Table, y: np.ndarray, K: int, extra: float | None = None, **size) -> Iterator[np.ndarray]:
    """Trees that vote for a class; AdaBoost.M1 has no extra term in its steps. Ends before a step that is not positive."""
    extra = np.log(K - 1) if extra is None else extra
    own, F, w = one_hot(y, K), np.zeros((table.n_rows, K)), np.full(len(y), 1 / len(y))
    while True:
        place, S = table.tree_of(w[:, None] * own, largest, **size)
        h = first_largest(S)[place]
        wrong = h[: table.n] != y
        step = np.log(w[~wrong].sum() / w[wrong].sum()) + extra
        if step <= 0:
            return
        F = F + step * one_hot(h, K)
        w = w * np.exp(step * wrong)
        w /= w.sum()
        yield F
