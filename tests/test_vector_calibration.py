"""The calibration "vector": a scale and a shift for each class, held near the temperature by a penalty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import LimitError, ModelFormatError
from distboost.io.files import read_file, write_file
from distboost.model import learned
from distboost.probabilities.methods import fit_calibration
from distboost.probabilities.vector import PENALTY


def fitted(F, codes, w=None, method="vector"):
    """The calibration, and the number of passes over the rows."""
    passes = []

    def sums(wanted):
        passes.append(wanted)
        # Two blocks.
        parts = [wanted(F[::2], codes[::2], w[::2]), wanted(F[1::2], codes[1::2], w[1::2])]
        assert parts[0].shape == (wanted.size(F.shape[1]),)
        return parts[0] + parts[1]

    w = np.ones(len(F)) if w is None else w
    return fit_calibration(method, sums, F.shape[1]), len(passes)


class Objective:
    """The smoothed log-loss with its penalty, as a function of the scales and shifts, for scipy."""

    def __init__(self, F, codes, w, temperature):
        self.n_classes = F.shape[1]
        self.G = (F - F.mean(axis=1, keepdims=True)) / temperature
        self.unit = np.average(self.G.max(axis=1), weights=w) or 1 / temperature
        n = max(np.count_nonzero(w), w.sum())
        self.w = w * n / w.sum()
        self.target = np.full(F.shape, 1 / (n + 1) / F.shape[1])
        self.target[np.arange(len(F)), codes] += n / (n + 1)

    def __call__(self, point):
        d, b = np.split(point, 2)
        logs = log_softmax(self.G * (1 + d / self.unit) + b, axis=1)
        R = self.w[:, None] * (np.exp(logs) - self.target)
        value = -(self.w @ (self.target * logs).sum(axis=1)) + PENALTY / 2 * (point @ point)
        return value, np.concatenate([(R * self.G).sum(axis=0) / self.unit, R.sum(axis=0)]) + PENALTY * point

    def least(self):
        """The scales and shifts of the least value."""
        found = minimize(self, np.zeros(2 * self.n_classes), jac=True, method="BFGS", options={"gtol": 1e-9})
        d, b = np.split(found.x, 2)
        return 1 + d / self.unit, b


def case(seed, n_classes):
    """Scores that are surer of some classes than of others, labels, and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 2000))
    Z = rng.normal(size=(n, n_classes)) * rng.uniform(0.5, 3, n_classes) + rng.normal(size=n_classes)
    codes = np.array([rng.choice(n_classes, p=p) for p in softmax(Z, axis=1)])
    F = Z * rng.uniform(0.5, 2, n_classes) * 10.0 ** rng.uniform(-3, 3)
    weights = [np.ones(n), rng.random(n), rng.integers(0, 200, n).astype(float)][seed % 3]
    return F, codes, weights


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("seed", range(6))
def test_the_penalised_log_loss_is_least(seed, n_classes):
    F, codes, w = case(seed, n_classes)
    found, passes = fitted(F, codes, w)
    scales, shifts = Objective(F, codes, w, found.temperature).least()
    np.testing.assert_allclose(found.scales, scales, atol=1e-6)
    np.testing.assert_allclose(found.shifts, shifts, atol=1e-6)
    assert found.temperature == fitted(F, codes, w, "temperature")[0].temperature
    assert passes <= 4 + 7


def test_a_class_without_rows():
    F, codes, w = case(3, 4)
    codes[codes == 2] = 0
    found, _ = fitted(F, codes, w)
    np.testing.assert_allclose(
        np.array([found.scales, found.shifts]), Objective(F, codes, w, found.temperature).least(), atol=1e-6
    )
    assert found.shifts[2] == min(found.shifts)
    assert (found.probabilities(F)[:, 2] > 0).all()


def test_all_rows_right_remain_near_the_temperature():
    F, codes = np.eye(3)[np.arange(99) % 3] * 5, np.arange(99) % 3
    found, _ = fitted(F, codes)
    np.testing.assert_allclose(found.scales, 1, atol=0.02)
    np.testing.assert_allclose(found.shifts, 0, atol=1e-9)


