"""The slots of a tree's histograms."""

from __future__ import annotations

import numpy as np


def assert_no_histogram_is_lost(rows) -> None:
    """After a tree is grown, each slot is free, or belongs to a node whose histogram the next question drops."""
    for tree in trees_of(rows):
        assert set(tree.slots) <= set(rows._forgotten)
        assert sorted([*tree.histograms._free, *tree.slots.values()]) == list(
            range(len(tree.histograms.pool))
        )


def trees_of(rows):
    """The histograms of the growing tree: one for each part of the features in this process, or one on a cluster."""
    return [part.tree for part in rows.tree.parts] if hasattr(rows.tree, "parts") else [rows.tree]


def tree_of(rows):
    """The histograms of the first part of the features."""
    return trees_of(rows)[0]


def histogram_of(rows, node):
    """A node's histogram over all features."""
    return np.concatenate([tree.histograms.pool[tree.slots[node]] for tree in trees_of(rows)])
