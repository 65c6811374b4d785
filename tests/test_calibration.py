"""`calibrate`: the probabilities of least log-loss, the same on any source and runtime, and kept in model files."""

from __future__ import annotations

import pickle

import dask.array as da
import numpy as np
import pytest
import zarr
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import log_loss

import distboost
from distboost import AdaBoostMMClassifier, GDMCBoostClassifier, REBELClassifier
from distboost.data.stored import ZarrPart
from distboost.errors import DataError, ModelFormatError
from distboost.evaluation.sums import Judge
from distboost.io.files import read_file, write_file
from distboost.probabilities.methods import PASSES, fit_calibration
from distboost.probabilities.temperature import HIGHEST, LOWEST

by_both = pytest.mark.parametrize("method", ["temperature", "vector"])


@pytest.fixture(scope="module")
def halves(blobs):
    X, y = blobs
    rng = np.random.default_rng(3)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 3, len(y)), y)
    return X[::2], y[::2], X[1::2], y[1::2]


@pytest.fixture
def model(halves):
    return GDMCBoostClassifier(n_estimators=10, max_depth=3, calibration=None).fit(*halves[:2])


def temperature(F, codes, w=None):
    """The temperature of least smoothed log-loss, by another method."""
    w = np.ones(len(F)) if w is None else w
    n = max(np.count_nonzero(w), w.sum())
    target = np.full(F.shape, 1 / (n + 1) / F.shape[1])
    target[np.arange(len(F)), codes] += n / (n + 1)

    def loss(log):
        return -(w @ (target * log_softmax(F / np.exp(log), axis=1)).sum(axis=1)) / w.sum()

    found = minimize_scalar(loss, bounds=(-13, 13), method="bounded", options={"xatol": 1e-9})
    return np.exp(found.x)


def fitted(F, codes, w=None, method="temperature"):
    w = np.ones(len(F)) if w is None else w
    return fit_calibration(method, lambda sums: sums(F, codes, w), F.shape[1])


# The temperature


@pytest.mark.parametrize("seed", range(20))
def test_the_log_loss_is_least(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(20, 300), rng.integers(2, 8)
    F = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-3, 3)
    codes = np.where(rng.random(n) < 0.6, F.argmax(axis=1), rng.integers(0, k, n))
    w = [None, rng.random(n), rng.integers(0, 4, n).astype(float)][seed % 3]
    assert fitted(F, codes, w).temperature == pytest.approx(temperature(F, codes, w), rel=1e-5)


def test_all_rows_right_give_a_finite_temperature():
    F = np.eye(3)[np.arange(99) % 3] * 5
    found = fitted(F, np.arange(99) % 3)
    # The probability of a wrong class is that of the smoothed labels: 1 / 100 / 3.
    np.testing.assert_allclose(found.probabilities(F)[0], [0.99 + 0.01 / 3, 0.01 / 3, 0.01 / 3], rtol=1e-5)


def test_useless_scores_give_equal_probabilities():
    F = np.random.default_rng(0).normal(size=(300, 3))
    found = fitted(F, F.argmin(axis=1))  # worse than chance
    assert found.temperature == HIGHEST
    np.testing.assert_allclose(found.probabilities(F), 1 / 3, rtol=1e-5)


def test_bounds():
    tiny = np.eye(2)[np.arange(50) % 2] * 1e-9
    assert fitted(tiny, np.arange(50) % 2).temperature == LOWEST
    assert fitted(np.ones((9, 3)), np.arange(9) % 3).temperature == 1  # every T gives the same


@by_both
@pytest.mark.parametrize("seed", range(6))
def test_a_row_of_weight_two_is_two_rows(seed, method):
    rng = np.random.default_rng(seed)
    F, codes, w = rng.normal(size=(50, 3)), rng.integers(0, 3, 50), rng.integers(0, 257, 50)
    codes = np.where(rng.random(50) < 0.6, F.argmax(axis=1), codes)
    many = np.repeat(np.arange(50), w)
    assert fitted(F, codes, w.astype(float), method) == fitted(F[many], codes[many], method=method)


def test_the_unit_of_weights_hardly_matters():
    rng = np.random.default_rng(0)
    F, codes = rng.normal(size=(500, 3)), rng.integers(0, 3, 500)
    codes = np.where(rng.random(500) < 0.5, F.argmax(axis=1), codes)
    one = fitted(F, codes, np.full(500, 1.0)).temperature
    for weight in (1e-9, 1e9):
        assert fitted(F, codes, np.full(500, weight)).temperature == pytest.approx(one, rel=0.02)


# What it changes


def test_probabilities_improve_and_nothing_else_changes(model, halves):
    X, y = halves[2:]
    before = (
        model.scores(X),
        model.decision_function(X),
        model.predict(X),
        log_loss(y, model.predict_proba(X)),
    )
    assert model.calibration_ is None
    assert model.calibrate(X, y) is model
    T = model.calibration_.temperature
    assert T > 1
    np.testing.assert_allclose(model.predict_proba(X), softmax(before[0] / T, axis=1), rtol=1e-14)
    assert pytest.approx(temperature(before[0], y), rel=1e-5) == T
    assert log_loss(y, model.predict_proba(X)) < 0.6 * before[3]
    for now, then in zip(
        (model.scores(X), model.decision_function(X), model.predict(X)), before, strict=False
    ):
        np.testing.assert_array_equal(now, then)
    assert distboost.evaluate(model, X, y)["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(X)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: AdaBoostMMClassifier(n_estimators=5, strategy="os-exponential", edge=0.1),
        lambda: REBELClassifier(n_estimators=5),
    ],
    ids=["vote shares", "sigmoids"],
)
def test_other_links_are_replaced_by_softmax(make, halves):
    X, y = halves[2:]
    model = make().fit(*halves[:2]).calibrate(X, y)
    expected = softmax(model.scores(X) / model.calibration_.temperature, axis=1)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-14)


