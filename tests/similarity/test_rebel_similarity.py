"""REBEL's similarities follow the procedure of the paper, and keep its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq

from distboost.algorithms.rebel import LARGEST_STEP, real_steps, sign_steps
from distboost.data.blocks import BinnedRows
from distboost.kernels import random, similarity
from distboost.kernels.similarity import CONSTANT, ONE_POINT, PIECES, TERMS, TWO_POINT
from distboost.rows.sums import Scale
from distboost.runtime.block import Block
from distboost.similarity.search import Correlations, Isolation, Similarity, Surroundings, Trials, arrays_of
from distboost.weights.codes import CodeWeights, one_against_all
from tests.similarity.similarities import ROOT, classifier

PEAK = (4 / 3) ** 0.25 / (16 / 3)


def squared(X, z):
    return (np.nan_to_num(X - z) ** 2).sum(axis=1)


def f_one(X, i, tau):
    s = squared(X, X[i])
    return (tau - s) / (tau + s)


def f_two(X, i, j):
    d, m = np.nan_to_num((X[i] - X[j]) / 2), (X[i] + X[j]) / 2
    d2 = d @ d
    return (np.nan_to_num(X - m) @ d) * (d2 / PEAK) / (4 * d2**2 + squared(X, m) ** 2)


def lowest(w, g):
    """The a of least sum w exp(a g), at most LARGEST_STEP in size."""

    def slope(a):
        return (w * g * np.exp(a * g)).sum()

    if slope(LARGEST_STEP) <= 0:
        return LARGEST_STEP
    if slope(-LARGEST_STEP) >= 0:
        return -LARGEST_STEP
    return brentq(slope, -LARGEST_STEP, LARGEST_STEP, xtol=1e-13, rtol=1e-13)


class Twin:
    """One round at a time: `round` gives the values of the chosen similarity, its steps and the loss after them."""

    def __init__(self, X, y, output="real", similarity="two-point", max_candidates=None, weights=None):
        self.X, self.y, self.output, self.two = X, y, output, similarity == "two-point"
        self.max_candidates = max_candidates or len(X)
        self.c = np.ones(len(X)) if weights is None else weights
        self.s = np.where(np.eye(y.max() + 1)[y] > 0, -1.0, 1.0)
        self.F = np.zeros(self.s.shape)

    def judged(self, f, w):
        """(loss, f, a)"""
        c, n = self.c[:, None], self.c.sum()
        if self.output == "sign":
            f = np.where(f >= 0, 1.0, -1.0)
            g = self.s * f[:, None]
            s_T, s_F = (c * w * (g < 0)).sum(axis=0) / n, (c * w * (g > 0)).sum(axis=0) / n
            with np.errstate(divide="ignore"):
                a = np.clip((np.log(s_T) - np.log(s_F)) / 2, -LARGEST_STEP, LARGEST_STEP)
            return (s_T * np.exp(-a) + s_F * np.exp(a)).sum(), f, a
        g = self.s * f[:, None]
        a = np.array([lowest(c[:, 0] * w[:, k], g[:, k]) for k in range(w.shape[1])])
        return (c * w * np.exp(a * g)).sum() / n, f, a

    def round(self):
        X, s, c, n = self.X, self.s, self.c[:, None], self.c.sum()
        w = np.exp(s * self.F) / 2
        candidates = [self.judged(np.ones(len(X)), w)]
        u = w * s / np.sqrt(n * (c * w).sum(axis=0))
        eigenvalues, Q = np.linalg.eigh((c * u).T @ u)
        v = u @ Q[:, -1] / np.sqrt(eigenvalues[-1])
        v *= np.sign(v[np.argmax(np.abs(v))])
        b = np.where(v >= -1e-10 * np.abs(v).max(), 1, -1)
        N, P = (c * w * (s > 0)).sum(axis=0), (c * w * (s < 0)).sum(axis=0)
        losses = np.sqrt(np.maximum((N - s * c * w) * (P + s * c * w), 0)).sum(axis=1)
        i = int(np.flatnonzero(losses <= losses.min() * (1 + 1e-12))[0])
        distance = squared(X, X[i])
        tau = distance[distance > 0].min() / 2
        candidates.append(self.judged(f_one(X, i, tau), w))
        remains = (b != b[i]) & (distance > 0)
        while self.two and remains.any() and len(candidates) < 2 + self.max_candidates:
            j = int(np.flatnonzero(remains)[np.argmin(distance[remains])])
            f = f_two(X, i, j)
            candidates.append(self.judged(f, w))
            remains &= f > f[j] / 2
        self.n_candidates = len(candidates) - 2
        return min(candidates, key=lambda candidate: candidate[0])

    def train(self, n_rounds):
        losses, passes = [], []
        for _ in range(n_rounds):
            loss, f, a = self.round()
            self.F = self.F + f[:, None] * a
            losses.append(loss)
            passes.append(4 + max(self.n_candidates, 1))
        return losses, passes


def assert_follows(model, twin, X):
    losses, passes = twin.train(model.n_iter_)
    assert_allclose(model.train_loss_, losses, rtol=1e-8)  # the sum of fractional weights is rounded
    assert_allclose(model.scores(X), twin.F, atol=1e-7)
    assert_array_equal(model.passes_, passes)


def test_follows_the_procedure(parameters, data):
    X, y = data
    assert_follows(classifier(**parameters).fit(X, y), Twin(X, y, **parameters), X)


def test_missing_coordinates_add_nothing(parameters, data):
    X, y = data[0].copy(), data[1]
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    assert_follows(classifier(**parameters).fit(X, y), Twin(X, y, **parameters), X)


@pytest.mark.parametrize("whole", [True, False])
def test_row_weights(whole, parameters, data):
    X, y = data
    weights = np.random.default_rng(2).integers(0, 4, len(y)).astype(float)
    if not whole:
        weights *= 0.37
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    model = classifier(**parameters).fit(X, y, sample_weight=weights)
    assert_follows(model, Twin(X, y, weights=weights, **parameters), X)


def test_rows_of_weight_0_are_not_there(parameters, data):
    X, y = data
    weights = np.random.default_rng(3).integers(0, 2, len(y)).astype(float)
    model = classifier(**parameters).fit(X, y, sample_weight=weights)
    without = classifier(**parameters).fit(X[weights > 0], y[weights > 0])
    assert_array_equal(
        model.learned_.ensemble.arrays()["values"], without.learned_.ensemble.arrays()["values"]
    )
    assert_array_equal(model.train_loss_, without.train_loss_)


def test_a_doubled_row_is_one_of_weight_2():
    """Up to the choice of the row to isolate, which the weight of each single row decides: here it is another one."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1, 2], [20, 12, 8])
    doubled = int(np.flatnonzero(y == 0)[-1])
    weights = np.ones(40)
    weights[doubled] = 2
    rows = np.insert(np.arange(40), doubled, doubled)
    weighted = classifier(n_estimators=1).fit(X, y, sample_weight=weights)
    repeated = classifier(n_estimators=1).fit(X[rows], y[rows])
    isolated = weighted.learned_.ensemble.arrays()["anchors"][0, 0]
    if not np.array_equal(isolated, X[doubled]):
        for name, array in weighted.learned_.ensemble.arrays().items():
            assert_array_equal(array, repeated.learned_.ensemble.arrays()[name])
        assert_array_equal(weighted.train_loss_, repeated.train_loss_)
    else:
        pytest.fail("the doubled row was isolated: choose another seed")