def test_equal_scores_have_shifts_only():
    codes = np.repeat([0, 1, 1, 1], 1000)
    found, _ = fitted(np.ones((4000, 2)), codes)
    assert found.scales == (1, 1)
    np.testing.assert_allclose(found.probabilities(np.ones((1, 2))), [[0.25, 0.75]], atol=0.01)


@pytest.mark.parametrize("weight", [1e-30, 1e9, 1e30])
def test_weights_of_any_size(weight):
    F, codes, _ = case(0, 3)
    found, passes = fitted(F, codes, np.full(len(F), weight))
    assert np.isfinite([found.scales, found.shifts]).all()
    assert passes <= 14
    if weight < 1:
        ones, _ = fitted(F, codes)
        np.testing.assert_allclose([found.scales, found.shifts], [ones.scales, ones.shifts], atol=1e-9)


@pytest.mark.parametrize("seed", [27, 36, 49, 65])
def test_distant_scores_lower_the_loss(seed):
    """Newton's own steps raise the loss where some rows' scores are thousands of times as large as others'."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(50, 3000)), int(rng.integers(2, 6))
    F = rng.normal(size=(n, n_classes)) * 10 ** rng.standard_cauchy((n, 1)).clip(-5, 5)
    codes = np.where(rng.random(n) < rng.uniform(0, 0.3), rng.integers(0, n_classes, n), F.argmax(axis=1))
    codes = np.where((codes == 0) & (rng.random(n) < rng.random()), 1, codes)
    w = np.full(n, 10.0 ** rng.integers(0, 5))
    found, passes = fitted(F, codes, w)
    objective = Objective(F, codes, w, found.temperature)
    point = np.concatenate([(np.array(found.scales) - 1) * objective.unit, found.shifts])
    assert objective(point)[0] < objective(0 * point)[0]
    assert passes <= 14


@pytest.fixture(scope="module")
def model(blobs):
    X, y = blobs
    rng = np.random.default_rng(3)
    y = np.where((y == 1) & (rng.random(len(y)) < 0.4), 2, y)  # many of class 1 are labelled as class 2
    made = GDMCBoostClassifier(n_estimators=10, max_depth=3, calibration=None).fit(X[::2], y[::2])
    return made, X[1::2], y[1::2]


def test_only_probabilities_change(model):
    made, X, y = model
    before = made.calibrate(X, y), made.scores(X), made.predict(X)
    loss = distboost.evaluate(made, X, y)["log_loss"]
    made.calibrate(X, y, method="vector")
    found = made.calibration_
    F = made.scores(X)
    np.testing.assert_array_equal(F, before[1])
    np.testing.assert_array_equal(made.predict(X), before[2])
    Z = (F - F.mean(axis=1, keepdims=True)) / found.temperature * found.scales + found.shifts
    np.testing.assert_allclose(made.predict_proba(X), softmax(Z, axis=1), rtol=1e-12)
    assert distboost.evaluate(made, X, y)["log_loss"] < loss
    assert found.shifts[2] > found.shifts[1]
    assert str(found).startswith(f"vector {found.temperature:.6g}, scales ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": [1.0, 1.0]}, r"the scales of its calibration are \[1.0, 1.0\], not 3 finite numbers"),
        ({"shifts": None}, "the shifts of its calibration are None"),
        ({"shifts": [0.0, 1, 0.0]}, "the shifts of its calibration"),
        ({"scales": [1.0, float("inf"), 1.0]}, "the scales of its calibration"),
    ],
)
def test_a_damaged_calibration(change, message, model, tmp_path):
    made, X, y = model
    made.calibrate(X, y, method="vector").save(tmp_path / "m")
    header, arrays = read_file(str(tmp_path / "m"))
    header["calibration"] |= change
    write_file(str(tmp_path / "m"), header, arrays)
    with pytest.raises(ModelFormatError, match=message):
        distboost.load(tmp_path / "m")


def test_too_many_classes(model, monkeypatch):
    monkeypatch.setattr(learned, "MOST_CLASSES", 2)
    made, X, y = model
    with pytest.raises(LimitError, match=r"3 classes, but the calibration 'vector'.* at most 2\. Use 'temp"):
        made.calibrate(X, y, method="vector")
    with pytest.raises(LimitError, match="there are 3 classes"):
        GDMCBoostClassifier(calibration="vector").fit(X, y)
