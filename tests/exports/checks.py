"""What is asserted of a model in each format."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost import expected_scores, export, shap_values
from tests.exports.made import as_float32, assert_labels, assert_scores


def check_onnx(model: Any, X: np.ndarray, dtype: str) -> None:
    import onnxruntime

    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    X = as_float32(X) if dtype == "float32" else X
    content = export.onnx(model, dtype=dtype).SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    labels, probabilities, scores = session.run(["label", "probabilities", "scores"], {"X": X})
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

    scores = treelite.gtil.predict(export.treelite(model), X)[:, 0]
    assert_scores(scores, model.scores(X), 1e-12)
    assert_labels(model.classes_[scores.argmax(axis=1)], model, X, 1e-12)


def check_additive(model: Any, X: np.ndarray) -> None:
    values = shap_values(model, X)
    assert_scores(values.sum(axis=1) + expected_scores(model), model.scores(X), 1e-12)


def check_shap(model: Any, X: np.ndarray) -> None:
    """SHAP's own explainer, of the same trees."""
    import shap

    from distboost.estimators.inspecting import leaf_values
    from distboost.model.nodes import Nodes

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