def test_rows_at_the_same_place_are_not_neighbours():
    """Neither the copy of a row nor a row of another class at the same place makes a similarity degenerate."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 3, 60)
    X, y = np.concatenate([X, X]), np.concatenate([y, (y + rng.integers(0, 2, 60)) % 3])
    model = classifier(n_estimators=10).fit(X, y)
    assert np.isfinite(model.scores(X)).all()
    assert (np.diff(model.train_loss_) < 0).all()
    assert_follows(model, Twin(X, y), X)


def test_one_place_only():
    """Rows that nothing tells apart: the constant has the classes' log odds, then nothing lowers the loss."""
    X, y = np.ones((10, 2)), np.array([0] * 7 + [1] * 3)
    model = classifier().fit(X, y)
    assert model.n_iter_ == 1
    assert model.outcome_ == "no split"
    assert model.learned_.ensemble.arrays()["kind"].tolist() == [CONSTANT]
    assert_allclose(model.scores(X)[0], np.log([7 / 3, 3 / 7]) / 2)


def test_two_rows():
    X, y = np.array([[0.0], [1.0]]), np.array([0, 1])
    model = classifier(n_estimators=3).fit(X, y)
    assert model.n_iter_ == 3
    assert model.score(X, y) == 1.0
    by_sign = classifier(output="sign", on_separation="stop").fit(X, y)
    assert by_sign.outcome_ == "separated"
    assert by_sign.n_iter_ == 1


