"""Models in the format of treelite."""

from __future__ import annotations

from typing import Any

import numpy as np

from distboost.algorithms.base import Softmax
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.predicting import link_of
from distboost.export.forest import Forest
from distboost.io.packages import missing
from distboost.model.learned import Calibration, centred


def treelite(model: BoostingClassifier, *, probabilities: bool = False) -> Any:
    """Return a model for treelite: its predictions, its compiler TL2cgen, and the inference server FIL.

    Thresholds and leaves are float64: predictions agree with those of distboost to the last digits. Missing values are NaN, and
    category columns enter as codes (`export.codes`).

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    probabilities : bool, default=False
        Whether the predictions are the probabilities, calibrated if the model is; otherwise they are the scores. Treelite has
        the softmax alone: a model of other probabilities, such as REBEL without calibration, is an error.

    Returns
    -------
    found : treelite.Model

    Raises
    ------
    distboost.errors.DataError
        If the weak learners are similarities, or if treelite has no such probabilities.
    distboost.errors.MissingPackageError
        If treelite is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import treelite
    >>> from distboost import GAMBLEClassifier, export
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GAMBLEClassifier(n_estimators=5).fit(X, y)
    >>> scores = treelite.gtil.predict(export.treelite(model), X)
    >>> bool(np.allclose(scores[:, 0], model.scores(X), rtol=1e-12))
    True
    """
    try:
        from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation
    except ImportError as error:
        raise missing("export.treelite", "treelite", "treelite") from error
    forest = Forest.of(model, "export.treelite")
    values, base = forest.values, [0.0] * forest.n_classes
    if probabilities:
        values, base = _exponents(model, values)
    builder: Any = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=Metadata(
            num_feature=forest.n_features,
            task_type="kMultiClf",
            average_tree_output=False,
            num_target=1,
            num_class=[forest.n_classes],
            leaf_vector_shape=(1, forest.n_classes),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=forest.n_trees, target_id=[0] * forest.n_trees, class_id=[-1] * forest.n_trees
        ),
        postprocessor=PostProcessorFunc(name="softmax" if probabilities else "identity_multiclass"),
        base_scores=base,
    )
    for tree in range(forest.n_trees):
        builder.start_tree()
        for node in forest.nodes.of_tree(tree):
            _add_node(builder, forest, values, node)
        builder.end_tree()
    return builder.commit()


def _exponents(model: BoostingClassifier, values: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Return what leaves of these values add to the exponents of the softmax, and what these are without a leaf."""
    link = link_of(model)
    if not isinstance(link, Calibration | Softmax):
        raise DataError(
            f"the probabilities of this {type(model).__name__} are not a softmax of its scores, which treelite alone has.",
            remedy="Fit a calibration first: model.calibrate(X, y); or export the scores: probabilities=False.",
        )
    if isinstance(link, Softmax) or link.scales is None or link.shifts is None:
        return values / link.temperature, [0.0] * values.shape[1]
    return centred(values) * (np.array(link.scales) / link.temperature), [*link.shifts]


def _add_node(builder: Any, forest: Forest, values: np.ndarray, node: int) -> None:
    nodes = forest.nodes
    builder.start_node(int(nodes.number[node]))
    if nodes.rows[node] == nodes.rows[node]:
        builder.data_count(int(nodes.rows[node]))
        builder.sum_hess(float(nodes.weight[node]))
    if nodes.is_leaf[node]:
        builder.leaf(values[nodes.leaf[node]].tolist())
    else:
        builder.gain(float(nodes.gain[node]))
        sides = {
            "default_left": bool(nodes.missing_left[node]),
            "left_child_key": int(nodes.left[node]),
            "right_child_key": int(nodes.right[node]),
        }
        feature, codes = int(nodes.feature[node]), forest.left_codes.get(node)
        if codes is None:
            builder.numerical_test(feature, float(nodes.threshold[node]), opname="<=", **sides)
        else:
            builder.categorical_test(feature, category_list=codes, category_list_right_child=False, **sides)
    builder.end_node()
