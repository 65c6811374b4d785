"""With many classes, algorithms agree with others of the papers, and with the textbook's for each class."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost import (
    AdaBoostMMClassifier,
    GDMCBoostClassifier,
)
from distboost.algorithms.adaboost_mm import AdaBoostMM
from distboost.algorithms.base import Learner, Round
from distboost.baselines import (
    AdaBoostMHClassifier,
    AdaBoostMOClassifier,
    GentleAdaBoostClassifier,
    OneVsAllAdaBoostClassifier,
)
from distboost.estimators.factory import classifier
from distboost.kernels import gains
from distboost.weights.margin import HitsAndMisses, Residuals
from tests.theory.problems import PROBLEMS, adaboost, gentle_adaboost, stumps


class ExactMM(AdaBoostMM):
    """AdaBoost.MM with the exact line search along its weak learners."""

    name = "adaboost-mm-exact"
    notes = ()

    def learn(self, rows, grow):
        tree = grow(Residuals(self.margins, wide=True), gains.CODEWORD)
        hits, misses = np.moveaxis(rows.sums(HitsAndMisses(self.margins), tree.leaves), 1, 0)
        c, leaf = np.argmax(hits - misses, axis=1), np.arange(tree.n_leaves)
        A, B = hits[leaf, c].sum(), misses[leaf, c].sum()
        return Round([Learner(tree, np.log(A / B) / 2 * np.eye(self.n_classes)[c])])

    def restore_notes(self, notes):
        pass


ExactMMClassifier = classifier(ExactMM)


@pytest.mark.parametrize("name", ["two classes", "overlap", "glass", "vehicle", "vowel"])
def test_gd_mcboost_with_codewords_is_adaboost_mm_with_the_exact_step(name):
    """F_MM is F_GD / 2 but for a shift of each row."""
    X, y = PROBLEMS[name]()
    gd = GDMCBoostClassifier(calibration=None, n_estimators=12, leaf="codeword", max_depth=2).fit(X, y)
    mm = ExactMMClassifier(calibration=None, n_estimators=12, max_depth=2).fit(X, y)
    for ours, theirs in zip(gd.staged_scores(X), mm.staged_scores(X), strict=True):
        assert_allclose(theirs - theirs.mean(axis=1, keepdims=True), ours / 2, rtol=1e-9, atol=1e-9)
    assert_allclose(mm.train_loss_, gd.train_loss_ - 1, rtol=1e-9)


def test_adaboost_mm_takes_the_step_of_its_edge():
    """Both begin with the same tree; 1/2 ln((1 + δ) / (1 - δ)) does not go beyond the minimum of the loss."""
    X, y = PROBLEMS["vehicle"]()
    mm, exact = (
        Estimator(n_estimators=1, max_depth=3).fit(X, y)
        for Estimator in (AdaBoostMMClassifier, ExactMMClassifier)
    )
    ours, theirs = mm.learned_.ensemble.arrays(), exact.learned_.ensemble.arrays()
    for name in ("feature", "threshold", "missing_left"):
        assert_array_equal(ours[name], theirs[name])
    assert_allclose(ours["values"].max(), np.arctanh(mm.edge_[0]), rtol=1e-12)
    assert ours["values"].max() < theirs["values"].max()
    assert exact.train_loss_[0] < mm.train_loss_[0] <= mm.loss_bound_[0]


@pytest.mark.parametrize(
    ("make", "reference"),
    [(OneVsAllAdaBoostClassifier, adaboost), (GentleAdaBoostClassifier, gentle_adaboost)],
    ids=["one_vs_all", "gentle_adaboost"],
)
def test_one_vs_all_is_one_for_each_class(make, reference):
    X, y = PROBLEMS["overlap"]()
    model = make(calibration=None, n_estimators=10).fit(X, y)
    expected = [reference(X, np.where(y == c, 1, -1), 10) for c in range(5)]
    for t, F in enumerate(model.staged_scores(X)):
        assert_allclose(F, np.column_stack([stages[t] for stages in expected]), rtol=1e-9, atol=1e-12)


def test_adaboost_mh_votes_with_the_best_stump_of_all_classes():
    """A stump and a vote for each class, opposite on its sides, though a rare class may be outvoted on both."""
    X, y = PROBLEMS["overlap"]()
    H, Y = stumps(X), np.where(y[:, None] == np.arange(5), 1.0, -1.0)
    F = np.zeros(Y.shape)
    model = AdaBoostMHClassifier(calibration=None, n_estimators=10).fit(X, y)
    for found in model.staged_scores(X):
        W = np.exp(-Y * F)
        edges = H @ (W * Y) / W.sum()
        best = np.argmax(np.abs(edges).sum(axis=1))
        F = F + np.arctanh(np.abs(edges[best]).sum()) * np.outer(H[best], np.sign(edges[best]))
        assert_allclose(found, F, rtol=1e-9, atol=1e-12)


def test_adaboost_mo_moves_all_columns_of_its_code_by_one_step():
    X, y = PROBLEMS["noise"]()
    K, n_rounds, H = 4, 8, stumps(X)
    code = np.array([[1 if (b + 1) >> k & 1 else -1 for b in range(2 ** (K - 1) - 1)] for k in range(K - 1)])
    code = np.concatenate([np.full((1, code.shape[1]), -1), code])
    model = AdaBoostMOClassifier(calibration=None, n_estimators=n_rounds).fit(X, y)
    G = np.zeros((len(X), code.shape[1]))
    for t, F in enumerate(model.staged_scores(X)):
        w = np.exp(-code[y] * G)
        edges = H @ (w * code[y])
        best = np.argmax(np.abs(edges), axis=0)
        h = np.sign(edges[best, np.arange(len(best))]) * H[best].T
        G += np.arctanh((w * code[y] * h).sum() / w.sum()) * h
        assert_allclose(F, G @ code.T, rtol=1e-9, atol=1e-9)
        assert model.train_loss_[t] == pytest.approx(np.exp(-code[y] * G).mean(), rel=1e-9)
