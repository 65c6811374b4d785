"""The paths of trees from the root to each leaf, as games whose players are features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.model.nodes import Nodes


class Paths(NamedTuple):
    """One path for each leaf, in the order of the leaves. An element of a path is a feature on which it splits, once or more.

    Attributes
    ----------
    elements : ndarray of shape (n_leaves + 1,), int64
        Where the elements of each path begin.
    feature, zero : ndarray of shape (E,), int64 and float64
        The feature of each element, and the share of the training rows that satisfy its conditions.
    conditions : ndarray of shape (E + 1,), int64
        Where the conditions of each element begin.
    condition, on_left : ndarray of shape (C,), int64 and bool
        The node of each condition, counted over the inner nodes of all trees, and whether it is to send a row left.
    """

    elements: np.ndarray
    feature: np.ndarray
    zero: np.ndarray
    conditions: np.ndarray
    condition: np.ndarray
    on_left: np.ndarray

    @classmethod
    def of(cls, nodes: Nodes, cover: np.ndarray) -> Paths:
        """Return the paths of all trees; `cover`, (n,) float64, is that of each node."""
        parent, is_left = _parents(nodes)
        path, node = _steps(nodes, parent)
        feature = nodes.feature[parent[node]]
        order = np.lexsort((feature, path))
        path, node, feature = path[order], node[order], feature[order]
        begins = np.ones(len(path), bool)
        begins[1:] = (path[1:] != path[:-1]) | (feature[1:] != feature[:-1])
        first = np.flatnonzero(begins)
        # A node without rows in the background passes half of what reaches it, which is nothing, to either side.
        above = cover[parent]
        share = np.divide(cover, above, out=np.full(len(cover), 0.5), where=above > 0)
        inner = np.cumsum(~nodes.is_leaf) - 1
        return cls(
            np.searchsorted(path[first], np.arange(nodes.is_leaf.sum() + 1)),
            feature[first],
            np.multiply.reduceat(share[node], first) if len(first) else np.zeros(0),
            np.append(first, len(path)),
            inner[parent[node]],
            is_left[node],
        )

    @property
    def longest(self) -> int:
        """The largest number of elements of a path."""
        return int(np.diff(self.elements).max(initial=0))


def _parents(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each node's parent in the table, (n,) int64, its own for a root; and whether it is the left child."""
    parent, is_left = np.arange(len(nodes.tree)), np.zeros(len(nodes.tree), bool)
    inner = np.flatnonzero(~nodes.is_leaf)
    root = nodes.starts[nodes.tree[inner]]
    left, right = root + nodes.left[inner], root + nodes.right[inner]
    parent[left] = parent[right] = inner
    is_left[left] = True
    return parent, is_left


def _steps(nodes: Nodes, parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes below the root on the path to each leaf: the number of the path, and the node's place in the table."""
    node = np.flatnonzero(nodes.is_leaf)
    path = np.arange(len(node))
    paths, found = [path[:0]], [node[:0]]
    while len(node):
        inside = parent[node] != node
        path, node = path[inside], node[inside]
        paths.append(path)
        found.append(node)
        node = parent[node]
    return np.concatenate(paths), np.concatenate(found)
