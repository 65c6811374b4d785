"""The contract of `Rows`, the same for every runtime: sums, splits, updates, and what they cost."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost import registry
from distboost.algorithms import mcboost, tables
from distboost.algorithms.solvers import linesearch
from distboost.data.dataset import RawDataset
from distboost.data.row_weights import WeightRule
from distboost.kernels import gains
from distboost.model.create import new_ensemble
from distboost.model.trees import TreeEnsemble
from distboost.rows.messages import Root, Siblings, SplitRules, Splits
from distboost.rows.reduced import Best, Reduced
from distboost.runtime.layout import Layout
from distboost.runtime.local import LocalRuntime
from distboost.splits.histograms import offsets_of
from distboost.threads import Threads
from distboost.training.loop import Schedule, Start, train
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights import response
from distboost.weights.codes import (
    CodeSides,
    CodeWeights,
    ColumnSides,
    ColumnSums,
    one_against_all,
)
from distboost.weights.margin import LOGISTIC, ClassPairs, HitsAndMisses, MarginWeights, Residuals
from distboost.weights.response import ClassWeights, add_windows
from tests.runtime.conftest import ALONE, RUNTIMES
from tests.weak.histogram_slots import histogram_of

WEIGHTING = MarginWeights(0.5)


def place(runtime, X, y, weights=None, evaluation=None, n_scores=None, values=False):
    data = RawDataset.of(X, y, weights)
    profile = data.profile(255, 0, runtime)
    sets = [
        data.binned(profile, WeightRule.of(np.ones(len(profile.classes)), profile.class_scans), 7, values)
    ]
    if evaluation is not None:
        sets.append(
            RawDataset.of(*evaluation, None).binned(
                profile, WeightRule.alone(len(profile.classes), None), 5, values
            )
        )
    n_classes = len(profile.classes)
    return runtime.place(sets, Layout(profile.n_bins, n_classes, n_scores or n_classes, "float64")), profile


def updates_of(rows):
    """The list that each update will be added to, with its answer."""
    asked, update = [], rows._update

    def kept(question, expansion):
        answer = update(question, expansion)
        asked.append((question, answer[0]))
        return answer

    rows._update = kept
    return asked


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


def test_totals_are_of_the_rows_in_use(runtime, problem):
    """Of those drawn, in units of the histograms; they stay until the next tree."""
    X, y, weights = problem
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, GrowthLimits(max_depth=3, subsample=0.4, seed=1))
    tree = grow(Residuals(WEIGHTING, own=0.3, wide=True), gains.CODEWORD)
    hits = rows.sums(HitsAndMisses(WEIGHTING), tree.leaves)[:, 0]
    assert rows.histogram_scale.real(rows.totals) == pytest.approx(hits.sum(), rel=1e-15)
    assert 0 < tree.weight < weights.sum()
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
    again = rows._update(question, None)[0]
    for mine, theirs in zip(again, answer, strict=True):
        assert_array_equal(mine, theirs)
    shifted = replace(question, round=question.round + 1)  # another round: now the scores move again
    assert not np.array_equal(rows._update(shifted, None)[0].sums, answer.sums)
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
        for mine, theirs in zip(rows._update(question, None)[0], answer, strict=True):
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
        whole = first.copied()
        for other in others:
            whole = whole.combined(other)
        assert whole.sums.tolist() == [111, 222]
        assert whole.maxima.tolist() == [2.0]
        assert whole.best == (3.0, 4, ("four",))  # of equal keys the first row
        assert parts[0].sums.tolist() == [1, 2]
    assert parts[1].combined(parts[1]).best is None


# What a round costs.

K = 5
LIGHT = 1  # the third tree of one-vs-all that tells the last class from the others: it has 3 rows
STUMPS, DEPTH_2, DEPTH_3 = (GrowthLimits(max_depth=depth) for depth in (1, 2, 3))


@dataclass(frozen=True)
class Family:
    """An algorithm and what each of its rounds asks."""

    algorithm: str
    parameters: dict = field(default_factory=dict)
    limits: GrowthLimits = STUMPS
    trees: int = 1  # in each round
    histograms: int = (
        1  # in each round, at the most: questions, but for the first, which comes with the update before
    )
    exactly: bool = True  # so many histograms, no fewer
    leaf_sums: int = 1  # questions for each tree: none, where its step follows from the histograms
    more_sums: str = ""  # the note that counts sums beside those
    begun: bool = True  # the update of a round begins the next
    light: int = 0  # trees of three rounds with leaves too light for the histograms' grid


FAMILIES = {
    "stumps along a coordinate": Family("cd-mcboost"),
    "trees along a coordinate": Family("cd-mcboost", {"max_depth": 3}, DEPTH_3, 1, 3, False),
    "level-wise": Family("gd-mcboost", {"max_depth": 4}, GrowthLimits(max_depth=4), 1, 4, False),
    "stumps": Family("gd-mcboost", {"leaf": "codeword", "max_depth": 1}),
    "best first": Family("gd-mcboost", {"max_leaf_nodes": 9}, GrowthLimits(max_leaf_nodes=9), 1, 8, False),
    "adaptive": Family("adaboost-mm", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "fixed edges": Family("adaboost-mm", {"strategy": "fixed", "max_depth": 1}, leaf_sums=0),
    "votes": Family("adaboost-mm", {"strategy": "os-exponential", "max_depth": 1}, leaf_sums=0),
    "potentials": Family(
        "adaboost-mm", {"strategy": "os-zero-one", "max_depth": 1, "n_estimators": 3}, leaf_sums=0
    ),
    "stage-wise": Family("stagewise"),
    "stage-wise, logistic": Family("stagewise", {"loss": "logistic"}, more_sums="coefficient_passes"),
    "stage-wise trees": Family("stagewise", {"max_depth": 3}, DEPTH_3, 2, 1 + 3, False),
    "stage-wise trees, logistic": Family(
        "stagewise", {"loss": "logistic", "max_depth": 3}, DEPTH_3, 2, 1 + 3, False, 1, "coefficient_passes"
    ),
    "gamble": Family("gamble", {"max_leaf_nodes": 5}, GrowthLimits(max_leaf_nodes=5), 1, 4, False, 0),
    "rebel stumps": Family("rebel", leaf_sums=0),
    "rebel trees": Family("rebel", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "one-vs-all stumps": Family("one-vs-all", {}, STUMPS, K, K, leaf_sums=0),
    "one-vs-all trees": Family("one-vs-all", {"max_depth": 2}, DEPTH_2, K, 2 * K, False, 0, light=LIGHT),
    "class votes": Family("adaboost-m1", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "samme": Family("samme", {"max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "votes for every class": Family("adaboost-mh", leaf_sums=0),
    "real votes": Family("adaboost-mh", {"vote": "real", "max_depth": 3}, DEPTH_3, 1, 3, False, 0),
    "colorings": Family("adaboost-ecc"),
    "every code": Family("adaboost-mo", {}, STUMPS, 2 ** (K - 1) - 1, 2 ** (K - 1) - 1, leaf_sums=0),
    "gentle": Family("gentle-adaboost", {}, STUMPS, K, K, leaf_sums=0),
    "gradient": Family("gradboost"),
    "totally corrective": Family("multiboost", {"nu": 0.01}, begun=False, more_sums="coefficient_passes"),
}


def trained(runtime, problem, family, n_rounds):
    """(rows, history) of a training."""
    X, y, _ = problem
    algorithm = registry.algorithm(family.algorithm)(n_classes=K, **family.parameters)
    n_scores = algorithm.weighting.n_scores(K)
    rows, profile = place(runtime, X, y, n_scores=n_scores, values=algorithm.needs_values)
    assert rows.n_classes == K
    history = train(
        algorithm, rows, profile.edges, Start(new_ensemble(algorithm, 6)), Schedule(family.limits, n_rounds)
    )
    assert len(history.train_loss) == n_rounds
    return rows, history


# One with every runtime; those whose rounds differ in kind also on a cluster and with rows on disk.
EVERYWHERE = {"level-wise"}
ELSEWHERE = {
    "best first",
    "stage-wise trees, logistic",
    "one-vs-all trees",
    "gamble",
    "totally corrective",
    "potentials",
}


def is_extra(name, runtime):
    """The engine does the same for all: in the soak."""
    if runtime == ALONE:
        return True
    if name in EVERYWHERE or runtime == "2 threads":
        return False
    return name not in ELSEWHERE or runtime not in ("3 workers", "2 threads streaming")


PLACES = [
    pytest.param(runtime, family, id=f"{runtime}-{name}", marks=[pytest.mark.soak] * is_extra(name, runtime))
    for name, family in FAMILIES.items()
    for runtime in RUNTIMES
]


@pytest.mark.parametrize(("runtime", "family"), PLACES, indirect=["runtime"])
def test_round_trips_and_passes(runtime, n_streamed, problem, family):
    """A round takes a question for each level of its tree but the first (for each leaf but two, best first), one for the sums
    of its leaves where they do not follow from the histograms, and the update, which begins the next round's tree; of several
    trees, the first two for each, and those that its coefficients take. The first round asks for its root, too. (Leaves too
    light for the histograms' grid are summed up anew: see below.)

    Statistics, leaf sums and update visit every row once; histograms visit all rows once and then half of them, at the most,
    for each further level. Rows on disk are read once for each question.
    """
    n_rounds, n = 3, len(problem[1])
    rows, history = trained(runtime, problem, family, n_rounds)
    histograms = n_rounds * family.histograms - (n_rounds - 1) * family.begun
    assert rows.calls["histogram"] <= histograms
    assert rows.calls["histogram"] == histograms or not family.exactly
    sums = n_rounds * family.trees * family.leaf_sums + family.light
    if family.more_sums:
        counted = history.notes[family.more_sums]
        assert min(counted) >= 1
        sums += sum(counted)
    assert rows.calls == Counter(histogram=rows.calls["histogram"], sums=sums, update=n_rounds)
    if "passes" in history.notes:  # all but that of the first root
        assert sum(history.notes["passes"]) == rows.calls.total() - 1
    passes = rows.passes()
    assert passes["statistics"] == n_rounds * family.trees * n
    assert passes.get("sums", 0) == sums * n
    assert passes["update"] == n_rounds * n
    assert passes["histogram"] <= n_rounds * n * (family.trees + (family.histograms - family.trees) / 2)
    assert passes.get("streamed", 0) == n_streamed * (1 + rows.calls.total())  # once more to count the rows
    rows.close()


LIGHT_LEAVES = {
    "gamble": (1, 0),
    "adaboost-m1": (1, 0),
    "samme": (1, 0),
    "one-vs-all": (K, LIGHT),
    "adaboost-mo": (2 ** (K - 1) - 1, 0),
    "gentle-adaboost": (K, 0),
}


# One tree a round with every runtime, several also on a cluster.
@pytest.mark.parametrize(
    ("runtime", "name", "trees", "light"),
    [
        pytest.param(
            runtime,
            name,
            *counts,
            id=f"{runtime}-{name}",
            marks=[pytest.mark.soak]
            * (
                runtime == ALONE
                or (
                    name != "gamble"
                    and runtime != "2 threads"
                    and (name, runtime) != ("one-vs-all", "3 workers")
                )
            ),
        )
        for name, counts in LIGHT_LEAVES.items()
        for runtime in RUNTIMES
    ],
    indirect=["runtime"],
)
def test_light_leaves_take_one_more_question(runtime, problem, monkeypatch, name, trees, light):
    """Where the rows of a leaf are too light for the histograms' grid. Both ways give the same but for rounding."""
    losses = []
    for bits, sums in ((response.FINE_BITS, light), (62, 3 * trees)):
        monkeypatch.setattr(response, "FINE_BITS", bits)
        rows, history = trained(runtime, problem, Family(name, {"max_depth": 2}, DEPTH_2), 3)
        losses.append(history.train_loss)
        assert rows.calls["sums"] == sums
        rows.close()
    assert_allclose(*losses, rtol=1e-9)


@pytest.mark.parametrize("runtime", ["2 threads"], indirect=True)
def test_leaves_of_any_weight_have_their_digits(runtime):
    """One leaf's rows weigh ever less: its values, wherever its sums come from, are those of real numbers."""
    rng = np.random.default_rng(2)
    y, right = rng.integers(0, K, 900), rng.integers(0, 2, 900)
    right[y == 4] &= rng.integers(0, 2, 900)[y == 4]
    counts = np.array([np.bincount(y[right == side], minlength=K) for side in (0, 1)])
    gamble = registry.algorithm("gamble")(n_classes=K)
    anew = []
    for bits in range(0, 46, 3):
        rows, _ = place(runtime, right[:, None].astype(float), y)
        rows.begin(gamble.weighting)
        grow = TreeGrower(rows, STUMPS)
        F = np.outer([0.0, np.log(2)], (bits + 0.1 * np.arange(K)) * (K - 1))
        rows.update([grow(ClassWeights(gamble.weighting), gains.LEAST_SQUARES).step(F)])
        [learner], *_ = gamble.learn(rows, grow)
        C = counts * np.exp(-F / (K - 1))
        g = (K * C / C.sum(axis=1, keepdims=True) - 1) / (K - 1)
        r = K * (K - 1) * g / ((K - 2) * g + 1)
        f = r - r.mean(axis=1, keepdims=True)
        assert_allclose(learner.values, f, rtol=0, atol=1e-9 * K**2)
        anew.append(rows.calls["sums"])
        rows.close()
    assert anew == sorted(anew)
    assert set(anew) == {0, 1}


@pytest.mark.parametrize("similarity", ["one-point", "two-point"])
def test_round_trips_and_passes_of_similarities(runtime, problem, similarity):
    """Four questions, one for each two-point similarity tried, and the update, as noted. No histograms, no statistics."""
    parameters = {"weak_learner": "similarity", "similarity": similarity, "max_candidates": 6}
    rows, history = trained(runtime, problem, Family("rebel", parameters), 3)
    most = 5 if similarity == "one-point" else 5 + 6
    assert max(history.notes["passes"]) <= most
    assert rows.calls == {"sums": sum(history.notes["passes"]) - 3, "update": 3}
    passes = rows.passes()
    passes.pop("streamed", None)
    assert passes == {"sums": rows.calls["sums"] * 700, "update": 3 * 700}
    rows.close()


def test_line_search_over_rows_is_bounded(runtime, problem, monkeypatch):
    """Where a table of class pairs would be too large: 2 sums questions for the leaves, at most 2 + 12 for the step."""
    by_table, by_rows = [], []
    family = Family("gd-mcboost", {"max_depth": 3}, DEPTH_3)
    for kept, largest in ((by_table, 2**22), (by_rows, 0)):
        monkeypatch.setattr(mcboost, "LARGEST_TABLE", largest)
        rows, history = trained(runtime, problem, family, 2)
        kept += history.train_loss
        assert rows.calls["sums"] <= 2 * (1 + 2 + linesearch.NEWTON)
        assert (rows.calls["sums"] > 2) == (largest == 0)
        rows.close()
    np.testing.assert_allclose(by_rows, by_table, rtol=1e-9)


@pytest.mark.parametrize(
    ("runtime", "name"),
    [
        pytest.param(
            runtime,
            name,
            marks=[pytest.mark.soak]
            * (runtime == ALONE or (name != "cd-mcboost" and runtime != "2 threads")),
        )
        for name in ("cd-mcboost", "stagewise", "adaboost-ecc")
        for runtime in RUNTIMES
    ],
    indirect=["runtime"],
)
def test_sides_of_a_large_table_take_one_more_question(runtime, problem, monkeypatch, name):
    """Where a table for each leaf would be too large: the leaves' signs first, then a table for each of the two sides."""
    losses = []
    for largest, sums in ((2**22, 1), (0, 2)):
        monkeypatch.setattr(tables, "LARGEST_TABLE", largest)
        rows, history = trained(runtime, problem, Family(name), 3)
        losses.append(history.train_loss)
        assert rows.calls == {"histogram": 1, "sums": 3 * sums, "update": 3}
        rows.close()
    assert losses[0] == losses[1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_sums_take_an_accumulator_per_thread(n_threads, problem, monkeypatch):
    """However many blocks there are: a table of sums may have megabytes."""
    X, y, weights = problem
    runtime = LocalRuntime(n_threads)
    rows, _ = place(runtime, X, y, weights)
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, STUMPS)
    tree = grow(Residuals(WEIGHTING), gains.CODEWORD)
    made, initial = [], ClassPairs.initial

    def counted(self, n_leaves, n_classes):
        made.append(initial(self, n_leaves, n_classes))
        return made[-1]

    monkeypatch.setattr(ClassPairs, "initial", counted)
    T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
    assert len(rows.shard.blocks) == 7
    assert 1 <= len(made) <= n_threads
    hits, misses = np.moveaxis(rows.sums(HitsAndMisses(WEIGHTING), tree.leaves), 1, 0)
    np.testing.assert_allclose(T.sum(axis=2), hits, rtol=1e-12)
    np.testing.assert_allclose(T.sum(axis=1), misses, rtol=1e-12)
    runtime.close()
