"""Prediction: an ensemble of trees is applied to rows of raw values."""

import numpy as np

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.categories import in_set
from distboost.kernels.row_lanes import (
    COLUMN,
    ROW_LANES,
    SCORE_LANES,
    add_scores,
    choose_members,
    choose_rows,
    divide_words,
)

# The values and scores of this many rows stay in the cache while all trees are applied to them.
TILE_ROWS = 512
# The leaves of a few trees stay in the cache while the rows of a tile are applied to them, and a row's scores in registers while
# the values of these trees are added.
RANKED_ROWS, RANKED_TREES = 256, 16
# The categories of a row are looked up for some trees together. A round alone, as stages need it, looks up too much.
SET_TREES = 8


@kernel
def rank_rows(X, columns, features, thresholds, offsets, missing, x, low, ranks):
    """Set ranks[g * C + c, j] to the number of column c's thresholds below X[g * ROW_LANES + j, features[c]], c in `columns`.

    The rank of a missing value is `missing`. In NumPy, for the other values of one column:
    ``np.searchsorted(thresholds, x, side="left")``. Hence x <= thresholds[b] exactly if the rank of x is <= b.
    """
    # IN: X (n, D) float; columns (m,) uint64; features (C,) uint64; thresholds (E,) float64: those of column c are
    #     thresholds[offsets[c]:offsets[c + 1]], ascending, filled up with inf to 2^b - 1 numbers; offsets (C + 1,) uint64;
    #     missing int
    # OUT: ranks (groups * C, ROW_LANES) unsigned; places beyond the last row are set, too. x (ROW_LANES,) float64 and
    #      low (ROW_LANES,) uint64 are working memory
    one = np.uint64(1)
    for g in range(-(-X.shape[0] // ROW_LANES)):
        n = min(ROW_LANES, X.shape[0] - g * ROW_LANES)
        for c in columns:
            for j in range(ROW_LANES):
                low[j] = offsets[c]
            for j in range(n):
                x[j] = X[g * ROW_LANES + j, features[c]]
            # Binary search of all rows at once, without branches. After each step, the thresholds before `low` are below x.
            half = (offsets[c + one] - offsets[c] + one) >> one
            while half:
                for j in range(ROW_LANES):
                    low[j] += half if thresholds[low[j] + half - one] < x[j] else np.uint64(0)
                half >>= one
            for j in range(ROW_LANES):
                ranks[g * features.shape[0] + c, j] = low[j] - offsets[c] if x[j] == x[j] else missing


@inlined
def look_up(ranks, first_rank, sets, block, words, members, first):
    """Set rows of `members` from `first` on to the splits of a block of trees at which the categories of some rows go left."""
    # Unsigned numbers: others would be compared with 0 each time.
    begin, end = np.uintp(sets.starts[block]), np.uintp(sets.starts[block + 1])
    per_column = np.uintp(4 // members.itemsize)
    for s in range(begin, end):
        row = np.uintp(first_rank) + sets.ranked[s]
        for j in range(np.uintp(ROW_LANES)):
            words[0, j] = sets.tables[s, np.uintp(ranks[row, j]) & np.uintp(255)]
        divide_words(words, members, np.uintp(first) + per_column * (s - begin))


@kernel
def add_ranked_trees(
    ranks, n_columns, nodes, starts, values, first, last, sets, members, words, chosen, leaf, scores
):
    """Add to scores[i] the value of the leaf that row i falls into, for each of the trees first .. last - 1, in this order.

    No row descends a tree. Instead, each node chooses for all rows, from the last node to the root, between the leaves that its
    children have chosen. These are more comparisons, but one vector instruction makes many of them, and none depends on where the
    row was sent before. So a tree of at most 256 leaves, whose numbers fit in a byte, takes a fraction of the time.

    A vector instruction cannot look up the set of a split of categories. But one look-up tells at which of 32 splits a row's
    category goes left, so that each split has only one bit to test.
    """
    # IN: ranks (groups * n_columns, ROW_LANES) unsigned: see `rank_rows`; nodes (nodes, 4) uint32: see `choose_rows`, with LEFT
    #     and RIGHT rows of `chosen`: the leaves of the tree, then after `most` leaves its nodes; starts (trees + 1, 2) int64: the
    #     first node and the first leaf of each tree; values (leaves, width) float64, width: a multiple of SCORE_LANES;
    #     sets: None, or the `SetColumns` of all trees. Of a split of categories, COLUMN - n_columns is the place of its bit BOUND
    #     among the lanes of its block's columns
    # OUT: scores (n, width) float64. chosen (2 most, ROW_LANES), of which the first `most` rows hold the numbers of leaves, and
    #      leaf (RANKED_TREES, RANKED_ROWS) uint32 are working memory; so are, if there are sets, members (lanes of a block for
    #      RANKED_ROWS rows, ROW_LANES) and words (1, ROW_LANES) uint32
    most = chosen.shape[0] >> 1
    for start in range(0, scores.shape[0], RANKED_ROWS):
        n = min(RANKED_ROWS, scores.shape[0] - start)
        for begin in range(first, last, RANKED_TREES):
            n_trees = min(RANKED_TREES, last - begin)
            for t in range(n_trees):
                root, end, first_leaf = starts[begin + t, 0], starts[begin + t + 1, 0], starts[begin + t, 1]
                top = most if end > root else 0
                for i in range(0, n, ROW_LANES):
                    first_rank = (start + i) // ROW_LANES * n_columns
                    if sets is not None:
                        first_member = i // ROW_LANES * (sets.most * (4 // members.itemsize))
                        if t == 0 or (begin + t) % SET_TREES == 0:
                            block = (begin + t) // SET_TREES
                            look_up(ranks, first_rank, sets, block, words, members, first_member)
                    for node in range(end - 1, root - 1, -1):
                        if sets is not None and nodes[node, COLUMN] >= n_columns:
                            lanes = first_member - n_columns
                            choose_members(chosen, most + node - root, members, lanes, nodes, node)
                        else:
                            choose_rows(chosen, most + node - root, ranks, first_rank, nodes, node)
                    for j in range(ROW_LANES):
                        leaf[t, i + j] = first_leaf + chosen[top, j]
            for i in range(n):
                for k in range(0, scores.shape[1], SCORE_LANES):
                    add_scores(scores, start + i, k, values, leaf, i, n_trees)


@kernel
def add_trees(
    X, feature, threshold, missing_left, left, right, category_set, categories, roots, values, value_offsets, first, last,
    scores,
):  # fmt: skip
    """Add to scores[i] the value of the leaf that row i falls into, for each of the trees first .. last - 1, in this order.

    The arrays hold the nodes and the leaves of all trees, concatenated: the nodes of tree t begin at roots[t], its leaves at
    value_offsets[t]. Children are numbered within the tree, and a child below 0 is the leaf ~child. A value goes left if it is at
    most the threshold, or if it is missing and missing_left is set. The bin of a category goes left if the node's set has it.

    All rows of a tile descend a tree together, level by level: the processor must execute the steps of one row in turn, but it
    can overlap the steps of different rows.
    """
    # IN: X (n, D) float; feature, left, right (nodes,) int32; threshold (nodes,) float64; missing_left (nodes,) bool;
    #     category_set (nodes,) int32: the place in categories (n_sets, SET_WORDS) uint64, or -1 (no nodes: no categories);
    #     roots, value_offsets (trees + 1,) int64; values (leaves, K) float64
    # OUT: scores (n, K) float
    size = min(TILE_ROWS, X.shape[0])
    node, inside = np.empty(size, np.int32), np.empty(size, np.int32)
    has_sets = category_set.shape[0] > 0
    for start in range(0, X.shape[0], TILE_ROWS):
        n = min(TILE_ROWS, X.shape[0] - start)
        for t in range(first, last):
            root = roots[t]
            n_inside = n if roots[t + 1] > root else 0  # rows that have not reached a leaf
            for j in range(n):
                node[j] = 0 if n_inside else -1
                inside[j] = j
            while n_inside:
                still = 0
                for m in range(n_inside):
                    j = inside[m]
                    at = root + node[j]
                    x = np.float64(X[start + j, feature[at]])
                    is_left = (x <= threshold[at]) | (np.isnan(x) & missing_left[at])
                    if has_sets and category_set[at] >= 0 and not np.isnan(x):
                        is_left = in_set(categories, category_set[at], np.int64(x))
                    child = left[at] if is_left else right[at]
                    node[j] = child
                    inside[still] = j  # the next row overwrites this if the child is a leaf
                    still += child >= 0
                n_inside = still
            for j in range(n):
                v, f = values[value_offsets[t] + ~node[j]], scores[start + j]
                for k in range(v.shape[0]):
                    f[k] += v[k]
