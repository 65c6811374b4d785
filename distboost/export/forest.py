"""The trees of a model, as formats of other libraries describe them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import check_fitted, leaf_values, trees_of
from distboost.estimators.parameters import algorithm_of
from distboost.model.nodes import Nodes
from distboost.model.trees import TreeEnsemble


class Forest(NamedTuple):
    """Trees with what their leaves add to the scores.

    Attributes
    ----------
    nodes : Nodes
    values : ndarray of shape (n_leaves, n_scores), float64
    left_codes : dict of int to list of int
        The codes that go left at each node, by its place in the table, that splits categories.
    n_features : int
    n_classes : int
    votes : ndarray of shape (n_classes, n_scores), float64, or None
        If not None, the scores of the classes are ``votes @ tanh(g)`` of the sums g over the trees.
    """

    nodes: Nodes
    values: np.ndarray
    left_codes: dict[int, list[int]]
    n_features: int
    n_classes: int
    votes: np.ndarray | None = None

    @classmethod
    def of(cls, model: BoostingClassifier, what: str, has_votes: bool = False) -> Forest:
        """Return the trees of a fitted estimator; raise DataError if it has none. `what` is not possible then.

        Unless `what` `has_votes`, raise it if the scores of the classes are no sums over trees, too.
        """
        check_fitted(model)
        trees = trees_of(model, what)
        if not len(trees):
            raise DataError(
                f"the model has no trees, so that {what} has nothing to export. `outcome_` says why."
            )
        nodes, K = Nodes.of(trees), len(model.classes_)
        votes = algorithm_of(model, K).votes if has_votes else None
        values = leaf_values(model) if votes is None else trees.arrays()["values"]
        return cls(nodes, values, _left_codes(trees, nodes), trees.n_features, K, votes)

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.nodes.starts) - 1


def _left_codes(trees: TreeEnsemble, nodes: Nodes) -> dict[int, list[int]]:
    """Return the codes that go left at each split of categories."""
    found = {}
    for node in np.flatnonzero(nodes.category_set >= 0).tolist():
        words = trees.arrays()["categories"][nodes.category_set[node]]
        codes = np.arange(trees.categories[int(nodes.feature[node])].n_bins)
        is_left = (words[codes >> 6] >> (codes & 63).astype(np.uint64)) & np.uint64(1) == 1
        found[node] = codes[is_left].tolist()
    return found
