"""The contract of `Rows`, the same for every runtime: sums, splits, updates, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.algorithms.gamble import GAMBLE
from distboost.algorithms.mcboost import GDMCBoost
from distboost.data.dataset import RawDataset
from distboost.model import Ensemble
from distboost.rows import Splits
from distboost.training import train
from distboost.weak import gains
from distboost.weak.splits import Histograms
from distboost.weak.tree import GrowthLimits, TreeGrower
from distboost.weighting import ClassPairs, HitsAndMisses, MarginWeights


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 30, (700, 6)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) + rng.integers(0, 9, 700)).astype(int) // 16
    weights = rng.integers(0, 4, 700).astype(float)
    return X, y, weights


def place(runtime, X, y, weights=None, evaluation=None):
    data = RawDataset.of(X, y, weights)
    profile = data.profile(255, 0, runtime)
    sets = [data.binned(profile, np.ones(len(profile.classes)), 7)]
    if evaluation is not None:
        sets.append(RawDataset.of(*evaluation, None).binned(profile, None, 5))
    return runtime.place(sets, profile.n_bins, len(profile.classes), "float64"), profile


def test_root_histogram_is_the_sum_over_rows(runtime, problem):
    X, y, weights = problem
    rows, profile = place(runtime, X, y, weights)
    K = rows.n_classes
    rows.begin(MarginWeights(0.5))
    rows.start_round(np.arange(6))
    histograms = Histograms(rows.n_bins, K + 1)
    [slot] = histograms.take(1)
    rows.histogram([0], histograms, [slot])

    # All scores are 0: e = 1 for every other class, and shift and scale are those of K - 1 of them.
    scale = rows.histogram_scale
    e = np.rint(np.exp(-scale.shift) * scale.factor)
    V = np.where(np.arange(K) == y[:, None], e * (K - 1), -e) * weights[:, None]
    expected = np.zeros((histograms.offsets[-1], K + 1), np.int64)
    for d in range(6):
        b = np.where(np.isnan(X[:, d]), rows.n_bins[d], np.searchsorted(profile.edges[d], X[:, d]))
        np.add.at(expected[:, :K], histograms.offsets[d] + b, V.astype(np.int64))
        np.add.at(expected[:, K], histograms.offsets[d] + b, (weights > 0).astype(np.int64))
    assert_array_equal(histograms.pool[slot, :, : K + 1], expected)
    rows.close()


def test_splits_travel_with_the_next_question(runtime, problem):
    X, y, _ = problem
    rows, profile = place(runtime, X, y)
    rows.begin(MarginWeights(0.5))
    rows.start_round(np.arange(6))
    histograms = Histograms(rows.n_bins, rows.n_classes + 1)
    slots = histograms.take(3)
    rows.histogram([0], histograms, slots[:1])
    rows.split(Splits.of([(0, 2, 10, True, 1, 2)]))
    assert rows.calls["histogram"] == 1
    rows.histogram([1, 2], histograms, slots[1:])
    assert_array_equal(histograms.pool[slots[1]] + histograms.pool[slots[2]], histograms.pool[slots[0]])
    left = (X[:, 2] <= profile.edges[2][10]) | np.isnan(X[:, 2])
    counts = histograms.pool[slots[1:], : histograms.offsets[1], rows.n_classes].sum(axis=1)
    assert_array_equal(counts, [left.sum(), (~left).sum()])
    rows.close()


def test_reductions_agree_with_each_other(runtime, problem):
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights)
    rows.begin(MarginWeights(0.5))
    grow = TreeGrower(rows, GrowthLimits(max_depth=2), rows.n_classes)
    tree = grow(gains.DIRECTION)
    T = rows.sums(ClassPairs(0.5), tree.leaves)
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(0.5), tree.leaves), 1, 0)
    assert_array_equal(T.sum(axis=2), hits)
    assert_array_equal(T.sum(axis=1), misses)
    K = rows.n_classes
    assert T.sum() * np.exp(rows.histogram_scale.shift) == pytest.approx((K - 1) * weights.sum())
    rows.close()


def test_update_reports_both_sets_and_happens_once(runtime, problem):
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights, evaluation=(X[:200], y[:200]))
    rows.begin(MarginWeights(0.5))
    tree = TreeGrower(rows, GrowthLimits(max_depth=1), rows.n_classes)(gains.CODEWORD)
    values = np.arange(2.0 * rows.n_classes).reshape(2, -1) / 10
    asked = []
    reduce = rows._reduce
    rows._reduce = lambda kind, question: (asked.append(question), reduce(kind, question))[1]  # type: ignore
    training, evaluation = rows.update(tree.binned, tree.leaves, values)

    d, edge = tree.binned.feature[0], tree.binned.bin[0]
    known = np.searchsorted(np.unique(X[~np.isnan(X[:, d]), d]), X[:, d])
    left = np.where(np.isnan(X[:, d]), tree.binned.missing_left[0], known <= edge)
    leaf = np.where(left, ~tree.binned.left[0], ~tree.binned.right[0])
    F = values[leaf]
    own = np.take_along_axis(F, y[:, None], 1)
    e = np.exp(-0.5 * (own - F))
    total = e.sum(axis=1) - 1
    assert training.weight == pytest.approx((weights * total).sum() / weights.sum(), rel=1e-12)
    assert training.error == (weights * (F.argmax(axis=1) != y)).sum() / weights.sum()
    assert evaluation.weight == pytest.approx(total[:200].mean(), rel=1e-12)
    assert evaluation.error == (F.argmax(axis=1) != y)[:200].mean()

    again = reduce("update", asked[0])
    for mine, theirs in zip(again, reduce("update", asked[0]), strict=True):
        assert_array_equal(mine, theirs)
    shifted = replace(asked[0], round=asked[0].round + 1)  # another round: now the scores move again
    assert not np.array_equal(reduce("update", shifted).sums, again.sums)
    rows.close()


@pytest.mark.parametrize(
    ("algorithm", "limits", "calls"),
    [
        (GDMCBoost("direction"), GrowthLimits(max_depth=4), 4 + 2),
        (GDMCBoost("codeword"), GrowthLimits(max_depth=1), 1 + 2),
        (GDMCBoost("direction"), GrowthLimits(max_leaf_nodes=9), 9 + 1),
        (GAMBLE(3), GrowthLimits(max_leaf_nodes=5), 5 + 1),
    ],
    ids=["level-wise", "stumps", "best first", "gamble"],
)
def test_round_trips_and_passes(runtime, problem, algorithm, limits, calls):
    """Level-wise trees cost depth + 2 questions a round, best-first trees leaves + 1.

    Statistics, leaf sums and update visit every row once; histograms visit all rows once and then half of them, at the most,
    for each further level.
    """
    X, y, _ = problem
    rows, profile = place(runtime, X, y)
    n_rounds = 3
    train(
        algorithm, rows, limits, Ensemble(6, rows.n_classes), profile.edges,
        n_rounds=n_rounds, learning_rate=1.0, patience=None, callbacks=[],
    )  # fmt: skip
    assert rows.calls.total() <= calls * n_rounds
    passes = rows.passes()
    for kind in ("statistics", "sums", "update"):
        assert passes[kind] == n_rounds * len(X)
    levels = limits.max_depth or limits.max_leaf_nodes
    assert passes["histogram"] <= n_rounds * len(X) * (1 + (levels - 1) / 2)
    rows.close()


def test_line_search_over_rows_is_bounded(runtime, problem, monkeypatch):
    """Where a table of class pairs would be too large: 2 sums questions for the leaves, at most 2 + 12 for the step."""
    from distboost.algorithms import linesearch, mcboost

    X, y, _ = problem
    by_table, by_rows = [], []
    for kept, largest in ((by_table, 2**22), (by_rows, 0)):
        monkeypatch.setattr(mcboost, "LARGEST_TABLE", largest)
        rows, profile = place(runtime, X, y)
        history = train(
            GDMCBoost(), rows, GrowthLimits(max_depth=3), Ensemble(6, rows.n_classes), profile.edges,
            n_rounds=2, learning_rate=1.0, patience=None, callbacks=[],
        )  # fmt: skip
        kept += history.train_loss
        assert rows.calls["sums"] <= 2 * (1 + 2 + linesearch.NEWTON)
        rows.close()
    np.testing.assert_allclose(by_rows, by_table, rtol=1e-9)
