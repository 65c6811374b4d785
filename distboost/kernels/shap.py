"""Shapley values of trees: what each feature contributes to the scores of a row."""

import numpy as np

from distboost.kernels._jit import compiled, kernel


@compiled
def goes_left(x, feature, threshold, missing_left, category_set, categories, left):
    """Set left[i] to whether the row goes left at node i. Splits of categories read codes: see `kernels.predict`."""
    # IN: x (D,) float; feature, category_set (N,) int64; threshold (N,) float64; missing_left (N,) bool;
    #     categories (sets, 4) uint64
    # OUT: left (N,) bool
    for i in range(feature.shape[0]):
        value = x[feature[i]]
        if np.isnan(value):
            left[i] = missing_left[i]
        elif category_set[i] < 0:
            left[i] = value <= threshold[i]
        else:
            code = np.int64(value)
            left[i] = (categories[category_set[i], code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == 1


@kernel
def shapley(
    X,
    nodes,
    elements,
    feature,
    zero,
    conditions,
    condition,
    on_left,
    points,
    weights,
    values,
    one,
    share,
    left,
    out,
):
    """Add to out[i, d] the Shapley values of feature d for each path to a leaf.

    A path is a game: each of its features j multiplies the leaf's value by o_j (0 or 1, whether row i satisfies the conditions on
    j) if it is in a coalition, and by z_j (the share of the training rows that do) otherwise. With T_j = t o_j + (1 - t) z_j, its
    Shapley value is the leaf's value times (o_j - z_j) times the integral of prod_{l != j} T_l over t from 0 to 1: the powers of
    t and 1 - t have the weights of the coalitions as their integrals. Gauss-Legendre quadrature integrates these polynomials
    exactly, without the cancellations of the recursion that removes features one by one.
    """
    # IN: X (n, D) float; nodes: the arguments of `goes_left`; the elements of path p are elements[p]:elements[p + 1], each with a
    #     feature (E,) int64, zero (E,) float64, and conditions conditions[e]:conditions[e + 1]: the node condition (C,) int64
    #     must send the row left or not, on_left (C,) bool; points, weights (m + 1, m): of the quadrature for paths of 1 .. m
    #     elements; values (paths, K) float64
    # OUT: out (n, D, K) float64. one (m,) bool, share (m,) float64 and left (N,) bool are working memory
    for i in range(X.shape[0]):
        goes_left(X[i], nodes[0], nodes[1], nodes[2], nodes[3], nodes[4], left)
        for p in range(elements.shape[0] - 1):
            first, m = elements[p], elements[p + 1] - elements[p]
            impossible = False
            for j in range(m):
                one[j] = True
                for c in range(conditions[first + j], conditions[first + j + 1]):
                    one[j] &= left[condition[c]] == on_left[c]
                share[j] = 0.0
                impossible |= not one[j] and zero[first + j] == 0.0
            if impossible:  # no coalition reaches the leaf, whatever any feature does
                continue
            for q in range((m + 1) // 2):
                t = points[m, q]
                product = weights[m, q]
                for j in range(m):
                    product *= (1.0 - t) * zero[first + j] + (t if one[j] else 0.0)
                for j in range(m):
                    share[j] += product / ((1.0 - t) * zero[first + j] + (t if one[j] else 0.0))
            for j in range(m):
                factor = share[j] * ((1.0 if one[j] else 0.0) - zero[first + j])
                d = feature[first + j]
                for k in range(values.shape[1]):
                    out[i, d, k] += factor * values[p, k]


@kernel
def count_leaves(X, nodes, roots, offsets, child, left, counts):
    """Add to counts[l] the number of rows of X that fall into leaf l."""
    # IN: X (n, D) float; nodes: the arguments of `goes_left`; roots, offsets (trees + 1,) int64: the first node and the
    #     first leaf of each tree; child (N, 2) int32: left and right; below 0: the leaf ~child
    # OUT: counts (leaves,) int64. left (N,) bool is working memory
    for i in range(X.shape[0]):
        goes_left(X[i], nodes[0], nodes[1], nodes[2], nodes[3], nodes[4], left)
        for tree in range(roots.shape[0] - 1):
            node = 0 if roots[tree + 1] > roots[tree] else -1
            while node >= 0:
                node = child[roots[tree] + node, 0 if left[roots[tree] + node] else 1]
            counts[offsets[tree] + ~node] += 1
