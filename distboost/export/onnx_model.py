"""Models as ONNX graphs.

Trees become one operator of the domain ai.onnx.ml. `TreeEnsembleRegressor` adds vectors of float32 and nothing else. So in
double, or with splits of categories, `TreeEnsemble` finds the leaf of each tree instead, and the leaves' values are gathered and
added.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from distboost.algorithms.base import NormalisedSigmoids, Shares, Softmax
from distboost.errors import DataError
from distboost.estimators.base import BoostingClassifier
from distboost.estimators.inspecting import names_of, trees_of
from distboost.estimators.predicting import link_of
from distboost.export.forest import Forest
from distboost.io.packages import missing
from distboost.model.learned import Calibration

OPSET = 18
TREES_AT_ONCE = 64  # whose values are gathered together: (rows, trees, classes) numbers are in memory


def onnx(model: BoostingClassifier, *, dtype: str = "float32") -> Any:
    """Return a model as an ONNX graph, for onnxruntime and other libraries.

    The graph has the input "X", (n, n_features), and the outputs "label", (n,), "probabilities" and "scores", (n, n_classes):
    what `predict`, `predict_proba` (calibrated, if the model is) and `scores` return. Missing values are NaN. Category columns
    enter as codes (`export.codes`): the entry "categories" of `metadata_props` lists them.

    Parameters
    ----------
    model : fitted estimator
        Its weak learners are trees.
    dtype : {"float32", "float64"}, default="float32"
        The type of the input, the probabilities and the scores. With "float32", thresholds are rounded down, so that each float32
        value goes to the same side as in `model.scores`, and scores differ from these by about 1e-6 of the largest. With
        "float64", they agree to the last digits, but predictions take more memory: 8 bytes per row and tree.

    Returns
    -------
    graph : onnx.ModelProto
        Labels are int64, bool, double or text, as those of training; dates, durations and bytes are text.

    Raises
    ------
    distboost.errors.DataError
        If the weak learners are similarities, or if the algorithm's probabilities are not a function that ONNX graphs have.
    distboost.errors.MissingPackageError
        If onnx is not installed.

    Examples
    --------
    >>> import onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from distboost import GDMCBoostClassifier, export
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GDMCBoostClassifier(n_estimators=5).fit(X, y)
    >>> session = onnxruntime.InferenceSession(export.onnx(model).SerializeToString())
    >>> label, probabilities, scores = session.run(None, {"X": X.astype("float32")})
    >>> bool((label == model.predict(X)).all())
    True
    """
    if dtype not in ("float32", "float64"):
        raise DataError.expected("dtype", dtype, remedy="Pass 'float32' or 'float64'.")
    forest = Forest.of(model, "export.onnx", has_votes=True)
    graph = Graph(np.dtype(dtype))
    in_one = dtype == "float32" and not forest.left_codes
    scores = _regressed(graph, forest) if in_one else _gathered(graph, forest)
    if forest.votes is not None:
        scores = graph.add("MatMul", graph.add("Tanh", scores), graph.number(forest.votes.T))
    scores = graph.named("scores", scores)
    _probabilities(graph, scores, link_of(model), type(model).__name__)
    _labels(graph, scores, model.classes_)
    return graph.model(forest, _metadata(model))


class Graph:
    """An ONNX graph under construction, whose numbers have one type."""

    def __init__(self, dtype: np.dtype[Any]):
        try:
            import onnx
        except ImportError as error:
            raise missing("export.onnx", "onnx", "onnx") from error
        self.onnx, self.dtype = onnx, dtype
        self.type = onnx.helper.np_dtype_to_tensor_dtype(dtype)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add an operator with one output; return the output's name."""
        name = output or f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant; return its name."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.tensor(np.asarray(values), name))
        return name

    def number(self, value: Any) -> str:
        """Add a number, or one for each class, of the graph's type; return its name."""
        return self.constant(np.asarray(value, self.dtype))

    def named(self, name: str, found: str) -> str:
        """Give a result the name of an output of the graph."""
        return self.add("Identity", found, output=name)

    def tensor(self, values: np.ndarray, name: str = "") -> Any:
        """Return an array as a tensor."""
        return self.onnx.numpy_helper.from_array(values, name)

    def model(self, forest: Forest, metadata: dict[str, str]) -> Any:
        """Return the complete model."""
        helper = self.onnx.helper
        kinds = {"label": self.label_type, "probabilities": self.type, "scores": self.type}
        outputs = [
            helper.make_tensor_value_info(name, kind, [None] if name == "label" else [None, forest.n_classes])
            for name, kind in kinds.items()
        ]
        inputs = [helper.make_tensor_value_info("X", self.type, [None, forest.n_features])]
        graph = helper.make_graph(self.nodes, "distboost", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", self.trees_version)]
        # The first version of the format that has these operators: older runtimes read it, too.
        made = helper.make_model(
            graph,
            opset_imports=opsets,
            ir_version=10 if self.trees_version == 5 else 8,
            producer_name="distboost",
        )
        helper.set_model_props(made, metadata)
        self.onnx.checker.check_model(made)
        return made

    label_type: int
    trees_version: int


def rounded_down(numbers: np.ndarray) -> np.ndarray:
    """Return the largest float32 numbers that are not above these: x <= number is the same for each float32 x.

    >>> [float(value) <= limit for value, limit in zip(rounded_down(np.array([0.1, 0.7])), [0.1, 0.7])]
    [True, True]
    """
    with np.errstate(over="ignore"):
        nearest = numbers.astype(np.float32)
    down: np.ndarray = np.where(nearest > numbers, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    return down


def _thresholds(forest: Forest, dtype: np.dtype[Any]) -> np.ndarray:
    """Return the thresholds of the type; those of leaves, and of splits of categories, are 0."""
    found = np.nan_to_num(forest.nodes.threshold, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return rounded_down(found) if dtype == np.float32 else found


def _regressed(graph: Graph, forest: Forest) -> str:
    """Add the operator that adds the values of leaves in float32."""
    graph.trees_version = 3
    nodes, values = forest.nodes, forest.values
    # Zeros need not be added; but each leaf has a value.
    targets = values != 0
    targets[~targets.any(axis=1), 0] = True
    leaf, k = np.nonzero(targets)
    place = np.flatnonzero(nodes.is_leaf)[leaf]
    return graph.add(
        "TreeEnsembleRegressor",
        "X",
        domain="ai.onnx.ml",
        n_targets=values.shape[1],
        nodes_treeids=nodes.tree.tolist(),
        nodes_nodeids=nodes.number.tolist(),
        nodes_featureids=np.maximum(nodes.feature, 0).tolist(),
        nodes_values=_thresholds(forest, np.dtype(np.float32)).tolist(),
        nodes_modes=np.where(nodes.is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_truenodeids=np.maximum(nodes.left, 0).tolist(),
        nodes_falsenodeids=np.maximum(nodes.right, 0).tolist(),
        nodes_missing_value_tracks_true=nodes.missing_left.astype(int).tolist(),
        target_treeids=nodes.tree[place].tolist(),
        target_nodeids=nodes.number[place].tolist(),
        target_ids=k.tolist(),
        target_weights=values[leaf, k].astype(np.float32).tolist(),
    )


def _gathered(graph: Graph, forest: Forest) -> str:
    """Add operators that find the leaf of each tree, and add the values of some trees' leaves after the others, in double."""
    numbers = graph.add("Cast", _leaf_numbers(graph, forest), to=graph.onnx.TensorProto.INT64)
    nodes = forest.nodes
    n_leaves = np.bincount(nodes.tree[nodes.is_leaf], minlength=forest.n_trees)
    leaf = graph.add("Add", numbers, graph.constant(np.cumsum(n_leaves) - n_leaves))
    values, trees, total = graph.constant(forest.values), graph.constant([1]), ""
    for first in range(0, forest.n_trees, TREES_AT_ONCE):
        some = graph.add(
            "Slice", leaf, graph.constant([first]), graph.constant([first + TREES_AT_ONCE]), trees
        )
        added = graph.add("ReduceSum", graph.add("Gather", values, some), trees, keepdims=0)
        total = graph.add("Add", total, added) if total else added
    return graph.add("Cast", total, to=graph.type)


class Entries(NamedTuple):
    """The entries of the operator TreeEnsemble: all inner nodes, then one for each tree that is a leaf alone; and all leaves."""

    place: np.ndarray  # (m,) the node of each entry
    roots: np.ndarray  # (n_trees,) the entry of each root
    true: np.ndarray  # (m,) the entry or the leaf to which rows go that pass the test of an entry
    true_leaf: np.ndarray  # (m,) bool: whether that is a leaf
    false: np.ndarray  # (m,) as `true`, for the others
    false_leaf: np.ndarray  # (m,) bool
    tree: np.ndarray  # (l,) the tree of each leaf
    number: np.ndarray  # (l,) the number of each leaf in its tree


def _entries(forest: Forest) -> Entries:
    """Number the nodes and the leaves so that every runtime reads them right.

    onnxruntime before 1.24 takes a root for a leaf if its two sides have the same number, even if one is that of an entry and the
    other that of a leaf: the leaves of such a tree are turned by one place. Versions before 1.32 confuse trees with one leaf on
    both sides: a tree that is a leaf alone has two leaves, with the number 0.
    """
    nodes = forest.nodes
    tree = nodes.tree[nodes.is_leaf]
    n_leaves = np.bincount(tree, minlength=forest.n_trees)
    first = np.cumsum(n_leaves) - n_leaves
    number = np.arange(len(tree)) - first[tree]
    inner, alone = np.flatnonzero(~nodes.is_leaf), nodes.starts[:-1][n_leaves == 1]
    entry = np.cumsum(~nodes.is_leaf) - 1
    entry[alone] = len(inner) + np.arange(len(alone))
    place, roots = np.concatenate([inner, alone]), entry[nodes.starts[:-1]]
    start = nodes.starts[nodes.tree[place]]
    sides = [np.where(nodes.is_leaf[place], place, start + side[place]) for side in (nodes.left, nodes.right)]
    leaves = [nodes.is_leaf[side] for side in sides]
    numbers = [
        np.where(is_leaf, nodes.leaf[side], entry[side]) for is_leaf, side in zip(leaves, sides, strict=True)
    ]
    turn = ((leaves[0] != leaves[1]) & (numbers[0] == numbers[1]))[roots][tree].astype(int)
    turned = first[tree] + (number + turn) % n_leaves[tree]
    true, false = (
        np.where(is_leaf, turned[found], found) for is_leaf, found in zip(leaves, numbers, strict=True)
    )
    false[len(inner) :] = len(tree) + np.arange(len(alone))
    return Entries(
        place=place,
        roots=roots,
        true=true,
        true_leaf=leaves[0],
        false=false,
        false_leaf=leaves[1],
        tree=np.concatenate([tree, nodes.tree[alone]]),
        number=np.concatenate([(number - turn) % n_leaves[tree], np.zeros(len(alone), int)]),
    )


def _leaf_numbers(graph: Graph, forest: Forest) -> str:
    """Add the operator that finds the number of the leaf in each tree, (n, n_trees), counted from 0 in the tree."""
    graph.trees_version = 5
    nodes, found = forest.nodes, _entries(forest)
    modes, splits, members = _tests(forest, found.place, graph.dtype)
    sets = {"membership_values": graph.tensor(members)} if len(members) else {}
    return graph.add(
        "TreeEnsemble",
        "X",
        domain="ai.onnx.ml",
        n_targets=forest.n_trees,
        tree_roots=found.roots.tolist(),
        nodes_featureids=np.maximum(nodes.feature[found.place], 0).tolist(),
        nodes_modes=graph.tensor(modes),
        nodes_splits=graph.tensor(splits),
        nodes_truenodeids=found.true.tolist(),
        nodes_trueleafs=found.true_leaf.astype(int).tolist(),
        nodes_falsenodeids=found.false.tolist(),
        nodes_falseleafs=found.false_leaf.astype(int).tolist(),
        nodes_missing_value_tracks_true=nodes.missing_left[found.place].astype(int).tolist(),
        leaf_targetids=found.tree.tolist(),
        leaf_weights=graph.tensor(found.number.astype(graph.dtype)),
        **sets,
    )


def _tests(
    forest: Forest, place: np.ndarray, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the modes and thresholds of some nodes, and the sets of codes of those that split categories."""
    less_or_equal, member = 0, 6
    modes, splits = (
        np.full(len(place), less_or_equal, np.uint8),
        _thresholds(forest, dtype)[place].astype(dtype),
    )
    members: list[float] = []
    for n, node in enumerate(place.tolist()):
        codes = forest.left_codes.get(node)
        if codes:
            modes[n] = member
            members += [*codes, np.nan]
        elif codes is not None:  # only missing values go left, if any
            splits[n] = -np.inf
    return modes, splits, np.array(members, dtype)


def _probabilities(graph: Graph, scores: str, link: Any, name: str) -> None:
    """Add the probabilities."""
    if isinstance(link, Calibration) and link.scales is not None:
        centred = graph.add("Sub", scores, graph.add("ReduceMean", scores, graph.constant([1]), keepdims=1))
        scaled = graph.add("Mul", centred, graph.number(np.array(link.scales) / link.temperature))
        found = graph.add("Softmax", graph.add("Add", scaled, graph.number(link.shifts)), axis=1)
    elif isinstance(link, Calibration | Softmax):
        exponents = graph.add("Div", scores, graph.number(link.temperature))
        found = graph.add("Softmax", exponents, axis=1)
    elif isinstance(link, NormalisedSigmoids):
        # ln sigmoid(2 F) = -ln(1 + e^(-2 F))
        logarithms = graph.add("Neg", graph.add("Softplus", graph.add("Mul", scores, graph.number(-2.0))))
        found = graph.add("Softmax", logarithms, axis=1)
    elif isinstance(link, Shares):
        total = graph.add("ReduceSum", scores, graph.constant([1]), keepdims=1)
        some = graph.add("Greater", total, graph.number(0.0))
        divisor = graph.add("Where", some, total, graph.number(1.0))
        k = graph.add("Cast", graph.add("Shape", scores, start=1), to=graph.type)
        found = graph.add("Where", some, graph.add("Div", scores, divisor), graph.add("Reciprocal", k))
    else:
        raise DataError(
            f"the probabilities of {name} are computed by a method of its own, which an ONNX graph does not have.",
            remedy="Define them by the algorithm's `link`, or fit a calibration first: model.calibrate(X, y).",
        )
    graph.named("probabilities", found)


def _labels(graph: Graph, scores: str, classes: np.ndarray) -> None:
    """Add the label of the largest score, the first of equal ones."""
    labels = _plain_labels(classes)
    graph.label_type = graph.onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.add("Gather", graph.constant(labels), best, output="label")


def _plain_labels(classes: np.ndarray) -> np.ndarray:
    """Return labels as a type that ONNX has: int64, bool, float64 or object (text)."""
    if classes.dtype.kind in "iu" and classes.max() <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    texts = [label.decode("latin-1") if isinstance(label, bytes) else str(label) for label in classes]
    return np.array(texts, object)


def _metadata(model: BoostingClassifier) -> dict[str, str]:
    """Return what else a user of the graph may want to know, as JSON by name."""
    coded = [
        {
            "feature": feature,
            "codes": found.bins.tolist(),
            "categories": found.named,
        }
        for feature, found in sorted(trees_of(model, "export.onnx").categories.items())
    ]
    found = {
        "algorithm": model.algorithm_name,
        "feature_names": names_of(model).tolist(),
        "categories": coded,
    }
    return {name: json.dumps(value) for name, value in found.items()}
