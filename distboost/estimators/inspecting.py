"""The trees of a fitted estimator, with the names and values that people know."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from distboost.errors import DataError, LimitError
from distboost.estimators.parameters import CommonParameters, algorithm_of, check_own
from distboost.io.packages import missing
from distboost.model.ensemble import Ensemble
from distboost.model.learned import Learned
from distboost.model.nodes import Nodes
from distboost.model.trees import TreeEnsemble

# The largest length of `feature_importances_`: a file may give any number of features.
MOST_IMPORTANCES = 2**24


def importances(ensemble: Ensemble, n_features: int) -> np.ndarray:
    """Return the total gain of the splits on each feature as a fraction of the sum, (n_features,) float64."""
    if n_features > MOST_IMPORTANCES:
        raise LimitError(
            f"the model has {n_features} features, but the limit of feature_importances_ is {MOST_IMPORTANCES}.",
            remedy="Use 'distboost inspect' to see the most important ones.",
            value=n_features,
        )
    found: np.ndarray = np.zeros(n_features)
    features, gains = ensemble.gains()
    found[features] = gains
    total = float(found.sum())
    return found / total if total > 0 else found


def check_fitted(model: Any) -> None:
    """Raise ArgumentError if a model is none of distboost, NotFittedError if it is not fitted."""
    check_own(model, "model", "a fitted estimator")
    check_is_fitted(model, "classes_")


def trees_of(estimator: CommonParameters, what: str) -> TreeEnsemble:
    """Return the trees of a fitted estimator; raise DataError if its weak learners are no trees. `what` is not possible then."""
    ensemble = estimator.learned_.ensemble
    if not isinstance(ensemble, TreeEnsemble):
        raise DataError(
            f"{what} is for trees, but the weak learners of this ``{type(estimator).__name__}`` are similarities "
            "(``weak_learner='similarity'``), which have neither nodes nor splits.",
            remedy="Train with ``weak_learner='tree'``.",
        )
    return ensemble


def checked_tree(estimator: CommonParameters, tree: int, what: str) -> TreeEnsemble:
    """Return the trees of a fitted estimator; raise DataError unless it has one of this number."""
    trees = trees_of(estimator, what)
    n_trees = len(trees) * trees.per_round
    if not n_trees:
        raise DataError(f"the model has no trees, so that {what} has nothing to show. `outcome_` says why.")
    if isinstance(tree, bool) or not (isinstance(tree, Integral) and 0 <= tree < n_trees):
        raise DataError(
            f"there is no tree {tree!r:.100}: the model has {n_trees} trees.",
            remedy=f"Pass a number from 0 to {n_trees - 1}.",
            value=tree,
        )
    return trees


def leaf_values(estimator: CommonParameters) -> np.ndarray:
    """Return what each leaf adds to the scores of the classes, (n_leaves, n_classes) float64.

    Raise DataError if the scores are no sums over trees.
    """
    learned: Learned = estimator.learned_
    algorithm = algorithm_of(estimator, len(learned.classes))
    if algorithm.votes is not None:
        raise DataError(
            f"the scores of this ``{type(estimator).__name__}`` are no sums over trees, so that no leaf has a value for a "
            "class: ``decoding`` is 'votes'.",
            remedy="Train with ``decoding='sum'``.",
        )
    return algorithm.decoded(learned.ensemble.arrays()["values"])


def names_of(estimator: CommonParameters) -> np.ndarray:
    """Return the names of the features, (n_features,) object: "f0", "f1", and so on if the training rows had none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = np.array([f"f{d}" for d in range(estimator.n_features_in_)], dtype=object)
    return np.asarray(names)


def to_dataframe(estimator: CommonParameters) -> Any:
    """Return a pandas DataFrame with a row for each node: see `BoostingClassifier.to_dataframe`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise missing("to_dataframe", "pandas", "pandas") from error
    ensemble = trees_of(estimator, "to_dataframe")
    nodes, values = Nodes.of(ensemble), leaf_values(estimator)

    def child(number: np.ndarray) -> list[str | None]:
        return [
            None if n < 0 else f"{tree}-{n}"
            for tree, n in zip(nodes.tree.tolist(), number.tolist(), strict=True)
        ]

    names = names_of(estimator)
    of_leaves = np.full((len(nodes.tree), values.shape[1]), np.nan)
    of_leaves[nodes.is_leaf] = values[nodes.leaf[nodes.is_leaf]]
    columns = {
        "Tree": nodes.tree,
        "Node": nodes.number,
        "ID": child(nodes.number),
        "Feature": ["Leaf" if d < 0 else str(names[d]) for d in nodes.feature.tolist()],
        "Split": nodes.threshold,
        "Yes": child(nodes.left),
        "No": child(nodes.right),
        "Missing": child(np.where(nodes.missing_left, nodes.left, nodes.right)),
        "Gain": nodes.gain,
        "Cover": nodes.rows,
        "Weight": nodes.weight,
        "Category": left_categories(ensemble, nodes),
    }
    classes = estimator.learned_.classes.tolist()
    columns |= {f"Value {label}": of_leaves[:, k] for k, label in enumerate(classes)}
    return pd.DataFrame(columns)


def left_categories(trees: TreeEnsemble, nodes: Nodes) -> list[list[Any] | None]:
    """Return the categories that go left at each node; None where a node does not split categories."""
    return [
        None if row < 0 else trees.left_categories(row, feature)
        for row, feature in zip(nodes.category_set.tolist(), nodes.feature.tolist(), strict=True)
    ]


def listed(categories: list[Any], most: int) -> str:
    """Return some categories as text, the first ones if there are more than `most`.

    >>> listed([1.0, 2.5, 3.0], 2)
    '1, 2.5, ..'
    """
    named = [f"{one:g}" if isinstance(one, float) else str(one) for one in categories[:most]]
    return ", ".join([*named, ".."] if len(categories) > most else named)
