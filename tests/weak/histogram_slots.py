"""The slots of a tree's histograms."""

from __future__ import annotations


def assert_no_histogram_is_lost(rows) -> None:
    """After a tree is grown, each slot is free, or belongs to a node whose histogram the next question drops."""
    tree = rows.tree
    assert set(tree.slots) <= set(rows._forgotten)
    assert sorted([*tree.histograms._free, *tree.slots.values()]) == list(range(len(tree.histograms.pool)))
