"""GD-MCBoost with the multinomial logistic loss, against a slow twin that works on rows; what holds for it alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

import distboost
from distboost import GDMCBoostClassifier
from distboost.errors import DataError

LIMIT = np.log(2.0**40)
LEAVES = ("direction", "codeword", "newton")


def data(n=240, K=4, seed=0):
    """Classes in an order along a sum of features, with noise; few different values."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, 4)), 1)
    noisy = X[:, 0] + X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(noisy, np.linspace(0, 1, K + 1)[1:-1]), noisy)
    return X, y, rng


class Twin:
    """The algorithm on rows with real numbers."""

    def __init__(self, leaf, l2=1.0, learning_rate=1.0, depth=3):
        self.leaf, self.l2, self.rate, self.depth = leaf, l2, learning_rate, depth

    def fit(self, X, y, w, rounds):
        self.X, self.w = X, w
        self.own = np.eye(y.max() + 1)[y]
        F = np.zeros(self.own.shape)
        self.losses, self.scores = [], []
        for _ in range(rounds):
            P = softmax(F, axis=1)
            self.R, self.H = w[:, None] * (self.own - P), w[:, None] * P * (1 - P)
            V = np.zeros(F.shape)
            for rows in self.leaves(np.arange(len(y)), self.depth):
                V[rows] = self.value(rows)
            F = F + self.rate * self.step(F, V) * V
            self.losses.append((w * self.loss(F)).sum() / w.sum())
            self.scores.append(F)
        return self

    def loss(self, F):
        return logsumexp(F, axis=1) - (F * self.own).sum(axis=1)

    def worth(self, rows):
        S = self.R[rows].sum(axis=0)
        if self.leaf == "codeword":
            return S.max()
        if self.leaf == "direction":
            return np.sqrt(S @ S)
        return S @ S / (self.w[rows].sum() + self.l2)

    def leaves(self, rows, depth):
        best, sides = self.worth(rows), None
        for d in range(self.X.shape[1]) if depth else ():
            x = self.X[rows, d]
            for t in np.unique(x)[:-1]:
                parts = rows[x <= t], rows[x > t]
                worth = sum(map(self.worth, parts))
                if worth > best + 1e-10 * abs(best):  # ties go to the first
                    best, sides = worth, parts
        return [rows] if sides is None else [leaf for side in sides for leaf in self.leaves(side, depth - 1)]

    def value(self, rows):
        S, H, K = self.R[rows].sum(axis=0), self.H[rows].sum(axis=0), self.own.shape[1]
        if self.leaf == "newton":
            return (K - 1) / K * S / (H + self.l2)
        if self.leaf == "codeword":
            return np.where(np.arange(K) == S.argmax(), 1.0, -1 / (K - 1))
        return np.sqrt(K / (K - 1)) * S / np.sqrt(S @ S)

    def step(self, F, V):
        def slope(α):
            return (self.w * ((softmax(F + α * V, axis=1) - self.own) * V).sum(axis=1)).sum()

        limit = LIMIT / np.ptp(V, axis=1).max()
        if self.leaf == "newton":
            limit = min(limit, 1.0)
        return brentq(slope, 0, limit, xtol=1e-14, rtol=1e-14) if slope(limit) > 0 else limit


