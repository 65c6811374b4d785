"""Forests of scikit-learn as ensembles of distboost: the same probabilities, to the last bit, in a fraction of the time.

scikit-learn sends each row down each tree. distboost's kernels take each decision of a tree for many rows at once. A forest may
be the last step of a pipeline; the others prepare the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

from distboost.model.trees import TreeEnsemble
from distboost.threads import Threads

FORESTS = (ExtraTreesClassifier, RandomForestClassifier)
MOST_CATEGORIES = 64  # of a feature; the rarest share one
ROWS = 2048  # prepared at once


def with_categories(forest: Any, categorical: Sequence[int]) -> Any:
    """Return a forest to which each category of these columns is a feature: the order of codes means nothing."""
    encoder = OneHotEncoder(
        max_categories=MOST_CATEGORIES, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    one_hot = ("categories", encoder, list(categorical))
    return make_pipeline(ColumnTransformer([one_hot], remainder="passthrough"), forest)


def is_forest(classifier: Any) -> bool:
    """Whether a classifier is a forest, or a pipeline that ends with one."""
    return type(classifier[-1] if isinstance(classifier, Pipeline) else classifier) in FORESTS


@dataclass(frozen=True)
class ForestCommittee:
    """A forest of scikit-learn. Its scores are probabilities; its members are its trees."""

    ensemble: TreeEnsemble
    prepare: Callable[[np.ndarray], Any] | None = None

    takes_first = False

    @classmethod
    def of(cls, classifier: Any) -> ForestCommittee:
        """Return a fitted forest with one output."""
        prepare = None
        if isinstance(classifier, Pipeline):
            prepare, classifier = classifier[:-1].transform, classifier[-1]
        trees = [_arrays_of(member.tree_) for member in classifier.estimators_]
        arrays = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
        arrays["roots"] = np.cumsum([0, *(len(tree["feature"]) for tree in trees)])
        arrays["value_offsets"] = np.cumsum([0, *(len(tree["values"]) for tree in trees)])
        n_features, n_classes = classifier.n_features_in_, len(classifier.classes_)
        ensemble = TreeEnsemble.from_arrays(arrays, n_features, n_classes, 1, has_covers=False)
        return cls(ensemble, prepare)

    @property
    def n_classes(self) -> int:
        return self.ensemble.n_scores

    def scores(self, X: np.ndarray) -> np.ndarray:
        found = np.empty((len(X), self.n_classes))
        for first in range(0, len(X), ROWS):
            rows = self._prepared(X[first : first + ROWS])
            found[first : first + ROWS] = self.ensemble.scores(rows, Threads(1)) / len(self.ensemble)
        return found

    def decoded(self, G: np.ndarray) -> np.ndarray:
        return G

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        return F

    def members(self, X: np.ndarray) -> Iterator[np.ndarray]:
        n_trees = len(self.ensemble)
        add = self.ensemble.adder(self._prepared(X), 0, n_trees)
        for t in range(n_trees):
            member = np.zeros((len(X), self.n_classes))
            add(t, t + 1, member)
            yield member

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        """Return rows as the forest compares them."""
        if self.prepare is not None:
            rows = self.prepare(X)
            X = rows.toarray() if issparse(rows) else np.asarray(rows)
        with np.errstate(over="ignore"):
            return X.astype(np.float32, copy=False)


def _arrays_of(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree as `TreeEnsemble` names them: of its inner nodes, and the class shares of its leaves."""
    is_inner = tree.children_left >= 0
    number = np.where(is_inner, np.cumsum(is_inner) - 1, -np.cumsum(~is_inner))  # of a leaf: ~0, ~1, ...
    return {
        "feature": tree.feature[is_inner].astype(np.int32),
        "threshold": tree.threshold[is_inner],
        "missing_left": tree.missing_go_to_left[is_inner].astype(bool),
        "left": number[tree.children_left[is_inner]].astype(np.int32),
        "right": number[tree.children_right[is_inner]].astype(np.int32),
        "gain": np.zeros(np.count_nonzero(is_inner)),
        "values": tree.value[~is_inner, 0],
    }
