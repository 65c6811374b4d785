"""Models with splits of categories, in every format."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import treelite
from matplotlib.figure import Figure

from distboost import GDMCBoostClassifier, export, export_text, plot
from distboost.baselines import GradBoostClassifier
from tests.exports.checks import check_additive, check_shap_by_coalitions
from tests.exports.made import assert_scores

PARAMETERS = {"n_estimators": 4, "calibration": None, "max_bins": 60, "n_jobs": 1}


@pytest.fixture(scope="module")
def problem():
    """Rows of a feature with 40 categories, a number, and a feature with 90 categories, more than there are bins."""
    rng = np.random.default_rng(0)
    many, more = rng.integers(0, 40, 1200), rng.integers(0, 90, 1200)
    y = np.where(rng.random(1200) < 0.5, rng.integers(0, 4, 40)[many], rng.integers(0, 4, 90)[more])
    X = np.column_stack([many, rng.normal(size=1200) + y, 3.0 * more])
    X[rng.random(X.shape) < 0.08] = np.nan
    return X, y


@pytest.fixture(scope="module", params=[GDMCBoostClassifier, GradBoostClassifier])
def model(request, problem):
    return request.param(categorical_features=[0, 2], **PARAMETERS).fit(*problem)


@pytest.fixture(scope="module")
def unknown(problem):
    """The rows, some with categories that are unknown."""
    X = problem[0].copy()
    X[:50, 0], X[50:100, 2] = 77.0, 1000.5
    return X


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_onnx(dtype, model, unknown):
    X = np.array(unknown)
    X[:, 1] = X[:, 1].astype(dtype)
    session = onnxruntime.InferenceSession(export.onnx(model, dtype=dtype).SerializeToString())
    found = session.run(["scores"], {"X": export.codes(model, X).astype(dtype)})[0]
    assert_scores(found, model.scores(X), 1e-5 if dtype == "float32" else 1e-12)


def test_treelite(model, unknown):
    found = treelite.gtil.predict(export.treelite(model), export.codes(model, unknown))[:, 0]
    assert_scores(found, model.scores(unknown), 1e-12)


def test_shap_values(model, unknown):
    check_additive(model, unknown)
    check_shap_by_coalitions(model, unknown[::100])


def test_the_graph_lists_the_codes(problem):
    X, y = problem
    frame = pd.DataFrame({"letter": np.array([7.0, 2.5, 40.0])[y % 3], "x": X[:, 1]})
    model = GDMCBoostClassifier(categorical_features=["letter"], **PARAMETERS).fit(frame, y)
    told = {entry.key: json.loads(entry.value) for entry in export.onnx(model).metadata_props}
    assert told["categories"] == [{"feature": 0, "codes": [0, 1, 2], "categories": [2.5, 7.0, 40.0]}]
    assert told["feature_names"] == ["letter", "x"]
    codes = export.codes(model, frame)
    np.testing.assert_array_equal(codes[:, 0], np.array([1, 0, 2])[y % 3])
    np.testing.assert_array_equal(codes[:, 1], X[:, 1])


def test_tables_texts_and_pictures_name_them(problem):
    X, y = problem
    frame = pd.DataFrame({"letter": np.array([7.0, 2.5, 40.0])[y % 3], "x": X[:, 1]})
    model = GDMCBoostClassifier(max_depth=1, categorical_features=[0], **PARAMETERS).fit(frame, y)
    root = model.to_dataframe().iloc[0]
    assert root.Feature == "letter"
    assert set(root.Category) < {2.5, 7.0, 40.0}
    named = f"letter in {{{', '.join(f'{one:g}' for one in root.Category)}}}"
    assert named in export_text(model)
    ax = plot.tree(model, 0, ax=Figure().add_subplot())
    assert named in [text.get_text() for text in ax.texts]
