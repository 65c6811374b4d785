"""Models in the formats of other libraries. `make exports` compares many more."""

import json
import sys
from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytest
import treelite

import distboost
from distboost import GDMCBoostClassifier, REBELClassifier, export
from distboost.errors import DataError, MissingPackageError
from distboost.export.onnx_model import rounded_down
from tests.algorithms.subjects import OF_SUMS, TREES
from tests.exports.checks import check_onnx, check_treelite
from tests.exports.made import random_model, rows_for
from tests.old_models.make import FOLDER


@pytest.mark.parametrize("subject", TREES, ids=str)
def test_every_algorithm_with_its_own_probabilities(subject, problem):
    model = subject.make(n_estimators=3, calibration=None).fit(*problem)
    X = rows_for(model, problem[0], np.random.default_rng(1))
    for dtype in ("float32", "float64"):
        check_onnx(model, X, dtype)
    if subject not in OF_SUMS:
        with pytest.raises(DataError, match="Train with decoding='sum'"):
            export.treelite(model)
        return
    check_treelite(model, X)


@pytest.mark.parametrize("seed", [0, 2])
def test_random_models(seed):
    model, X = random_model(seed)
    assert model.calibration_ is not None
    for dtype in ("float32", "float64"):
        check_onnx(model, X, dtype)
    check_treelite(model, X)


LABELS = {
    "integers": np.array([3, -1, 7, 2**40]),
    "small integers": np.array([3, 1, 7, 2], np.uint8),
    "floats": np.array([0.0, 1.0, 2.0, 3.0]),
    "text": np.array(["ä", "b", "c", "d"]),
    "objects": np.array(["x", "y", "z", "w"], object),
    "bytes": np.array([b"x", b"y", b"z", b"w"]),
    "dates": np.array(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"], "M8[D]"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_of_every_type(labels, problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, labels[y])
    session = onnxruntime.InferenceSession(export.onnx(model, dtype="float64").SerializeToString())
    found, expected = session.run(["label"], {"X": X})[0], model.predict(X)
    if expected.dtype.kind in "SM":
        expected = np.array([one.decode() if isinstance(one, bytes) else str(one) for one in expected])
    assert found.tolist() == expected.tolist()


def test_two_labels_that_are_truth_values(problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, y > 1)
    session = onnxruntime.InferenceSession(export.onnx(model, dtype="float64").SerializeToString())
    assert session.run(["label"], {"X": X})[0].tolist() == model.predict(X).tolist()


def test_trees_of_one_leaf(problem):
    """Later trees that find nothing to split are leaves alone."""
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=4, subsample=0.02, min_samples_leaf=2, calibration=None).fit(
        X, y
    )
    leaves = np.diff(model.learned_.ensemble.arrays()["value_offsets"])
    assert leaves.min() == 1 < leaves.max()
    for dtype in ("float32", "float64"):
        check_onnx(model, X, dtype)
    check_treelite(model, X)


def test_the_graph_says_what_it_is(problem):
    X, y = problem
    graph = export.onnx(GDMCBoostClassifier(n_estimators=2, calibration=None).fit(X, y))
    onnx.checker.check_model(graph, full_check=True)
    told = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert told == {"algorithm": "gd-mcboost", "feature_names": ["f0", "f1", "f2"], "categories": []}
    assert [entry.name for entry in graph.graph.output] == ["label", "probabilities", "scores"]


def test_thresholds_are_rounded_down():
    numbers = np.array([0.1, 0.7, 1.0, -0.1, 1e39, -1e39, 1e-46, -1e-46, np.inf])
    down = rounded_down(numbers)
    assert down.dtype == np.float32
    assert (down <= numbers).all()
    with np.errstate(over="ignore"):
        assert (np.nextafter(down, np.float32(np.inf)) > numbers)[:-1].all()


@pytest.mark.parametrize("format", ["onnx", "treelite"])
def test_models_of_early_files(format):
    model = distboost.load(FOLDER / "1-gd-mcboost.model")
    with np.load(FOLDER / "1.npz") as known:
        X = known["X"]
    if format == "onnx":
        check_onnx(model, X, "float64")
    else:
        check_treelite(model, X)


def test_a_scale_and_a_shift_for_each_class(problem):
    X, y = problem
    model = GDMCBoostClassifier(n_estimators=3, calibration=None).fit(X, y).calibrate(X, y, method="vector")
    assert np.ptp(model.calibration_.scales) > 0
    for dtype in ("float32", "float64"):
        check_onnx(model, X, dtype)
    found = treelite.gtil.predict(export.treelite(model, probabilities=True), X)[:, 0]
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-6)


def test_probabilities_by_treelite(problem):
    X, y = problem
    for model in (
        GDMCBoostClassifier(n_estimators=3, calibration=None).fit(X, y),
        REBELClassifier(n_estimators=3, calibration=None).fit(X, y).calibrate(X, y),
    ):
        found = treelite.gtil.predict(export.treelite(model, probabilities=True), X)[:, 0]
        np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-6)  # its softmax is in float32


# What cannot be exported.


def test_similarities(problem):
    X, y = np.nan_to_num(problem[0]), problem[1]
    model = REBELClassifier(n_estimators=2, weak_learner="similarity", calibration=None).fit(X, y)
    for what in (export.onnx, export.treelite, partial(export.codes, X=X)):
        name = getattr(what, "__name__", "codes")
        with pytest.raises(
            DataError,
            match=rf"^export\.{name} is for trees, but .* are similarities .* Train with weak_learner='tree'",
        ):
            what(model)


def test_probabilities_that_treelite_does_not_have(problem):
    model = REBELClassifier(n_estimators=2, calibration=None).fit(*problem)
    with pytest.raises(DataError, match=r"are not a softmax of its scores.*model\.calibrate\(X, y\)"):
        export.treelite(model, probabilities=True)


def test_probabilities_of_a_method(problem, monkeypatch):
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(*problem)
    monkeypatch.setattr(type(model).algorithm, "probabilities", lambda self, F: F)
    with pytest.raises(DataError, match=r"a method of its own, which an ONNX graph does not have"):
        export.onnx(model)


def test_an_unknown_dtype(problem):
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(*problem)
    with pytest.raises(DataError, match=r"dtype is .int8.\. Pass .float32. or .float64."):
        export.onnx(model, dtype="int8")


@pytest.mark.parametrize(("package", "what"), [("onnx", export.onnx), ("treelite", export.treelite)])
def test_without_the_package(package, what, problem, monkeypatch):
    model = GDMCBoostClassifier(n_estimators=2, calibration=None).fit(*problem)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        MissingPackageError, match=rf"needs {package}, .* pip install 'distboost\[{package}\]'"
    ):
        what(model)


@pytest.mark.parametrize("subject", TREES, ids=str)
def test_no_root_has_one_number_on_both_sides(subject, problem):
    """onnxruntime before 1.24 takes such a tree for a single leaf, and before 1.32 confuses trees that are a leaf alone."""
    graph = export.onnx(subject.make(n_estimators=3, calibration=None).fit(*problem), dtype="float64").graph
    (trees,) = (node for node in graph.node if node.op_type == "TreeEnsemble")
    found = {one.name: onnx.helper.get_attribute_value(one) for one in trees.attribute}
    true, false = (np.array(found[f"nodes_{side}nodeids"])[found["tree_roots"]] for side in ("true", "false"))
    assert (true != false).all()
