"""What is asserted of a model in each format."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from distboost import expected_scores, export, shap_values
from distboost.estimators.inspecting import leaf_values
from distboost.model.nodes import Nodes
from tests.exports.made import as_float32, assert_labels, assert_scores


def check_onnx(model: Any, X: np.ndarray, dtype: str) -> None:
    import onnxruntime

    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    X = as_float32(X) if dtype == "float32" else X
    content = export.onnx(model, dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    codes = export.codes(model, X).astype(dtype)
    labels, probabilities, scores = session.run(["label", "probabilities", "scores"], {"X": codes})
    assert scores.dtype == probabilities.dtype == dtype
    F = model.scores(X)
    assert_scores(scores, F, tolerance)
    # A probability changes by at most the slope of the exponents times the change of the scores.
    found = model.calibration_
    slope = 1.0 if found is None else max(1.0, max(found.scales or (1.0,)) / found.temperature)
    np.testing.assert_allclose(
        probabilities, model.predict_proba(X), rtol=0, atol=8 * tolerance * max(slope * np.abs(F).max(), 1)
    )
    assert_labels(labels, model, X, tolerance)


def check_treelite(model: Any, X: np.ndarray) -> None:
    import treelite

    scores = treelite.gtil.predict(export.treelite(model), export.codes(model, X))[:, 0]
    assert_scores(scores, model.scores(X), 1e-12)
    assert_labels(model.classes_[scores.argmax(axis=1)], model, X, 1e-12)


def check_additive(model: Any, X: np.ndarray) -> None:
    values = shap_values(model, X)
    assert_scores(values.sum(axis=1) + expected_scores(model), model.scores(X), 1e-12)


def check_shap(model: Any, X: np.ndarray) -> None:
    """SHAP's own explainer, of the same trees; it knows no splits of categories: few rows of these, by all coalitions."""
    if model.learned_.ensemble.categories:
        check_shap_by_coalitions(model, X[:: max(len(X) // 3, 1)])
    else:
        check_shap_by_library(model, X)


def check_shap_by_library(model: Any, X: np.ndarray) -> None:
    import shap

    nodes, values = Nodes.of(model.learned_.ensemble), leaf_values(model)
    trees = []
    for number in range(len(nodes.starts) - 1):
        own = slice(*nodes.starts[number : number + 2])
        of_nodes = np.where(nodes.is_leaf[own, None], values[nodes.leaf[own]], 0.0)
        trees.append(
            {
                "children_left": nodes.left[own].astype(np.int32),
                "children_right": nodes.right[own].astype(np.int32),
                "children_default": np.where(nodes.missing_left, nodes.left, nodes.right)[own].astype(
                    np.int32
                ),
                "features": nodes.feature[own].astype(np.int32),
                "thresholds": np.nan_to_num(nodes.threshold[own], posinf=np.inf),
                "values": of_nodes,
                "node_sample_weight": nodes.weight[own],
            }
        )
    given = {"trees": trees, "internal_dtype": np.float64, "input_dtype": np.float64}
    explainer = shap.TreeExplainer(given, feature_perturbation="tree_path_dependent")
    theirs = explainer.shap_values(X, check_additivity=False)
    assert_scores(shap_values(model, X), np.asarray(theirs).reshape(*X.shape, -1), 1e-9)
    expected = np.atleast_1d(explainer.expected_value)
    np.testing.assert_allclose(expected_scores(model), expected, rtol=0, atol=1e-9 * np.abs(values).max())


class Game:
    """The scores of a row of which some features are known: other splits are averaged over their training rows, by weight."""

    def __init__(self, model: Any):
        self.trees = model.learned_.ensemble
        self.nodes, self.values = Nodes.of(self.trees), leaf_values(model)

    def value(self, x, known, node, root):
        nodes = self.nodes
        if nodes.is_leaf[node]:
            return self.values[nodes.leaf[node]]
        left, right, feature = root + nodes.left[node], root + nodes.right[node], nodes.feature[node]
        if feature in known:
            return self.value(x, known, left if self.goes_left(x[feature], node) else right, root)
        sides = [nodes.weight[side] * self.value(x, known, side, root) for side in (left, right)]
        return sum(sides) / nodes.weight[node]

    def goes_left(self, value, node):
        row, feature = self.nodes.category_set[node], self.nodes.feature[node]
        if row < 0:
            return self.nodes.missing_left[node] if np.isnan(value) else value <= self.nodes.threshold[node]
        is_known = value in self.trees.categories[feature].values
        return (
            value in self.trees.left_categories(row, feature) if is_known else self.nodes.missing_left[node]
        )

    def shapley(self, x):
        n = len(x)
        coalitions = [set(s) for size in range(n + 1) for s in itertools.combinations(range(n), size)]
        worth = {
            tuple(sorted(s)): sum(self.value(x, s, r, r) for r in self.nodes.starts[:-1]) for s in coalitions
        }
        found = np.zeros((n, self.values.shape[1]))
        for d, s in itertools.product(range(n), coalitions):
            if d not in s:
                share = math.factorial(len(s)) * math.factorial(n - len(s) - 1) / math.factorial(n)
                found[d] += share * (worth[tuple(sorted({*s, d}))] - worth[tuple(sorted(s))])
        return found


def check_shap_by_coalitions(model: Any, X: np.ndarray) -> None:
    """All coalitions of features, one by one."""
    game = Game(model)
    np.testing.assert_allclose(shap_values(model, X), [game.shapley(x) for x in X], atol=1e-12)