def test_subsample_learns_from_the_drawn_rows(data):
    X, y = data
    model = classifier(n_estimators=1, subsample=0.5, random_state=7).fit(X, y)
    drawn = random.uniforms(random.key(7, random.ROW_SUBSAMPLE, 1), 0, len(y)) < 0.5
    twin = Twin(X[drawn], y[drawn])
    _, f, a = twin.round()
    assert_allclose(model.scores(X[drawn]), f[:, None] * a, atol=1e-5)


def test_subsample_without_rows_goes_on(data):
    model = classifier(n_estimators=4, subsample=1e-9).fit(*data)
    assert model.n_iter_ == 4
    assert_array_equal(model.scores(data[0]), 0.0)


# Guarantees.


def test_bound_of_the_paper(parameters):
    """Section 5: whatever the labels, each round's loss is at most 1 - 2 / (K N^2) times the one before."""
    rng = np.random.default_rng(6)
    for n, n_classes in ((12, 2), (20, 3), (40, 5)):
        X, y = rng.normal(size=(n, 2)), np.arange(n) % n_classes
        model = classifier(n_estimators=40, **parameters).fit(X, y)
        losses = np.array([n_classes / 2, *model.train_loss_])
        assert (losses[1:] / losses[:-1] <= 1 - 2 / (n_classes * n**2)).all()


def test_training_error_vanishes(data):
    model = classifier(n_estimators=200).fit(*data)
    assert model.score(*data) == 1.0
    assert (model.train_error_ <= model.train_loss_).all()


@pytest.mark.parametrize("kind", [ONE_POINT, TWO_POINT])
def test_similarities_are_within_1(kind):
    rng = np.random.default_rng(7)
    x, z = rng.normal(size=(2, 3))
    found = Similarity(kind, np.stack([x, z]), 0.7, False)
    m, d = (x + z) / 2, (x - z) / 2
    t = np.linspace(-3, 3, 2001)[:, None]
    X = m + t * d if kind == TWO_POINT else x + t * d
    X = np.concatenate([X, rng.normal(size=(1000, 3)), [x, z, [np.nan] * 3, [1e200] * 3]])
    f = np.empty(len(X))
    similarity.evaluate(X, np.arange(len(X), dtype=np.int32), *arrays_of([found]), 0, f)
    assert np.abs(f).max() <= 1.0
    assert f.max() == pytest.approx(1.0, abs=1e-5)
    if kind == ONE_POINT:
        assert f[-4] == 1.0
        assert f[-1] == -1.0
    else:
        assert f.min() == pytest.approx(-1.0, abs=1e-5)
        assert f[-4] == pytest.approx(-f[-3])
        assert f[-2] == f[-1] == 0.0


# Line searches.


def sums_of(g, w):
    """The sums of the line search for values g (n, K) and weights w (n, K)."""
    n_classes = g.shape[1]
    S = np.zeros((PIECES, n_classes, TERMS))
    piece = np.minimum(((g + 1) * PIECES / 2).astype(int), PIECES - 1)
    t = (g - ((2 * piece + 1) / PIECES - 1)) * PIECES
    for k in range(n_classes):
        T = np.polynomial.chebyshev.chebvander(t[:, k], TERMS - 1)
        np.add.at(S[:, k], piece[:, k], w[:, k, None] * T)
    return S


