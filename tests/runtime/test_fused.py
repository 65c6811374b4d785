"""The update's own pass begins the next round's tree: what that saves, when it is of no use, and that it changes nothing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost import registry
from distboost.kernels import gains
from distboost.model.create import new_ensemble
from distboost.rows.messages import NO_SPLITS
from distboost.rows.sums import bits_to_lose
from distboost.runtime.local import LocalRuntime
from distboost.runtime.whole_trees import WholeTrees
from distboost.training import loop as training
from distboost.training.loop import Schedule, Start, train
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.codes import CodeWeights, ColumnSides, one_against_all
from distboost.weights.margin import HitsAndMisses, MarginWeights, Residuals
from tests.runtime.test_rows import place
from tests.weak.histogram_slots import tree_of

K = 5
WEIGHTING = MarginWeights(0.5)


def asked_in_each_round(runtime, X, y, name, limits, n_rounds, **parameters):
    """Per round: the questions by kind, and the streamed rows that were read."""
    algorithm = registry.algorithm(name)(n_classes=int(y.max()) + 1, **parameters)
    n_scores = algorithm.weighting.n_scores(algorithm.n_classes)
    rows, profile = place(runtime, X, y, n_scores=n_scores, values=algorithm.needs_values)
    seen = [({}, rows.passes().get("streamed", 0))]

    def look(progress):
        seen.append((dict(rows.calls), rows.passes().get("streamed", 0)))

    train(
        algorithm, rows, profile.edges, start=Start(new_ensemble(algorithm, X.shape[1])),
        schedule=Schedule(limits, n_rounds, callbacks=[look]),
    )  # fmt: skip
    rows.close()
    return [
        (
            {kind: n - before.get(kind, 0) for kind, n in after.items() if n > before.get(kind, 0)},
            read - earlier,
        )
        for (before, earlier), (after, read) in itertools.pairwise(seen)
    ]


ONE, TWO = {"update": 1}, {"sums": 1, "update": 1}
STUMP, DEPTH_3 = GrowthLimits(max_depth=1), GrowthLimits(max_depth=3)


@pytest.mark.parametrize("runtime", ["2 threads streaming", "3 workers streaming"], indirect=True)
@pytest.mark.parametrize(
    ("name", "limits", "parameters", "questions"),
    [
        ("adaboost-mm", STUMP, {"max_depth": 1}, ONE),
        ("gamble", GrowthLimits(max_leaf_nodes=2), {"max_leaf_nodes": 2}, ONE),
        ("rebel", STUMP, {}, ONE),
        ("adaboost-mh", STUMP, {}, ONE),
        ("adaboost-m1", DEPTH_3, {"max_depth": 3}, {"histogram": 2, **ONE}),
        ("gd-mcboost", STUMP, {"max_depth": 1}, TWO),
        ("cd-mcboost", STUMP, {}, TWO),
        ("gd-mcboost", DEPTH_3, {"max_depth": 3}, {"histogram": 2, **TWO}),
        ("one-vs-all", STUMP, {}, {"histogram": K - 1, **ONE}),
    ],
)
def test_a_round_reads_each_streamed_row_once_per_question(
    runtime,
    n_streamed,
    problem,
    name,
    limits,
    parameters,
    questions,
):
    """Of a stump of AdaBoost.MM, GAMBLE, REBEL or AdaBoost.MH that is once; of a tree of depth d at most d or d + 1 times."""
    X, y, _ = problem
    first, *others = asked_in_each_round(runtime, X, y, name, limits, 4, **parameters)
    root = {**questions, "histogram": questions.get("histogram", 0) + 1}
    assert first == (root, sum(root.values()) * n_streamed)
    assert others == [(questions, sum(questions.values()) * n_streamed)] * 3


@pytest.fixture
def by_questions(monkeypatch):
    """One thread, too, grows trees by questions about nodes, so that the update sums the histogram of the next root."""
    monkeypatch.setattr(WholeTrees, "suits", lambda *given: False)


def begun(runtime, X, y, weights):
    """Rows whose first round has been found but not yet taken: (rows, the next round's root, its step)."""
    rows, _ = place(runtime, X, y, weights, evaluation=(X[:200], y[:200]))
    rows.begin(WEIGHTING)
    statistic = Residuals(WEIGHTING, wide=True)
    grow = TreeGrower(rows, GrowthLimits(max_depth=2, subsample=0.7, max_features=4))
    tree = grow(statistic, gains.CODEWORD)
    values = np.random.default_rng(0).normal(size=(tree.n_leaves, rows.n_classes))
    return rows, grow, tree.step(values), statistic


@pytest.mark.usefixtures("by_questions")
def test_an_update_asked_again_answers_the_same_and_moves_nothing(runtime, problem):
    rows, grow, step, statistic = begun(runtime, *problem)
    asked, update = [], rows._update
    rows._update = lambda question: asked.append((question, update(question))) or asked[-1][1]
    rows.update([step], next_root=grow.next_root(statistic))
    [(question, (partial, totals, _))] = asked
    tree = tree_of(rows)
    histogram = tree.histograms.pool[tree.slots[0]].copy()
    for _ in range(2):
        again, again_totals, _ = update(question)
        assert_array_equal(again.sums, partial.sums)
        assert_array_equal(again.maxima, partial.maxima)
        assert_array_equal(again_totals, totals)
        assert_array_equal(tree.histograms.pool[tree.slots[0]], histogram)

    # The tree goes on from there, as it does from a root that is asked for.
    tree = grow(statistic, gains.CODEWORD)
    sums = rows.sums(HitsAndMisses(WEIGHTING), tree.leaves)
    assert rows.calls["histogram"] == 2 + 1  # two levels of the first tree, one of this
    other, grow, step, _ = begun(runtime, *problem)
    other.update([step])
    same = grow(statistic, gains.CODEWORD)
    assert other.calls["histogram"] == 2 + 2
    for ours, theirs in zip((*tree.binned, *tree[1:]), (*same.binned, *same[1:]), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(sums, other.sums(HitsAndMisses(WEIGHTING), same.leaves))
    # Another round is another update.
    moved, _, _ = update(replace(question, round=question.round + 1, splits=NO_SPLITS))
    assert not np.array_equal(moved.sums, partial.sums)
    rows.close()
    other.close()


def mirrored():
    """3 classes: the first lies evenly on both sides of every split, the others mirror each other."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.integers(0, 2, (120, 3)).astype(float), axis=0)
    X = np.concatenate([x, 1 - x, x, x, 1 - x, 1 - x])
    return X, np.repeat([0, 1, 2], 240)


def separable():
    """One class of 3 is told from the others by one split, the other two are mixed."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 600)
    X = rng.integers(0, 20, (600, 3)).astype(float)
    X[:, 0] = np.where(y == 0, 0, 10) + rng.integers(0, 5, 600)
    X[:, 1] += 3 * y
    return X, y


@pytest.mark.parametrize(
    ("name", "parameters", "limits", "make", "unused"),
    [
        ("cd-mcboost", {}, STUMP, mirrored, True),  # a coordinate has nothing to gain
        ("one-vs-all", {}, STUMP, separable, True),  # a bound too far above the weights
        ("one-vs-all", {"max_depth": 3}, GrowthLimits(max_depth=3, subsample=0.5), separable, True),
        ("stagewise", {"max_depth": 3}, DEPTH_3, separable, False),  # histograms of two sizes in turn
        ("gd-mcboost", {}, GrowthLimits(max_leaf_nodes=6, subsample=0.5, max_features=2), separable, False),
        ("gamble", {}, GrowthLimits(max_leaf_nodes=6), separable, False),
    ],
)
def test_no_slot_of_a_histogram_is_lost(monkeypatch, name, parameters, limits, make, unused):
    """After each round all are free but that of the root that was begun, used or not."""
    growers, taken = [], []

    class Seen(TreeGrower):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            growers.append(self)

    def look(progress):
        [grow] = growers
        tree = tree_of(grow.rows)
        free = sorted(tree.histograms._free)
        assert len(set(free)) == len(free)
        taken.append(set(range(len(tree.histograms.pool))) - set(free))
        last = progress.round == progress.n_rounds
        assert taken[-1] == set(tree.slots.values())
        forgotten = set(grow.rows._forgotten)  # until the next question
        assert set(tree.slots) - forgotten == (set() if last else {0})

    monkeypatch.setattr(training, "TreeGrower", Seen)
    X, y = make()
    runtime = LocalRuntime(2)
    rows, profile = place(runtime, X, y)
    algorithm = registry.algorithm(name)(n_classes=3, **parameters)
    train(
        algorithm, rows, profile.edges, start=Start(new_ensemble(algorithm, X.shape[1])),
        schedule=Schedule(limits, n_rounds=8, callbacks=[look]),
    )  # fmt: skip
    assert len(taken) == 8
    if limits.max_depth == 1:
        trees = algorithm.learners_per_round
        assert (rows.calls["histogram"] > 8 * trees - 7) == unused
    runtime.close()


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("bits", [0, 1, 7, 9, 30, 60])
def test_statistics_keep_their_digits_however_large_a_step(bits, wide):
    """Right about every row, it lowers all weights by 2^(bits / 2), while its bound lets them rise by as much."""
    X = np.arange(400.0)[:, None] % 7
    y = (X[:, 0] > 3).astype(int)
    runtime = LocalRuntime(1)
    rows, _ = place(runtime, X, y)
    rows.begin(WEIGHTING)
    statistic = Residuals(WEIGHTING, wide=wide)
    grow = TreeGrower(rows, STUMP)
    first = grow(statistic, gains.DIRECTION)
    rows.update([first.step(bits * np.log(2) * np.eye(2))], next_root=grow.next_root(statistic))
    again = grow(statistic, gains.DIRECTION)
    assert again.binned.bin.tolist() == first.binned.bin.tolist() == [3]
    scale = rows.histogram_scale
    lost = (scale.shift - statistic.shift(rows.shifts.tolist())) / np.log(2)
    allowed = bits_to_lose(scale.bits, wide)
    assert lost == pytest.approx(bits if bits <= allowed else 0.0)
    assert rows.calls["histogram"] == (1 if bits <= allowed else 2)
    assert again.weight == first.weight
    assert again.gain[0] == pytest.approx(first.gain[0] * 2.0 ** (-bits / 2), rel=2.0 ** (lost - 20))
    rows.close()
    runtime.close()


def test_a_separated_column_is_boosted_on():
    """Its weights fall by 2^20 in a round, and the bound rises by as much: of heavy rows, nothing would be left of them."""
    X, y = separable()
    code = CodeWeights(one_against_all(3))
    runtime = LocalRuntime(1)
    rows, _ = place(runtime, X, y, np.full(len(y), 256.0))
    rows.begin(code)
    grow = TreeGrower(rows, STUMP)
    statistic = ColumnSides(code, 0)
    for _ in range(3):
        tree = grow(statistic, gains.VOTES_STUMP)
        assert tree.n_leaves == 2
        assert tree.sums.max() > 2**40
        α = np.log(2.0**40) / 2
        rows.update([tree.step(np.outer([α, -α], [1.0, 0.0, 0.0]))], next_root=grow.next_root(statistic))
    runtime.close()


@pytest.mark.usefixtures("by_questions")
def test_histograms_that_come_with_an_update_are_those_of_its_scores(runtime, problem):
    """Of the rows and features of the next round, and in units of the bound."""
    rows, grow, step, statistic = begun(runtime, *problem)
    root = grow.next_root(statistic)
    rows.update([step], next_root=root)
    histograms = tree_of(rows).histograms
    histogram, totals, scale = (
        histograms.pool[tree_of(rows).slots[0]].copy(),
        rows.totals,
        rows.histogram_scale,
    )
    rows._next_root = None  # as if it had not come
    rows.init_root(root)
    for d in root.features:
        bins = slice(histograms.offsets[d], histograms.offsets[d + 1])
        assert_array_equal(histograms.pool[tree_of(rows).slots[0], bins], histogram[bins])
    assert_array_equal(rows.totals, totals)
    assert rows.histogram_scale == scale
    assert rows.calls["histogram"] == 2 + 1
    rows.close()
