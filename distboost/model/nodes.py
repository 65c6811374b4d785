"""All nodes of an ensemble's trees as one table: what tables, texts, pictures and exports of a model are made from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from distboost.model.trees import TreeEnsemble


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes of trees. In each tree, inner nodes come first, each before its children, then the leaves; node 0 is the root.

    Attributes
    ----------
    starts : ndarray of shape (n_trees + 1,), int64
        The first node of each tree in the table.
    tree, number : ndarray of shape (n,), int64
        The tree of each node, and its number in the tree.
    is_leaf : ndarray of shape (n,), bool
    feature, left, right : ndarray of shape (n,), int64
        -1 for leaves. Children are numbers in the tree.
    threshold, gain : ndarray of shape (n,), float64
        NaN for leaves. A split of categories has the threshold NaN, too.
    missing_left : ndarray of shape (n,), bool
    category_set : ndarray of shape (n,), int64
        The row of the ensemble's sets of categories, -1 for all other nodes.
    leaf : ndarray of shape (n,), int64
        The row of the ensemble's leaf values; -1 for inner nodes.
    rows, weight : ndarray of shape (n,), float64
        The cover (`trees.tree.Cover`), in the user's units; NaN if the ensemble does not know it.
    """

    starts: np.ndarray
    tree: np.ndarray
    number: np.ndarray
    is_leaf: np.ndarray
    feature: np.ndarray
    left: np.ndarray
    right: np.ndarray
    threshold: np.ndarray
    gain: np.ndarray
    missing_left: np.ndarray
    category_set: np.ndarray
    leaf: np.ndarray
    rows: np.ndarray
    weight: np.ndarray

    @classmethod
    def of(cls, ensemble: TreeEnsemble) -> Nodes:
        """Return the nodes of all trees of an ensemble."""
        arrays = ensemble.arrays()
        roots, offsets = arrays["roots"], arrays["value_offsets"]
        n_inner, n_leaves = np.diff(roots), np.diff(offsets)
        starts = roots + offsets
        inner = np.arange(roots[-1]) + np.repeat(offsets[:-1], n_inner)
        leaves = np.arange(offsets[-1]) + np.repeat(roots[1:], n_leaves)
        tree = np.repeat(np.arange(len(n_inner)), n_inner + n_leaves)

        def column(name: str, missing: Any) -> np.ndarray:
            found = np.full(starts[-1], missing)
            found[inner] = arrays[name]
            return found

        def child(name: str) -> np.ndarray:
            side = arrays[name].astype(np.int64)
            found = np.full(starts[-1], -1)
            found[inner] = np.where(side >= 0, side, ~side + np.repeat(n_inner, n_inner))
            return found

        leaf = np.full(starts[-1], -1)
        leaf[leaves] = np.arange(offsets[-1])
        unknown = np.full(starts[-1], np.nan)
        nodes = cls(
            starts=starts,
            tree=tree,
            number=np.arange(starts[-1]) - starts[tree],
            is_leaf=leaf >= 0,
            feature=column("feature", -1),
            left=child("left"),
            right=child("right"),
            threshold=column("threshold", np.nan),
            gain=column("gain", np.nan),
            missing_left=column("missing_left", False),
            category_set=column("category_set", -1) if "category_set" in arrays else np.full(starts[-1], -1),
            leaf=leaf,
            rows=unknown,
            weight=unknown,
        )
        if not ensemble.has_covers:
            return nodes
        weight = arrays["leaf_weight"] / ensemble.weight_scale
        return replace(nodes, rows=nodes.sums(arrays["leaf_rows"]), weight=nodes.sums(weight))

    def sums(self, of_leaves: np.ndarray) -> np.ndarray:
        """Return the sums over the leaves below each node, (n,) float64, of numbers of the leaves, (n_leaves,)."""
        found = np.zeros(len(self.tree))
        found[self.is_leaf] = of_leaves
        n_inner = (np.diff(self.starts) - 1) // 2
        # The last inner nodes of all trees, then those before them, and so on: children come after their parents.
        for number in range(int(n_inner.max(initial=0)) - 1, -1, -1):
            first = self.starts[:-1][n_inner > number]
            node = first + number
            found[node] = found[first + self.left[node]] + found[first + self.right[node]]
        return found

    def of_tree(self, tree: int) -> range:
        """Return the places of a tree's nodes in the table."""
        return range(int(self.starts[tree]), int(self.starts[tree + 1]))