def test_training_again_removes_it(model, halves):
    model.calibrate(*halves[2:]).set_params(n_estimators=11).fit(*halves[:2], resume=True)
    assert model.calibration_ is None
    model.calibrate(*halves[2:]).fit(*halves[:2])
    assert model.calibration_ is None


# One result on any source and runtime


def stored(folder, X, y, w, rows):
    for name, values in (("x", X), ("y", y), ("w", w)):
        zarr.create_array(str(folder / name), data=values, chunks=(rows, *values.shape[1:]), fill_value=9)
    return [str(folder / name) for name in "xyw"]


@pytest.fixture(scope="module")
def weights(halves):
    w = np.random.default_rng(1).random(len(halves[3])) * 10.0 ** np.linspace(-30, 30, len(halves[3]))
    w[::7] = 0
    return w


@pytest.mark.parametrize(("rows", "method"), [(1, "temperature"), (7, "vector"), (120, "temperature")])
def test_one_calibration_whatever_the_source(rows, method, model, halves, weights, tmp_path, monkeypatch):
    step = 6 if rows == 1 else 1  # each pass reads each chunk
    X, y, weights = (values[::step] for values in (*halves[2:], weights))
    expected = model.calibrate(X, y, weights, method).calibration_
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    monkeypatch.setattr("distboost.evaluation.sums.PIECE_ROWS", 5)
    urls = stored(tmp_path, X, y, weights, rows)
    assert model.calibrate(*urls, method).calibration_ == expected
    arrays = [zarr.open_array(url, mode="r") for url in urls]
    lazy = (da.from_array(a, chunks=(rows, *a.shape[1:])) for a in arrays)
    assert model.calibrate(*lazy, method).calibration_ == expected
    assert model.calibrate(X, arrays[1], list(weights), method).calibration_ == expected


def test_on_a_cluster(model, halves, weights, clients, tmp_path, monkeypatch):
    """A vector comes after a temperature."""
    expected = model.calibrate(*halves[2:], weights, "vector").calibration_
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    urls = stored(tmp_path, *halves[2:], weights, 20)
    model.client = clients[2]
    assert model.calibrate(*urls, "vector").calibration_ == expected


@pytest.mark.parametrize(("method", "passes"), [("temperature", 4), ("vector", 4 + 3)])
def test_rows_are_read_in_a_handful_of_passes(method, passes, model, halves, weights, tmp_path, monkeypatch):
    monkeypatch.setattr("distboost.prediction.streamed.TASK_BYTES", 1000)
    w = (weights > 0).astype(float)
    urls = stored(tmp_path, *halves[2:], w, 20)
    read, seen = [], []
    read_chunk, sums = ZarrPart._read, Judge.sums

    def counted(part, array, piece):
        read.append(piece[0])
        return read_chunk(part, array, piece)

    monkeypatch.setattr(ZarrPart, "_read", counted)
    monkeypatch.setattr(Judge, "sums", lambda self, F, *rest: seen.append(len(F)) or sums(self, F, *rest))
    model.calibrate(*urls, method)
    assert PASSES == {"temperature": 4, "vector": 14}  # at most
    assert sum(stop - start for start, stop in read) == 3 * passes * len(w)
    assert sum(seen) == passes * len(w)


@by_both
def test_rows_of_weight_zero_are_ignored(method, model, halves, weights):
    """Also where rows are counted, because their weights are below 1."""
    X, y, weights = *halves[2:], weights * 1e-32
    expected = model.calibrate(X[weights > 0], y[weights > 0], weights[weights > 0], method).calibration_
    assert model.calibrate(X, np.where(weights > 0, y, 77), weights, method).calibration_ == expected


# Files and copies


@by_both
def test_it_is_kept(method, model, halves, tmp_path):
    X = halves[2]
    model.save(tmp_path / "plain")
    model.calibrate(*halves[2:], method=method).save(tmp_path / "calibrated")
    kept = ["calibration" in read_file(str(tmp_path / name))[0] for name in ("plain", "calibrated")]
    assert kept == [False, True]
    for again in (distboost.load(tmp_path / "calibrated"), pickle.loads(pickle.dumps(model))):
        assert again.calibration_ == model.calibration_
        assert again.digest() == model.digest()
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "calibration_")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"temperature": 0.0}, "temperature is 0.0, not a number above 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"temperature": 1}, "temperature is 1,"),
        ({"method": "magic"}, "method of calibration is 'magic'"),
    ],
)
def test_a_damaged_calibration(change, message, model, halves, tmp_path):
    model.calibrate(*halves[2:]).save(tmp_path / "m")
    header, arrays = read_file(str(tmp_path / "m"))
    header["calibration"] |= change
    write_file(str(tmp_path / "m"), header, arrays)
    with pytest.raises(ModelFormatError, match=message):
        distboost.load(tmp_path / "m")


# Bad input


def test_bad_input(model, halves):
    X, y = halves[2:]
    with pytest.raises(DataError, match=r"77.* in row 5, which is none of the 3"):
        model.calibrate(X, np.where(np.arange(len(y)) == 5, 77, y))
    with pytest.raises(DataError, match="all rows have weight 0"):
        model.calibrate(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="method is 'magic', expected 'temperature' or 'vector'"):
        model.calibrate(X, y, method="magic")
    assert model.calibration_ is None
