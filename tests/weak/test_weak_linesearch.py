"""The exact step along a tree's leaf values, against SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from distboost.algorithms.solvers.linesearch import exact_step, exact_step_over_rows, step_by_slopes
from distboost.data.blocks import BinnedRows, BinnedSet
from distboost.kernels import gains
from distboost.runtime.base import Layout
from distboost.runtime.local import LocalRuntime
from distboost.trees.grower import GrowthLimits, TreeGrower
from distboost.weights.margin import LOGISTIC, ClassPairs, MarginWeights, Residuals
from distboost.weights.softmax import PairSlopes, SoftmaxSlopes, SoftmaxWeights

pytestmark = pytest.mark.pairwise

LIMIT = np.log(2.0**40)
WEIGHTING = MarginWeights(0.5)


def exponents(V):
    """V[l, y] - V[l, k] for every leaf l and pair of classes."""
    return V[:, :, None] - V[:, None, :]


def risk(T, V, s, α):
    return (T * np.exp(-s * α * exponents(V))).sum()


def slopes(T, V, s, α):
    return -s * exponents(V) * T * np.exp(-s * α * exponents(V))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("n_leaves", "n_classes", "s"), [(1, 2, 0.5), (4, 3, 1.0), (64, 26, 0.5)])
def test_exact_step_is_the_minimiser(seed, n_leaves, n_classes, s):
    rng = np.random.default_rng([seed, n_leaves])
    V = rng.normal(size=(n_leaves, n_classes))
    V -= V.mean(axis=1, keepdims=True)
    # A class of larger value is the more frequent one, so that the risk falls at first; there are rows of every class.
    T = 10.0 ** rng.uniform(-4, 0, (n_leaves, 1, 1)) * np.exp(0.8 * exponents(V))
    T = T * rng.uniform(0.9, 1.1, (n_leaves, n_classes, n_classes)) * (1 + (exponents(V) > 0))
    T[:, range(n_classes), range(n_classes)] = 0
    step = exact_step(T, V, s, LIMIT)
    assert not step.unbounded
    assert step.step > 0
    terms = slopes(T, V, s, step.step)
    assert abs(terms.sum()) <= 1e-12 * np.abs(terms).sum()
    bound = LIMIT / (s * (V.max(axis=1) - V.min(axis=1)).max())
    oracle = minimize_scalar(
        lambda α: risk(T, V, s, α), bounds=(0, bound), method="bounded", options={"xatol": 1e-12}
    )
    assert risk(T, V, s, step.step) <= oracle.fun * (1 + 1e-15)
    assert step.step == pytest.approx(oracle.x, rel=1e-6)


def test_two_classes_have_a_closed_form():
    """1/2 ln(A / B) of AdaBoost."""
    T = np.array([[[0.0, 9.0], [4.0, 0.0]]])
    assert exact_step(T, np.array([[0.5, -0.5]]), 1.0, LIMIT).step == pytest.approx(
        0.5 * np.log(9 / 4), rel=1e-15
    )


def test_without_errors_the_step_is_cut_off_at_the_limit():
    V = np.array([[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5]])
    T = np.zeros((2, 3, 3))
    T[0, 0, 1:], T[1, 1, [0, 2]] = 3.0, 2.0
    step = exact_step(T, V, 0.5, LIMIT)
    assert step.unbounded
    assert 0.5 * step.step * 1.5 == pytest.approx(LIMIT)


@pytest.mark.parametrize(
    ("T", "V"),
    [
        ([[[0, 1.0], [4.0, 0]]], [[1.0, -1.0]]),  # the risk rises at once
        ([[[0, 2.0], [2.0, 0]]], [[1.0, -1.0]]),  # it is level
        ([[[0, 2.0], [1.0, 0]]], [[0.0, 0.0]]),  # the leaf adds nothing
        ([[[0, 0.0], [0.0, 0]]], [[1.0, -1.0]]),  # no rows
    ],
)
def test_no_step_where_the_risk_does_not_fall(T, V):
    step = exact_step(np.array(T), np.array(V), 0.5, LIMIT)
    assert step == (0.0, False)


def trained_rows(n, weights, rounds):
    """Rows of real boosting rounds and the leaves of a new tree: (rows, tree, leaf values)."""
    rng = np.random.default_rng(n)
    n_bins, n_classes = np.array([16, 16, 16]), 5
    X = rng.integers(0, 16, (n, 3))
    labels = (X.sum(axis=1) + rng.integers(0, 14, n)) // 12 % n_classes
    parts = (0, X.astype(np.uint8), labels.astype(np.int32), weights(rng, n))
    runtime = LocalRuntime(1)
    rows = runtime.place(
        [BinnedSet(BinnedRows, [parts], [len(parts[2])])], Layout(n_bins, n_classes, n_classes, "float64")
    )
    rows.begin(WEIGHTING)
    grow = TreeGrower(rows, GrowthLimits(max_depth=3))
    for _ in range(rounds):
        tree = grow(Residuals(WEIGHTING), gains.DIRECTION)
        T = rows.sums(ClassPairs(WEIGHTING), tree.leaves)
        S = T.sum(axis=2) - T.sum(axis=1)
        V = S / np.sqrt((S * S).sum(axis=1, keepdims=True))
        rows.update([tree.step(exact_step(T, V, 0.5, LIMIT).step * V)])
    tree = grow(Residuals(WEIGHTING), gains.DIRECTION)
    return rows, tree.leaves


@pytest.mark.parametrize(
    "weights",
    [lambda rng, n: np.ones(n), lambda rng, n: rng.choice([0.0, 0.7, 3.0], n)],
    ids=["ones", "fractions"],
)
@pytest.mark.parametrize("rounds", [0, 1, 6])
def test_the_step_over_rows_is_the_step_from_the_table(weights, rounds):
    rows, leaves = trained_rows(1200, weights, rounds)
    T = rows.sums(ClassPairs(WEIGHTING), leaves)
    S = T.sum(axis=2) - T.sum(axis=1)
    norm = np.sqrt((S * S).sum(axis=1, keepdims=True))
    V = np.divide(S, norm, out=np.zeros_like(S), where=norm > 0)
    expected = exact_step(T, V, 0.5, LIMIT)
    assert expected.step > 0
    found = exact_step_over_rows(rows, leaves, V, WEIGHTING, LIMIT)
    assert found.unbounded == expected.unbounded
    assert found.step == pytest.approx(expected.step, rel=1e-9)


def test_the_step_over_rows_without_errors_is_cut_off():
    labels = np.arange(60, dtype=np.int32) % 3
    runtime = LocalRuntime(1)
    parts = (0, labels[:, None].astype(np.uint8), labels, np.ones(60))
    rows = runtime.place(
        [BinnedSet(BinnedRows, [parts], [len(parts[2])])], Layout(np.array([3]), 3, 3, "float64")
    )
    rows.begin(WEIGHTING)
    leaves = TreeGrower(rows, GrowthLimits(max_depth=2))(Residuals(WEIGHTING), gains.DIRECTION).leaves
    T = rows.sums(ClassPairs(WEIGHTING), leaves)
    V = T.sum(axis=2) - T.sum(axis=1)
    expected = exact_step(T, V, 0.5, LIMIT)
    assert expected.unbounded
    assert exact_step_over_rows(rows, leaves, V, WEIGHTING, LIMIT) == expected
    assert exact_step_over_rows(rows, leaves, -V, WEIGHTING, LIMIT) == (0.0, False)
    assert exact_step_over_rows(rows, leaves, 0 * V, WEIGHTING, LIMIT) == (0.0, False)


def test_a_step_that_keeps_two_classes_is_cut_off_without_an_end():
    """A stump parts the first class from the others without an error, and gives these two the same value."""
    labels = np.arange(60, dtype=np.int32) % 3
    runtime = LocalRuntime(1)
    parts = (0, (labels[:, None] > 0).astype(np.uint8), labels, np.ones(60))
    rows = runtime.place(
        [BinnedSet(BinnedRows, [parts], [len(parts[2])])], Layout(np.array([2]), 3, 3, "float64")
    )
    rows.begin(WEIGHTING)
    leaves = TreeGrower(rows, GrowthLimits(max_depth=1))(Residuals(WEIGHTING), gains.DIRECTION).leaves
    T = rows.sums(ClassPairs(WEIGHTING), leaves)
    V = T.sum(axis=2) - T.sum(axis=1)
    expected = exact_step(T, V, 0.5, LIMIT)
    assert expected.step == LIMIT / (0.5 * (V.max(axis=1) - V.min(axis=1)).max())
    assert not expected.unbounded
    assert exact_step_over_rows(rows, leaves, V, WEIGHTING, LIMIT) == expected


# Logistic risks.

# The weighting, and the loss of F[i] - F[i, y_i].
LOSSES = {
    SoftmaxSlopes: (SoftmaxWeights(), lambda margins: logsumexp(margins, axis=1)),
    PairSlopes: (MarginWeights(1.0, LOGISTIC), lambda margins: np.logaddexp(0, margins).sum(axis=1)),
}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_classes", [2, 3, 12])
@pytest.mark.parametrize("spread", [0.1, 3.0, 60.0])
@pytest.mark.parametrize("slopes", LOSSES)
def test_the_step_by_slopes_is_the_minimiser(seed, n_classes, spread, slopes):
    """All rows are in one leaf, so that they are moved alike."""
    rng = np.random.default_rng([seed, n_classes])
    n = 300
    labels = rng.choice(n_classes, n, p=rng.dirichlet(np.ones(n_classes))).astype(np.int32)
    weights = rng.choice([0.0, 0.7, 3.0], n)
    F = spread * rng.normal(size=(n, n_classes))
    weighting, loss = LOSSES[slopes]
    rows, leaves = in_one_leaf(F, labels, weights, weighting)
    P = np.exp(F - logsumexp(F, axis=1, keepdims=True))
    V = (weights[:, None] * (np.eye(n_classes)[labels] - P)).sum(axis=0)[None] / weights.sum()
    step = step_by_slopes(rows, leaves, V, slopes, LIMIT)

    def risk(α):
        moved = F + α * V
        return (weights * loss(moved - moved[np.arange(n), labels][:, None])).sum()

    bound = LIMIT / np.ptp(V)
    if spread > 10 and step.step == bound:
        assert risk(bound) < risk(0.999 * bound)
        return
    oracle = minimize_scalar(risk, bounds=(0, bound), method="bounded", options={"xatol": 1e-12})
    assert 0 < step.step <= bound
    assert not step.unbounded
    assert risk(step.step) <= oracle.fun * (1 + 1e-14)
    assert step.step == pytest.approx(oracle.x, rel=1e-5)
    assert rows.calls["sums"] <= 4
    assert step_by_slopes(rows, leaves, -V, slopes, LIMIT) == (0.0, False)
    assert step_by_slopes(rows, leaves, 0 * V, slopes, LIMIT) == (0.0, False)


def in_one_leaf(F, labels, weights, weighting):
    n, K = F.shape
    parts = (0, np.zeros((n, 1), np.uint8), labels, weights)
    rows = LocalRuntime(1).place(
        [BinnedSet(BinnedRows, [parts], [n])], Layout(np.array([1]), K, K, "float64")
    )
    rows.begin(weighting)
    rows.continue_from(F, 1)
    tree = TreeGrower(rows, GrowthLimits())(Residuals(weighting), gains.DIRECTION)
    return rows, tree.leaves


@pytest.mark.parametrize("slopes", LOSSES)
def test_a_step_by_slopes_without_errors_is_cut_off(slopes):
    labels = np.zeros(20, np.int32)
    rows, leaves = in_one_leaf(np.zeros((20, 3)), labels, np.ones(20), LOSSES[slopes][0])
    V = np.array([[2.0, -1.0, -1.0]])
    step = step_by_slopes(rows, leaves, V, slopes, LIMIT)
    assert step == (LIMIT / 3.0, True)
    # Where another class moves along, no step parts it from the rows' own.
    step = step_by_slopes(rows, leaves, np.array([[1.0, 1.0, -2.0]]), slopes, LIMIT)
    assert step == (LIMIT / 3.0, False)
