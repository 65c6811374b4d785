"""The interface of the rows, in every runtime: histograms, sums and updates are those of the formulas."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost.kernels import gains
from distboost.model.trees import TreeEnsemble
from distboost.rows.messages import Root, Siblings, SplitRules, Splits
from distboost.rows.sums import Best, Reduced
from distboost.splits.tree_histograms import offsets_of
from distboost.threads import Threads
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.codes import (
    CodeSides,
    CodeWeights,
    ColumnSides,
    ColumnSums,
    one_against_all,
)
from distboost.weights.margin import LOGISTIC, ClassPairs, HitsAndMisses, MarginWeights, Residuals
from distboost.weights.response import add_windows
from tests.runtime.placed import STUMPS, WEIGHTING, place, updates_of
from tests.weak.histogram_slots import histogram_of


@pytest.mark.parametrize("wide", [False, True])
def test_root_histogram_is_the_sum_over_rows(runtime, problem, wide):
    X, y, weights = problem
    rows, profile = place(runtime, X, y, weights)
    K = rows.n_classes
    rows.begin(WEIGHTING)
    rules = SplitRules(gains.CODEWORD, 1, 0.0)
    root = Root(np.arange(6), Residuals(WEIGHTING, wide=wide), None, 0.0, rules=rules, search=False)
    sums, _ = rows.init_root(root)
    offsets = offsets_of(rows.n_bins, np.arange(6))

    # All scores are 0: e = 1 for every other class, and shift and scale are those of K - 1 of them.
    scale = rows.histogram_scale
    assert (scale.bits > 22) == wide
    e = np.rint(np.exp(-scale.shift) * scale.factor)
    V = np.where(np.arange(K) == y[:, None], e * (K - 1), -e) * weights[:, None]
    expected = np.zeros((offsets[-1], K + 1), np.int64)
    for d in range(6):
        b = np.where(np.isnan(X[:, d]), rows.n_bins[d], np.searchsorted(profile.edges[d], X[:, d]))
        np.add.at(expected[:, :K], offsets[d] + b, V.astype(np.int64))
        np.add.at(expected[:, K], offsets[d] + b, (weights > 0).astype(np.int64))
    assert_array_equal(histogram_of(rows, 0)[:, : K + 1], expected)
    assert_array_equal(sums, expected[: offsets[1]].sum(axis=0))
    assert rows.totals.tolist() == [e * (K - 1) * weights.sum()]
    rows.close()


def test_totals_are_of_all_rows(runtime, problem):
    """Also of those that were not drawn for the tree, in units of the histograms; they stay until the next tree."""
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, GrowthLimits(max_depth=3, subsample=0.4, seed=1))
    tree = grow(Residuals(WEIGHTING, own=0.3, wide=True), gains.CODEWORD)
    hits = rows.sums(HitsAndMisses(WEIGHTING), tree.leaves)[:, 0]
    assert rows.histogram_scale.real(rows.totals) == pytest.approx(hits.sum(), rel=1e-15)
    assert tree.weight == pytest.approx(weights.sum())
    TreeGrower(rows, STUMPS)(CodeSides(CodeWeights(one_against_all(rows.n_classes))), gains.VOTES)
    assert rows.totals.tolist() == []
    rows.close()


def test_splits_travel_with_the_next_question(runtime, problem):
    X, y, _ = problem
    rows, profile = place(runtime, X, y)
    rows.begin(WEIGHTING)
    rows.init_root(Root(np.arange(6), Residuals(WEIGHTING), None, 0.0, 2, SplitRules(gains.CODEWORD, 1, 0.0)))
    whole = histogram_of(rows, 0)
    rows.split(Splits.of([(0, 2, 10, True, 1, 2)]))
    assert rows.calls["histogram"] == 1
    rows.best_splits([Siblings(0, 1, 2)], search=False)
    assert rows.calls["histogram"] == 2
    children = [histogram_of(rows, node) for node in (1, 2)]
    assert_array_equal(children[0] + children[1], whole)
    left = (X[:, 2] <= profile.edges[2][10]) | np.isnan(X[:, 2])
    counts = [child[: rows.n_bins[0] + 1, rows.n_classes].sum() for child in children]
    assert counts == [left.sum(), (~left).sum()]
    rows.close()


def test_reductions_agree_with_each_other(runtime, problem):
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, GrowthLimits(max_depth=2))
    tree = grow(Residuals(WEIGHTING), gains.DIRECTION)
    T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(WEIGHTING), tree.leaves), 1, 0)
    assert_array_equal(T.sum(axis=2), hits)
    assert_array_equal(T.sum(axis=1), misses)
    groups = rows.sums(ClassPairs(WEIGHTING, np.array([0, 1, 0, 1])), tree.leaves)
    assert_array_equal(groups, [T[0] + T[2], T[1] + T[3]])
    K = rows.n_classes
    assert T.sum() * np.exp(rows.shift_of(ClassPairs(WEIGHTING))) == pytest.approx((K - 1) * weights.sum())
    assert tree.weight == weights.sum()
    rows.close()


def test_update_reports_both_sets_and_happens_once(runtime, problem):
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights, evaluation=(X[:200], y[:200]))
    rows.begin(WEIGHTING)
    tree = TreeGrower(rows, GrowthLimits(max_depth=1))(Residuals(WEIGHTING, wide=True), gains.CODEWORD)
    values = np.arange(2.0 * rows.n_classes).reshape(2, -1) / 10
    asked = updates_of(rows)
    training, evaluation = rows.update([tree.step(values)])

    d, edge = tree.binned.feature[0], tree.binned.bin[0]
    known = np.searchsorted(np.unique(X[~np.isnan(X[:, d]), d]), X[:, d])
    left = np.where(np.isnan(X[:, d]), tree.binned.missing_left[0], known <= edge)
    leaf = np.where(left, ~tree.binned.left[0], ~tree.binned.right[0])
    F = values[leaf]
    own = np.take_along_axis(F, y[:, None], 1)
    e = np.exp(-0.5 * (own - F))
    total = e.sum(axis=1) - 1
    assert training.mean == pytest.approx((weights * total).sum() / weights.sum(), rel=1e-12)
    assert training.error == (weights * (F.argmax(axis=1) != y)).sum() / weights.sum()
    assert evaluation.mean == pytest.approx(total[:200].mean(), rel=1e-12)
    assert evaluation.error == (F.argmax(axis=1) != y)[:200].mean()

    [(question, answer)] = asked
    again = rows._update(question)[0]
    for mine, theirs in zip(again, answer, strict=True):
        assert_array_equal(mine, theirs)
    shifted = replace(question, round=question.round + 1)  # another round: now the scores move again
    assert not np.array_equal(rows._update(shifted)[0].sums, answer.sums)
    rows.close()


def losses_of(F, y, weights, weighting):
    """(mean loss, error) of the scores F."""
    e = np.exp(weighting.s * (F - np.take_along_axis(F, y[:, None], 1)))
    e[np.arange(len(y)), y] = 0
    total = np.log1p(e).sum(axis=1) if weighting.link == LOGISTIC else e.sum(axis=1)
    return (weights * total).sum() / weights.sum(), (weights * (F.argmax(axis=1) != y)).sum() / weights.sum()


@pytest.mark.parametrize(
    "weighting", [WEIGHTING, MarginWeights(1.0, LOGISTIC)], ids=["exponential", "logistic"]
)
def test_a_round_of_several_trees_and_one_that_starts_anew(runtime, problem, weighting):
    """The scores are the sums of all steps; anew, of those steps alone. Both sets of rows, and every loss."""
    X, y, weights = problem
    rows, profile = place(runtime, X, y, weights, evaluation=(X[:200], y[:200]))
    K, rng = rows.n_classes, np.random.default_rng(0)
    rows.begin(weighting)
    grow = TreeGrower(rows, GrowthLimits(max_depth=3))
    ensemble = TreeEnsemble(6, K, per_round=2)
    expected = np.zeros((700, K))

    def check(losses, rel=1e-9):
        for found, part, w in zip(losses, (slice(None), slice(200)), (weights, np.ones(200)), strict=True):
            mean, error = losses_of(expected[part], y[part], w, weighting)
            assert found.mean == pytest.approx(mean, rel=rel)
            assert found.error == error

    with Threads(1) as threads:
        for _ in range(3):
            trees = [
                grow(Residuals(weighting), gains.DIRECTION),
                grow(Residuals(weighting, wide=True), gains.CODEWORD, max_depth=1),
            ]
            assert [tree.n_leaves for tree in trees] == [8, 2]
            values = [rng.normal(size=(tree.n_leaves, K)) for tree in trees]
            ensemble.append(trees, values, profile.edges)
            expected = ensemble.scores(X, threads)
            check(rows.update([trees[0].step(values[0], partitioned=False), trees[1].step(values[1])]))
        asked = updates_of(rows)
        ensemble.rewrite([rng.normal(size=v.shape) for v in [values for _, values in ensemble._learners]])
        expected = ensemble.scores(X, threads)
        # Without a bound on the growth, that of all steps together: it costs digits of the loss.
        check(rows.update(ensemble.steps(range(3), profile.edges), from_zero=True), rel=1e-6)
        question, answer = asked[0]
        for mine, theirs in zip(rows._update(question)[0], answer, strict=True):
            assert_array_equal(mine, theirs)  # once, however often asked

        # The shifts do not tell by what bound they were found.
        shifts = rows.shifts
        rows.round += 1
        check(
            rows.update(
                ensemble.steps(range(3), profile.edges), from_zero=True, growth=np.full(len(shifts), 3.0)
            )
        )
        assert_array_equal(rows.shifts, shifts)

        # And the same rows elsewhere, replayed round by round.
        again, _ = place(runtime, X, y, weights, evaluation=(X[:200], y[:200]))
        again.begin(weighting)
        for number in range(3):
            losses = again.replay(ensemble.steps([number], profile.edges))
        check(losses)
        assert_allclose(again.shifts, shifts, atol=2.0**-9)
        again.close()
    rows.close()


def test_several_trees_in_one_round_each_with_its_sums(runtime, problem):
    """A tree for each column of a code, and one for all: sums by leaf are those of the rows."""
    X, y, weights = problem
    rows, profile = place(runtime, X, y, weights)
    K = rows.n_classes
    code = CodeWeights(one_against_all(K))
    rows.begin(code)
    grow = TreeGrower(rows, GrowthLimits(max_depth=2))
    F = np.zeros((700, K))
    with Threads(1) as threads:
        for _ in range(2):
            trees = [grow(ColumnSides(code, c), gains.VOTES) for c in range(K)][:-1]
            tree = grow(CodeSides(code), gains.REAL_VOTES)
            scale = rows.histogram_scale
            N, P = np.split(scale.real(tree.sums) * np.exp(scale.shift), 2, axis=1)
            columns = [
                add_windows(rows.sums(ColumnSums(code, c), tree.leaves))
                * np.exp(rows.shift_of(ColumnSums(code, c)))
                for c in range(K)
            ]
            alone = TreeEnsemble(6, 1)
            alone.append([tree], [np.arange(float(tree.n_leaves))[:, None]], profile.edges)
            leaf = alone.scores(X, threads)[:, 0].astype(int)
            w = weights[:, None] * np.exp(-code.code[y] * F)
            own = y[:, None] == np.arange(K)
            for m in range(tree.n_leaves):
                assert_allclose(N[m], (w * ~own)[leaf == m].sum(axis=0), rtol=1e-9)
                assert_allclose(P[m], (w * own)[leaf == m].sum(axis=0), rtol=1e-9)
            for c in range(K):
                assert_allclose(columns[c], np.column_stack([N[:, c], P[:, c]]), rtol=1e-9)
            ensemble = TreeEnsemble(6, K, per_round=len(trees) + 1)
            values = [
                np.linspace(-0.5, 1.0, t.n_leaves)[:, None] * np.eye(K)[c]
                for c, t in enumerate([*trees, tree])
            ]
            ensemble.append([*trees, tree], values, profile.edges)
            losses = rows.update(ensemble.steps([0], profile.edges), from_zero=True)
            F = ensemble.scores(X, threads)
            expected = (weights[:, None] * np.exp(-code.code[y] * F)).sum(axis=0)
            assert_allclose(np.exp(losses[0].log_weights), expected, rtol=1e-9)  # column by column
            assert losses[0].mean == pytest.approx(expected.sum() / weights.sum(), rel=1e-9)
    rows.close()


def test_parts_of_an_answer_combine_in_any_order():
    parts = [
        Reduced(np.array([1, 2]), np.array([0.5]), Best(3.0, 7, ("seven",))),
        Reduced(np.array([10, 20]), np.array([-np.inf]), None),
        Reduced(np.array([100, 200]), np.array([2.0]), Best(3.0, 4, ("four",))),
        Reduced(np.array([0, 0]), np.array([1.0]), Best(np.inf, 1, ())),
    ]
    for first, *others in itertools.permutations(parts):
        whole = first
        for other in others:
            whole = whole.combined(other)
        assert whole.sums.tolist() == [111, 222]
        assert whole.maxima.tolist() == [2.0]
        assert whole.best == (3.0, 4, ("four",))  # of equal keys the first row
        assert parts[0].sums.tolist() == [1, 2]
    assert parts[1].combined(parts[1]).best is None
