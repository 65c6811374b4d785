"""An algorithm from outside: the blocks of docs/adding-an-algorithm.md, as they stand there."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import pickle
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
from distboost.kernels import gains
from tests.programs import Program

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-an-algorithm.md").read_text()
MODULE, USE, GAIN, CLUSTER = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(LINE,) = re.findall(r'^    ("real-samme": .*),$', PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where samme_r.py is."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "samme_r.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def samme_r(folder) -> ModuleType:
    """The module, which only this process can import: workers are told where this one looks for modules."""
    module = import_module("samme_r", folder / "samme_r.py")
    yield module
    del sys.modules["samme_r"]


@pytest.fixture(scope="module")
def model(samme_r, blobs):
    return samme_r.RealSAMMEClassifier(n_estimators=8, n_jobs=1).fit(*blobs)


def python(folder: Path, program: str, *arguments: str) -> str:
    """The output of a program that succeeds, which imports what is in the folder."""
    done = Program(f"import sys; sys.path.insert(0, {str(folder)!r})\n{program}", *arguments, folder=folder)
    out, err = done.communicate(timeout=100)
    assert done.returncode == 0, out + err
    return out


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


@pytest.fixture(scope="module")
def told(folder, model, blobs) -> list[str]:
    """The lines that a process prints that first loads a model without its module, then runs the block that uses the module, and
    last, with a line more in the registry, the command line, which writes `trained`."""
    name, place = json.loads(f"{{{LINE}}}").popitem()
    model.save(folder / "model")
    for part, values in zip(("x", "y"), blobs, strict=True):
        zarr.create_array(folder / "rows.zarr" / part, data=values, chunks=(60, *values.shape[1:]))
    program = f"""
import distboost
try:
    distboost.load("model")
except distboost.errors.ModelFormatError as error:
    print(error)

import samme_r
exec({USE!r}, dict(vars(samme_r)))

from distboost import registry
sys.modules["distboost.algorithms.samme_r"] = samme_r
registry.PAPERS[{name!r}] = registry.ALGORITHMS[{name!r}] = {place!r}
for known in [known for known in sys.modules if known.startswith("distboost.cli")]:
    del sys.modules[known]  # it reads the registry when it is imported
