"""The leaf of a tree that each row falls into, from the bins of the row."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.categories import in_set
from distboost.kernels.row_lanes import COLUMN_LANES, ROW_LANES, choose_rows, transpose_bins

TILE = 64  # rows that descend a tree together


@kernel
def choose_leaves(bins, columns, nodes, n_leaves, rows, out):
    """Set out[j] to the leaf that row rows[j] falls into.

    No row descends the tree: see `predict.add_ranked_trees`. The tree has at most 256 leaves, and splits no categories.
    """
    # IN: bins (n, D) uint8; columns (groups,) uint64, ascending: the first of some COLUMN_LANES columns each; nodes (m, 4)
    #     uint32: see `choose_rows`, with COLUMN counted through all groups, and LEFT and RIGHT: leaves, then after n_leaves the
    #     nodes. A node comes before its children. rows (r,) int32
    # OUT: out (r,) int32
    lanes = np.zeros((COLUMN_LANES * columns.shape[0], ROW_LANES), np.uint8)
    chosen = np.empty((n_leaves + nodes.shape[0], ROW_LANES), np.uint8)
    for leaf in range(n_leaves):
        chosen[leaf] = leaf
    n_last = np.intp(bins.shape[1]) - np.intp(columns[-1])  # columns of the last group
    n_beyond = max(COLUMN_LANES - n_last, 0)
    for first in range(0, rows.shape[0], ROW_LANES):
        n = min(ROW_LANES, rows.shape[0] - first)
        highest = rows[first]
        for j in range(n):
            highest = max(highest, rows[first + j])
        if n == ROW_LANES and (bins.shape[0] - 1 - highest) * bins.shape[1] >= n_beyond:
            for g in range(columns.shape[0]):
                transpose_bins(bins, rows, first, columns[g], lanes, COLUMN_LANES * g)
        else:
            for j in range(n):
                for g in range(columns.shape[0]):
                    for c in range(min(COLUMN_LANES, bins.shape[1] - np.intp(columns[g]))):
                        lanes[COLUMN_LANES * g + c, j] = bins[rows[first + j], np.intp(columns[g]) + c]
        for node in range(nodes.shape[0] - 1, -1, -1):
            choose_rows(chosen, n_leaves + node, lanes, 0, nodes, node)
        for j in range(n):
            out[first + j] = chosen[n_leaves, j]


@kernel
def descend(bins, nodes, sets, child, rows, out):
    """Set out[j] to the leaf that row rows[j] falls into: a node that is its own child.

    Several rows descend together, without branches, so that the processor need not wait for one to take its next step.
    """
    # IN: bins (n, D) uint8; nodes (m, 3) int64: the feature, the split's bin, and the bin of missing values if these go left,
    #     else -1; sets (m, SET_WORDS) uint64, which are read where the split's bin < 0; child (m, 2) int32: left and right;
    #     rows (r,) int32
    # OUT: out (r,) int32
    has_sets = sets.shape[1] > 0
    for first in range(0, rows.shape[0], TILE):
        last = min(first + TILE, rows.shape[0])
        out[first:last] = 0
        moved = np.int32(1)
        while moved != 0:
            moved = np.int32(0)
            for j in range(first, last):
                m = np.uintp(out[j])
                feature, split_bin, missing_left = nodes[m]
                b = np.int64(bins[np.uintp(rows[j]), np.uintp(feature)])
                right = np.uintp((b > split_bin) & (b != missing_left))
                if has_sets and split_bin < 0:
                    right = np.uintp(not in_set(sets, m, b))
                moved |= child[m, right] ^ out[j]
                out[j] = child[m, right]