@pytest.mark.parametrize("ratio", [1.0, 1e-2, 1e-4, 1e-8])
def test_line_searches_are_exact(ratio):
    rng = np.random.default_rng(8)
    g = rng.uniform(-1, 1, (500, 6))
    w = rng.random((500, 6)) ** 4 * np.where(g > 0, ratio, 1.0)
    a, losses = real_steps(sums_of(g, w))
    slope = (w * g * np.exp(a * g)).sum(axis=0)
    curvature = (w * g * g * np.exp(a * g)).sum(axis=0)
    inside = np.abs(a) < LARGEST_STEP
    assert_allclose((slope / curvature)[inside], 0.0, atol=1e-12)
    assert (slope[~inside] * a[~inside] < 0).all()
    assert inside.all() == (ratio > 1e-8)
    assert_allclose(losses, (w * np.exp(a * g)).sum(axis=0), rtol=1e-12)


def test_line_searches_of_columns_without_rows_or_without_errors():
    g = np.array([[0.5, 0.5, -0.5], [0.25, 0.25, -0.25]])
    a, losses = real_steps(sums_of(g, np.array([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]])))
    assert_array_equal(a, [0.0, -LARGEST_STEP, LARGEST_STEP])
    assert losses[0] == 0.0


def test_steps_of_signs():
    g = np.array([[1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]])
    a, losses = sign_steps(sums_of(g, np.ones((3, 2))))
    assert_allclose(a, [np.log(2) / 2, LARGEST_STEP])
    assert_allclose(losses[0], 2 * np.sqrt(2))


# Questions.


def test_questions_may_be_asked_twice(data):
    X, y = data
    n, n_classes = len(y), 4
    rows = BinnedRows(100, np.zeros((n, 1), np.uint8), y.astype(np.int32), np.ones(n), X)
    block = Block(rows, n_classes, n_classes, score_dtype="float64")
    block.start_tree(None)
    weighting, scale = CodeWeights(one_against_all(n_classes)), Scale(0.0, 50)

    def asked(question):
        first, again = question.answer(block, ROOT, scale), question.answer(block, ROOT, scale)
        assert_array_equal(first.sums, again.sums)
        assert_array_equal(first.maxima, again.maxima)
        assert (first.best is None) == (again.best is None)
        if first.best is not None:
            assert first.best[:2] == again.best[:2]
        return first

    sums = scale.real(asked(Correlations(weighting, np.zeros(n_classes))).sums)
    best = asked(Isolation(weighting, sums[-2:], np.ones(n_classes), np.eye(n_classes)[0])).best
    assert best.row >= 100
    anchor, v = best.content
    best = asked(Surroundings(anchor, 1.0, 0.0, v >= 0)).best
    answers = []
    for number in range(1, 6):
        found = arrays_of([Similarity.two_point(anchor, best.content[0], False)])
        question = Trials(weighting, found, False, number, -0.49)
        best = asked(question).best
        answers.append((question, best))
    # All of them anew, after the last.
    for question, expected in answers:
        assert question.answer(block, ROOT, scale).best[:2] == expected[:2]


@pytest.mark.parametrize("weight", [1.0, 0.7, 200.0])
def test_sums_are_the_same_in_any_order(weight):
    """They are added up as floats: were they finer than a float holds, their last digits would depend on the order of rows."""
    rng = np.random.default_rng(0)
    n, n_classes = 300, 3
    scores, labels = rng.normal(size=(n, n_classes)), rng.integers(0, n_classes, n).astype(np.int32)
    question = Correlations(CodeWeights(one_against_all(n_classes)), np.abs(scores).max(axis=0))
    found = []
    for order in (np.arange(n), rng.permutation(n)):
        block = Block(
            BinnedRows(0, np.zeros((n, 1), np.uint8), labels[order], np.full(n, weight), scores),
            n_classes,
            n_classes,
            score_dtype="float64",
        )
        block.scores[:] = scores[order]
        block.start_tree(None)
        found.append(question.answer(block, ROOT, Scale.fine(0.0, weight * n)).sums)
    assert_array_equal(*found)


def test_early_stopping_keeps_the_best_round(data):
    X, y = data
    model = classifier(n_estimators=60, early_stopping_rounds=2)
    model.fit(X[::2], y[::2], eval_set=(X[1::2], y[1::2]))
    assert model.best_iteration_ == np.argmin(model.eval_error_) + 1
    assert model.score(X[1::2], y[1::2]) == pytest.approx(1 - model.eval_error_.min())
