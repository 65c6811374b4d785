"""An algorithm from outside: the blocks of docs/adding-an-algorithm.md, as they stand there."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import dask.array as da
import numpy as np
import pytest
import zarr
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import check_estimator

import distboost

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-algorithm.md").read_text()
MODULE, USE, CLUSTER = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(LINE,) = re.findall(r'^    ("samme-r": .*),$', PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where samme_r.py is."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "samme_r.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def samme_r(folder) -> ModuleType:
    """The module, which only this process can import: workers are told where this one looks for modules."""
    spec = importlib.util.spec_from_file_location("samme_r", folder / "samme_r.py")
    module = sys.modules["samme_r"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["samme_r"]


@pytest.fixture(scope="module")
def model(samme_r, blobs):
    return samme_r.RealSAMMEClassifier(n_estimators=8, n_jobs=1).fit(*blobs)


def python(folder: Path, program: str, *arguments: str) -> str:
    """The output of a program that succeeds, run in the folder with the project at hand."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def naive_scores(X: np.ndarray, y: np.ndarray, n_rounds: int, floor: float) -> np.ndarray:
    """SAMME.R with stumps, from the paper's own formulas."""
    K, n = y.max() + 1, len(y)
    Y = np.where(y[:, None] == np.arange(K), 1.0, -1 / (K - 1))
    w, F = np.full(n, 1 / n), np.zeros((n, K))
    right = np.concatenate([x > np.unique(x)[:-1, None] for x in X.T])
    for _ in range(n_rounds):
        weights = w[:, None] * (y[:, None] == np.arange(K))
        R = right @ weights
        L = weights.sum(axis=0) - R
        # Gini impurity: W - |C|^2 / W
        best = np.argmax((L**2).sum(axis=1) / L.sum(axis=1) + (R**2).sum(axis=1) / R.sum(axis=1))
        p = np.where(right[best][:, None], R[best] / R[best].sum(), L[best] / L[best].sum())
        log_p = np.log(np.maximum(p, floor))
        F += (K - 1) * (log_p - log_p.mean(axis=1, keepdims=True))
        w *= np.exp(-(K - 1) / K * (Y * log_p).sum(axis=1))
        w /= w.sum()
    return F


def test_the_blocks_run(folder):
    output = python(folder, MODULE + USE)
    accuracy, losses = output.split(maxsplit=1)
    assert float(accuracy) > 0.95
    assert losses.startswith("[")


def test_it_is_the_papers(samme_r):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = np.round(np.eye(4, 5)[y] + rng.normal(size=(300, 5)), 1)
    found = samme_r.RealSAMMEClassifier(n_estimators=10, max_depth=1, floor=0.01).fit(X, y)
    assert_allclose(found.scores(X), naive_scores(X, y, 10, 0.01), rtol=1e-9, atol=1e-9)


def test_scikit_learns_checks(samme_r):
    check_estimator(samme_r.RealSAMMEClassifier(n_estimators=5), on_skip=None)


def test_its_parameters_are_checked_and_documented(samme_r, blobs):
    with pytest.raises(ValueError, match="'floor' parameter"):
        samme_r.RealSAMMEClassifier(floor=0.5).fit(*blobs)
    text = samme_r.RealSAMMEClassifier.__doc__
    assert text.startswith("SAMME.R: trees that vote")
    assert "floor : float" in text
    assert "learning_rate : float" in text


def test_its_models_are_kept(model, blobs, saved, tmp_path):
    model.save(tmp_path / "model")
    again = distboost.load(tmp_path / "model")
    assert type(again) is type(model)
    assert_array_equal(again.predict_proba(blobs[0]), model.predict_proba(blobs[0]))
    assert saved(again) == saved(model)


def test_a_model_of_an_algorithm_that_was_not_imported(model, tmp_path):
    model.save(tmp_path / "model")
    program = """
import distboost
try:
    distboost.load("model")
except distboost.errors.ModelFormatError as error:
    print(error)
"""
    assert "samme-r" in python(tmp_path, program)


def test_it_trains_where_it_cannot_be_imported(samme_r, model, blobs, clients, saved):
    """Only parts of distboost travel."""
    assert clients[2].submit(importlib.util.find_spec, "samme_r").result(timeout=60) is None
    found = samme_r.RealSAMMEClassifier(n_estimators=8)
    found.client = clients[2]
    assert saved(found.fit(*blobs)) == saved(model)


def test_workers_predict_with_a_module_that_was_sent(samme_r, model, blobs, clients, folder):
    X = da.from_array(blobs[0], chunks=(50, 4))
    client = clients[2]
    client.upload_file(str(folder / "samme_r.py"))
    got = client.compute(model.predict_proba(X)).result(timeout=60)
    assert_array_equal(got, model.predict_proba(blobs[0]))


def test_the_cluster_block_runs(folder, blobs, model, samme_r):
    X, y = blobs
    for name, values in (("x", X), ("y", y)):
        zarr.create_array(folder / "data.zarr" / name, data=values, chunks=(60, *values.shape[1:]))
    (folder / "train.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CLUSTER}")
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=100, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    expected = samme_r.RealSAMMEClassifier(n_estimators=10).fit(X, y).predict_proba(X)
    assert_array_equal(zarr.open_array(folder / "proba.zarr")[:], expected)


def test_a_line_in_the_registry_makes_it_a_choice_of_the_command_line(folder, model, blobs, saved):
    name, place = json.loads(f"{{{LINE}}}").popitem()
    X, y = blobs
    for part, values in (("x", X), ("y", y)):
        zarr.create_array(folder / "rows.zarr" / part, data=values, chunks=(60, *values.shape[1:]))
    program = f"""
import samme_r
from distboost import registry
sys.modules["distboost.algorithms.samme_r"] = samme_r
registry.PAPERS[{name!r}] = registry.ALGORITHMS[{name!r}] = {place!r}
from distboost.cli import main
main()
"""
    python(folder, program, "train", "--algorithm", name, "--x", "rows.zarr/x", "--y", "rows.zarr/y", "--model", "model",
           "--set", "n_estimators=8")  # fmt: skip
    assert (folder / "model").read_bytes() == saved(model)
