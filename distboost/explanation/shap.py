"""SHAP values: the contribution of each feature to each score of a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import check_fitted, leaf_values, trees_of
from distboost.estimators.parameters import n_threads
from distboost.estimators.predicting import mapped
from distboost.estimators.validation import finite_rows, opened_rows
from distboost.kernels import shap
from distboost.model.ensemble import kernel_rows, slices
from distboost.model.nodes import Nodes
from distboost.model.trees import TreeEnsemble
from distboost.prediction.predictor import Rows
from distboost.threads import Threads


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


_ROWS_AT_ONCE = 128  # of one thread: few, since a row takes long


def shap_values(model: BoostingClassifier, X: Any, *, background: Any = None) -> Any:
    """Return the contribution of each feature to the scores of each row: exact, path-dependent Shapley values of the trees.

    For each row and class, they sum to `model.scores(X)` minus `expected_scores(model)`. What a score is expected to be if only
    some features are known follows from the training rows in each node, by weight (TreeSHAP: Lundberg, Erion & Lee,
    *Consistent individualized feature attribution for tree ensembles*, 2018). The scores are those of `model.scores`:
    probabilities are not additive.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    X : as for `predict`
    background : as X, or None, default=None
        Rows to take the place of the training rows in each node. They are loaded into memory.

    Returns
    -------
    values : ndarray of shape (n_samples, n_features, n_classes), float64
        A lazy dask array if X is a dask array, a zarr array, or the path or URL of one.

    Raises
    ------
    distboost.errors.DataError
        If the model does not know the training rows in each node, as models of early files, and `background` is not given; or if
        its weak learners are similarities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GAMBLEClassifier, expected_scores, shap_values
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GAMBLEClassifier(n_estimators=5).fit(X, y)
    >>> values = shap_values(model, X)
    >>> values.shape
    (150, 4, 3)
    >>> bool(np.allclose(values.sum(axis=1) + expected_scores(model), model.scores(X)))
    True
    """
    check_fitted(model)
    explainer = Explainer.of(model, background, "shap_values")
    return mapped(model, X, explainer, (model.n_features_in_, explainer.values.shape[1]), np.float64)


def expected_scores(model: BoostingClassifier, *, background: Any = None) -> np.ndarray:
    """Return the expected scores of a row of which no feature is known, (n_classes,) float64: the base of `shap_values`.

    Parameters
    ----------
    model, background : as for `shap_values`

    Returns
    -------
    scores : ndarray of shape (n_classes,), float64
    """
    check_fitted(model)
    return Explainer.of(model, background, "expected_scores").expected()


class Explainer(NamedTuple):
    """What workers need to explain rows.

    Attributes
    ----------
    trees : TreeEnsemble
    paths : Paths
    values : ndarray of shape (n_leaves, n_classes), float64
    cover : ndarray of shape (n_leaves,), float64
        The share of the tree's rows in each leaf.
    """

    trees: TreeEnsemble
    paths: Paths
    values: np.ndarray
    cover: np.ndarray

    @classmethod
    def of(cls, model: BoostingClassifier, background: Any, what: str) -> Explainer:
        """Return the explainer of a fitted estimator. `what` names the function that explains, for messages."""
        trees = trees_of(model, what)
        nodes = Nodes.of(trees)
        if background is not None:
            cover = nodes.sums(_counted(model, trees, background))
        elif trees.has_covers:
            cover = nodes.weight
        else:
            raise DataError(
                f"{what} needs the number of training rows in each node, which this model does not have: it was trained, or "
                "its training began, with a version of distboost that did not store them.",
                remedy="Train it again, or explain rows that stand for the training rows: background=X.",
            )
        of_tree = cover[nodes.starts[nodes.tree[nodes.is_leaf]]]
        of_leaves = np.divide(cover[nodes.is_leaf], of_tree, out=np.zeros(len(of_tree)), where=of_tree > 0)
        return cls(trees, Paths.of(nodes, cover), leaf_values(model), of_leaves)

    def expected(self) -> np.ndarray:
        """Return the expected scores, (n_classes,) float64."""
        expected: np.ndarray = (self.cover[:, None] * self.values).sum(axis=0)
        return expected

    def __call__(self, X: Rows, threads: Threads) -> np.ndarray:
        """Return the SHAP values of raw rows X, (n, n_features) numbers."""
        self.trees.check(X)
        out = np.zeros((*X.shape, self.values.shape[1]))
        nodes, longest = _split_arrays(self.trees), self.paths.longest
        quadrature = _quadrature(longest)

        def explain(rows: slice) -> None:
            working = np.empty(longest, bool), np.empty(longest), np.empty(len(nodes[0]), bool)
            shap.shapley(
                _coded(self.trees, X[rows]), nodes, *self.paths, *quadrature, self.values, *working, out[rows]
            )

        threads.map(explain, slices(len(X), _ROWS_AT_ONCE))
        return out


def _split_arrays(trees: TreeEnsemble) -> tuple[np.ndarray, ...]:
    """Return the arrays by which `kernels.shap.goes_left` decides."""
    arrays = trees.arrays()
    n_nodes = len(arrays["feature"])
    return (
        arrays["feature"],
        arrays["threshold"],
        arrays["missing_left"],
        arrays.get("category_set", np.full(n_nodes, -1, np.int32)),
        arrays.get("categories", np.zeros((0, 4), np.uint64)),
    )


def _coded(trees: TreeEnsemble, X: np.ndarray) -> np.ndarray:
    """Return rows as kernels read them; categories are replaced by their codes."""
    return kernel_rows(trees.coded(X))


def _counted(model: BoostingClassifier, trees: TreeEnsemble, background: Any) -> np.ndarray:
    """Return the number of the background's rows in each leaf, (n_leaves,) int64."""
    arrays = trees.arrays()
    nodes, child = _split_arrays(trees), np.column_stack([arrays["left"], arrays["right"]])
    background = opened_rows(model, background)
    with Threads(n_threads(model)) as threads:
        X = finite_rows(model, background, threads)

        def count(rows: slice) -> np.ndarray:
            counts, left = np.zeros(len(arrays["values"]), np.int64), np.empty(len(child), bool)
            shap.count_leaves(
                _coded(trees, X[rows]), nodes, arrays["roots"], arrays["value_offsets"], child, left, counts
            )
            return counts

        counts: np.ndarray = sum(
            threads.map(count, slices(len(X))), np.zeros(len(arrays["values"]), np.int64)
        )
    return counts


def _quadrature(longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and weights, (longest + 1, n) float64: row m integrates polynomials of degree m - 1 from 0 to 1 exactly."""
    points, weights = np.zeros((2, longest + 1, (longest + 1) // 2))
    for m in range(1, longest + 1):
        n = (m + 1) // 2
        x, w = np.polynomial.legendre.leggauss(n)
        points[m, :n], weights[m, :n] = (x + 1) / 2, w / 2
    return points, weights