from distboost.cli import main
main()
"""
    output = python(folder, program, "train", "--algorithm", name, "--x", "rows.zarr/x", "--y", "rows.zarr/y",
                    "--model", "trained", "--set", "n_estimators=8")  # fmt: skip
    return output.splitlines()


def test_the_block_of_use_runs(told):
    accuracy, losses = told[1].split(maxsplit=1)
    assert float(accuracy) > 0.95
    assert losses.startswith("[")


def test_it_is_the_papers(samme_r):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    X = np.round(np.eye(4, 5)[y] + rng.normal(size=(300, 5)), 1)
    found = samme_r.RealSAMMEClassifier(n_estimators=10, max_depth=1, floor=0.01).fit(X, y)
    assert_allclose(found.scores(X), naive_scores(X, y, 10, 0.01), rtol=1e-9, atol=1e-9)


def test_scikit_learns_checks(samme_r):
    check_estimator(samme_r.RealSAMMEClassifier(n_estimators=2), on_skip=None)


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


def test_a_model_of_an_algorithm_that_was_not_imported(told):
    assert "real-samme" in told[0]


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


def here(folder: Path) -> None:
    """Workers are forked, and none of them can import the module."""
    with contextlib.chdir(folder):
        exec(CLUSTER, {"__name__": "__main__"})


def as_a_program(folder: Path) -> None:
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=100, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("run", [here, pytest.param(as_a_program, marks=pytest.mark.soak)])
def test_the_cluster_block_runs(run, samme_r, blobs, tmp_path):
    X, y = blobs
    for name, values in (("x", X), ("y", y)):
        zarr.create_array(tmp_path / "data.zarr" / name, data=values, chunks=(60, *values.shape[1:]))
    (tmp_path / "samme_r.py").write_text(MODULE)
    (tmp_path / "train.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CLUSTER}")
    run(tmp_path)
    expected = samme_r.RealSAMMEClassifier(n_estimators=10).fit(X, y).predict_proba(X)
    assert_array_equal(zarr.open_array(tmp_path / "proba.zarr")[:], expected)


def test_a_line_in_the_registry_makes_it_a_choice_of_the_command_line(told, folder, model, saved):
    assert (folder / "trained").read_bytes() == saved(model)


# A gain from outside.


def import_module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kearns_mansour(tmp_path):
    (tmp_path / "kearns_mansour.py").write_text(GAIN)
    yield import_module("kearns_mansour", tmp_path / "kearns_mansour.py")
    del sys.modules["kearns_mansour"]


def naive_criterion(weights: np.ndarray) -> np.ndarray:
    """-sum_k sqrt(C_k (W - C_k)) of class weights (.., K)."""
    return -np.sqrt(weights * (weights.sum(axis=-1, keepdims=True) - weights)).sum(axis=-1)


def test_a_gain_from_outside_splits_as_its_formula_says(samme_r, kearns_mansour):
    """Where the criterion and least squares disagree: rows of a rare class are worth more to the former."""
    found = []
    rng = np.random.default_rng(1)
    for _ in range(5):
        y = np.minimum(rng.geometric(0.6, 200) - 1, 3)
        y[:4] = range(4)
        X = np.round(np.eye(4, 5)[y] + rng.normal(size=(200, 5)), 1)

        class KearnsMansour(samme_r.RealSAMME):
            name = "samme-r-kearns-mansour"

            def learn(self, rows, grow):
                return super().learn(
                    rows, lambda statistic, _: grow(statistic, kearns_mansour.KEARNS_MANSOUR)
                )

        model = distboost.classifier(KearnsMansour)(n_estimators=1, max_depth=1, n_jobs=1).fit(X, y)
        # The root's split: of all thresholds, the one of the largest value.
        C = np.eye(4)[y]
        thresholds = [(d, x) for d in range(5) for x in np.unique(X[:, d])[:-1]]
        right = np.array([X[:, d] > x for d, x in thresholds])
        R = right @ C
        best = np.argmax(naive_criterion(R) + naive_criterion(C.sum(axis=0) - R))
        assert len(np.unique(model.scores(X)[right[best]], axis=0)) == 1
        assert len(np.unique(model.scores(X)[~right[best]], axis=0)) == 1
        found.append(thresholds[best])
    assert len(set(found)) > 1


def test_a_gain_is_pickled_by_name(kearns_mansour):
    assert pickle.loads(pickle.dumps(kearns_mansour.KEARNS_MANSOUR)) is kearns_mansour.KEARNS_MANSOUR
    assert pickle.loads(pickle.dumps(gains.CODEWORD)) is gains.CODEWORD
    local = gains.of_sides()(lambda S, n: 1.0)
    with pytest.raises(TypeError, match="must be a constant of the module"):
        pickle.dumps(local)


SEARCH = """
import numpy as np
from gain import LARGEST
from distboost.kernels.split_search import best_splits_by
from distboost.splits.tree_histograms import Histograms
from distboost.splits.tree_histograms import SearchRules, search
from distboost.threads import Threads
histograms = Histograms(np.array([2]), 3)
[slot] = histograms.take(1)
histograms.pool[slot] = 0
histograms.pool[slot][:2, :3] = [[3, 1, 1], [1, 4, 1]]
found = search(histograms, [slot], [], features=np.array([0]), rules=SearchRules(LARGEST, 2), threads=Threads(1))
kernel = best_splits_by(LARGEST)
print(found.gain[0], sum(kernel.stats.cache_hits.values()), sum(kernel.stats.cache_misses.values()))
"""


def test_the_compiled_search_of_a_gain_from_outside_is_kept_until_the_gain_changes(tmp_path):
    gain = "from distboost.kernels.gains import of_sides\n\n@of_sides()\ndef LARGEST(S, n):\n    return {} * max(S[0], S[1])\n"
    gain += f"# {tmp_path}: another one in each run, which shares the cache of all other kernels\n"
    (tmp_path / "gain.py").write_text(gain.format(1))
    assert python(tmp_path, SEARCH).split() == ["2.0", "0", "1"]
    assert python(tmp_path, SEARCH).split() == ["2.0", "1", "0"]
    (tmp_path / "gain.py").write_text(gain.format(3))
    assert python(tmp_path, SEARCH).split() == ["6.0", "0", "1"]
