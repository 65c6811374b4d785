"""REBEL with similarities is the same on any runtime; its files, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import distboost
from distboost import REBELClassifier
from distboost.data import ingest
from distboost.errors import DataError, ModelFormatError
from distboost.io.files import read_file, write_file
from distboost.kernels.similarity import TWO_POINT
from tests.similarity.similarities import classifier, saved


@pytest.fixture(scope="module")
def awkward():
    """Missing values, weights, single precision, rows in several places at once, an evaluation set."""
    rng = np.random.default_rng(9)
    y = rng.integers(0, 5, 300)
    X = (rng.normal(size=(300, 4)) + np.eye(5, 4)[y]).round(1).astype(np.float32)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, rng.integers(0, 4, 300) / 4, (X[:50], y[:50])


def trained(folder, parameters, awkward, n_jobs=1, client=None) -> bytes:
    X, y, weights, evaluation = awkward
    model = classifier(n_jobs=n_jobs, **parameters)
    model.client = client
    return saved(model.fit(X, y, weights, eval_set=evaluation), folder)


# Each kind with all rows or some; one with both.
SAMPLED = pytest.mark.parametrize(
    ("parameters", "subsample"),
    [
        ("real", 1.0),
        ("real", 0.7),
        ("sign", 0.7),
        ("one point", 0.7),
        ("one point, sign", 1.0),
        ("few candidates", 1.0),
    ],
    indirect=["parameters"],
)


@SAMPLED
def test_same_bytes_for_any_blocks_and_threads(parameters, subsample, awkward, tmp_path, monkeypatch):
    parameters = {**parameters, "subsample": subsample, "score_dtype": "float32"}
    expected = trained(tmp_path, parameters, awkward)
    assert trained(tmp_path, parameters, awkward, n_jobs=2) == expected
    monkeypatch.setattr(ingest, "BLOCK_ROWS", 37)
    assert trained(tmp_path, parameters, awkward) == expected
    assert trained(tmp_path, parameters, awkward, n_jobs=2) == expected


@pytest.mark.parametrize(
    ("parameters", "subsample"),
    [
        ("real", 0.7),
        ("one point, sign", 1.0),
        *(
            pytest.param(*case, marks=pytest.mark.soak)
            for case in (("real", 1.0), ("sign", 0.7), ("one point", 0.7))
        ),
        ("few candidates", 1.0),
    ],
    indirect=["parameters"],
)
def test_same_bytes_on_a_cluster(parameters, subsample, awkward, clients, tmp_path):
    parameters = {**parameters, "subsample": subsample}
    expected = trained(tmp_path, parameters, awkward)
    assert trained(tmp_path, parameters, awkward, client=clients[3]) == expected


def test_predicts_what_it_trained_on(parameters, awkward):
    """Losses and errors measured while training are those of the scores of the finished model, to the last bit."""
    X, y, weights, _ = awkward
    model = classifier(**parameters).fit(X, y, weights, eval_set=(X, y))
    assert model.eval_error_[-1] == (model.predict(X) != y).mean()
    F = model.scores(X)
    losses = np.exp(np.where(np.eye(5)[y] > 0, -F, F)).sum(axis=1).mean() / 2
    assert model.eval_loss_[-1] == pytest.approx(losses, rel=1e-12)
    assert_array_equal(F, list(model.staged_scores(X))[-1])
    assert_array_equal(F, model.scores(X.astype(np.float64)))


# Files.


DAMAGES = {
    "kind": lambda a: a["kind"].__setitem__(0, 3),
    "kind type": lambda a: a.__setitem__("kind", a["kind"].astype(np.int64)),
    "no anchors": lambda a: a.pop("anchors"),
    "anchors' shape": lambda a: a.__setitem__("anchors", a["anchors"][:, :1].copy()),
    "infinite anchor": lambda a: a["anchors"].__setitem__((0, 0, 0), np.inf),
    "tau": lambda a: a["tau"].__setitem__(slice(None), -1.0),
    "tau missing": lambda a: a["tau"].__setitem__(slice(None), np.nan),
    "tau where none is": lambda a: (a["kind"].__setitem__(0, TWO_POINT), a["tau"].__setitem__(0, 2.0)),
    "values": lambda a: a["values"].__setitem__((0, 0), np.nan),
    "an infinite value": lambda a: a["values"].__setitem__((0, 0), np.inf),
    "values' shape": lambda a: a.__setitem__("values", a["values"][:-1].copy()),
    "sign": lambda a: a.__setitem__("sign", a["sign"][1:].copy()),
    "a tree's arrays": lambda a: [a.pop(name) for name in ("kind", "sign", "anchors", "tau")],
}


@pytest.fixture(scope="module")
def small(data):
    return classifier(n_estimators=3).fit(*data)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_files_are_refused(damage, small, tmp_path):
    small.save(tmp_path / "model")
    header, arrays = read_file(str(tmp_path / "model"))
    arrays = {name: array.copy() for name, array in arrays.items()}
    damage(arrays)
    for name in ("format", "version"):
        header.pop(name)
    write_file(str(tmp_path / "model"), header, arrays)
    with pytest.raises(ModelFormatError, match="damaged"):
        distboost.load(tmp_path / "model")


# What cannot be.


def test_binned_stores_are_refused(data, tmp_path):
    store = distboost.bin(*data, str(tmp_path / "store"))
    with pytest.raises(DataError, match=r"no raw values.*weak_learner='tree'"):
        classifier().fit(store)
    REBELClassifier(n_estimators=2).fit(store)


def test_wrong_number_of_features(data):
    model = classifier(n_estimators=2).fit(*data)
    with pytest.raises(ValueError, match="features"):
        model.predict(data[0][:, :2])


def test_values_count_towards_the_memory_limit():
    """8 bytes for each: where a million rows' bins stay in memory, most of these rows do not."""
    size = {"n_rows": 10**6, "n_features": 100, "n_classes": 3, "n_threads": 1}
    trees, similar = (
        distboost.plan(make(memory_limit="800MB"), **size) for make in (REBELClassifier, classifier)
    )
    assert (trees.resident, trees.streamed) == (10**6, 0)
    assert 0 < similar.resident * 8 * 100 < 400 * 10**6
    assert similar.resident + similar.streamed == 10**6