@pytest.mark.pairwise
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("K", "rate"), [(2, 1.0), (4, 1.0), (4, 0.3), (9, 0.7)])
def test_the_twin_on_rows(leaf, weighted, K, rate):
    X, y, rng = data(K=K, seed=K)
    w = rng.choice([0.5, 1.0, 3.0], len(y)) if weighted else np.ones(len(y))
    l2 = {"l2": 0.4} if leaf == "newton" else {}
    twin = Twin(leaf, **l2, learning_rate=rate).fit(X, y, w, 8)
    model = GDMCBoostClassifier(
        calibration=None, loss="softmax", leaf=leaf, **l2, n_estimators=8, max_depth=3, learning_rate=rate
    )
    model.fit(X, y, sample_weight=w)
    assert_allclose(model.train_loss_, twin.losses, rtol=1e-9)
    for F, expected in zip(model.staged_scores(X), twin.scores, strict=True):
        assert_allclose(F, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(model.predict_proba(X), softmax(twin.scores[-1], axis=1), rtol=1e-8)


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_the_loss_falls_in_every_round(leaf, rate):
    X, y, _ = data(n=600)
    model = GDMCBoostClassifier(
        calibration=None, loss="softmax", leaf=leaf, n_estimators=30, max_depth=3, learning_rate=rate
    )
    losses = model.fit(X, y).train_loss_
    assert losses[0] < np.log(4)
    assert (np.diff(losses) < 0).all()


def test_two_classes_are_logistic_regression_on_trees():
    """Direction and Newton without a penalty differ in the leaves' lengths: of a single leaf each they are the same."""
    X, y, _ = data(K=2)
    stump = GDMCBoostClassifier(calibration=None, loss="softmax", n_estimators=1, max_depth=1).fit(X, y)
    F = stump.scores(X)
    assert_allclose(F.sum(axis=1), 0, atol=1e-12)
    newton = GDMCBoostClassifier(
        calibration=None, loss="softmax", leaf="newton", l2=0.0, n_estimators=40, max_depth=1
    ).fit(X, y)
    # The best odds of a stump's leaf are those of its rows.
    left = X[:, 0] <= X[F[:, 1] < 0, 0].max()
    assert newton.train_loss_[-1] < stump.train_loss_[0] <= np.log(2)
    assert left.any()


def test_wrong_labels_weigh_at_most_one():
    """Where no tree parts right labels from wrong ones, the probabilities are the shares of the classes."""
    rng = np.random.default_rng(0)
    x = np.repeat([[0.0], [1.0]], 500, axis=0)
    y = np.repeat([0, 1], 500)
    y[rng.choice(1000, 10, replace=False)] ^= 1
    model = GDMCBoostClassifier(calibration=None, loss="softmax", n_estimators=20).fit(x, y)
    share = np.array([(y[x[:, 0] == side] == side).mean() for side in (0, 1)])
    P = model.predict_proba(np.array([[0.0], [1.0]]))
    assert_allclose(
        P[[0, 1], [0, 1]], share, rtol=1e-6
    )  # the population minimiser: the shares of the classes


@pytest.mark.parametrize("leaf", ["direction", "codeword"])
def test_a_tree_without_an_error_has_a_bounded_step(leaf):
    X, y = np.arange(90.0)[:, None], np.arange(90) // 30
    stopped = GDMCBoostClassifier(
        calibration=None, loss="softmax", leaf=leaf, max_depth=3, on_separation="stop", n_estimators=4
    )
    with pytest.warns(distboost.errors.TrainingEndedWarning):
        stopped.fit(X, y)
    assert stopped.outcome_ == "separated"
    assert np.ptp(stopped.scores(X), axis=1).max() <= LIMIT * stopped.n_iter_ * (1 + 1e-12)
    going_on = GDMCBoostClassifier(
        calibration=None, loss="softmax", leaf=leaf, max_depth=3, n_estimators=12
    ).fit(X, y)
    assert going_on.n_iter_ == 12
    assert np.isfinite(going_on.scores(X)).all()
    assert going_on.score(X, y) == 1.0


def test_newtons_values_are_not_lengthened():
    """The longest step is 1, so that the penalty holds: without it, a pure leaf would ask for the largest step."""
    X, y = np.arange(90.0)[:, None], np.arange(90) // 30
    for l2 in (0.0, 1.0, 1e4):
        model = GDMCBoostClassifier(
            calibration=None, loss="softmax", leaf="newton", l2=l2, max_depth=3, n_estimators=3
        )
        first, *_, last = model.fit(X, y).staged_scores(X)
        # 30 rows in a leaf, p = 1/3.
        own = 2 / 3 * (30 * 2 / 3) / (30 * 2 / 9 + l2)
        assert_allclose(first, own * (1.5 * np.eye(3)[y] - 0.5), rtol=1e-12)
        assert (np.ptp(last, axis=1) > np.ptp(first, axis=1)).all()
        assert model.outcome_ == "rounds"


def test_a_larger_penalty_shortens_the_values_of_light_leaves():
    """Without a line search's common factor: the ratio of a light leaf's value to a heavy one's."""
    x = np.repeat([[0.0], [1.0]], [4, 400], axis=0)
    y = np.concatenate([[0, 0, 0, 1], np.arange(400) % 4 > 0])
    ratios = []
    for l2 in (0.0, 1.0, 10.0):
        model = GDMCBoostClassifier(
            calibration=None, loss="softmax", leaf="newton", l2=l2, n_estimators=1, max_depth=1
        ).fit(x, y)
        F = model.scores(np.array([[0.0], [1.0]]))
        ratios.append(abs(F[0, 0] / F[1, 0]))
    # S = 1 of 4 rows and 100 of 400, curvatures of 1/4 a row.
    assert_allclose(ratios, [(1 / (1 + l2)) / (100 / (100 + l2)) for l2 in (0.0, 1.0, 10.0)], rtol=1e-9)


def test_parameters_that_do_not_go_together():
    X, y, _ = data(n=40)
    with pytest.raises(DataError, match=r"leaf is 'newton', but loss is 'exponential'.*loss='softmax'"):
        GDMCBoostClassifier(calibration=None, leaf="newton").fit(X, y)
    with pytest.raises(DataError, match=r"l2 is 0\.5, but leaf is 'direction'.*leaf='newton'"):
        GDMCBoostClassifier(calibration=None, l2=0.5).fit(X, y)
    with pytest.raises(DataError, match=r"statistic_bits=4, but"):
        GDMCBoostClassifier(calibration=None, loss="softmax", leaf="newton", statistic_bits=4).fit(X, y)
    for l2 in (-1.0, "1"):
        with pytest.raises(ValueError, match="'l2' parameter"):
            GDMCBoostClassifier(calibration=None, loss="softmax", leaf="newton", l2=l2).fit(X, y)


def test_new_parameters_at_their_defaults_leave_the_file_as_it_was(tmp_path):
    X, y, _ = data(n=60)
    model = GDMCBoostClassifier(calibration=None, n_estimators=2).fit(X, y)
    model.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    assert b"l2" not in content
    assert b'loss\\\\\\"' not in content.replace(b"_loss", b"")
    softmax_model = GDMCBoostClassifier(calibration=None, n_estimators=2, loss="softmax").fit(X, y)
    softmax_model.save(tmp_path / "model")
    assert distboost.load(tmp_path / "model").loss == "softmax"
    assert_array_equal(distboost.load(tmp_path / "model").scores(X), softmax_model.scores(X))
