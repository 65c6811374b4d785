"""The coefficients of stage-wise boosting against independent optimisers and the optimality conditions."""

import numpy as np
import pytest
from scipy.optimize import minimize

from distboost.algorithms.solvers.coefficients import exponential_coefficients, logistic_coefficients

pytestmark = pytest.mark.pairwise

LIMIT = np.log(2.0**40)


def table(seed, n_classes, decades=2.0):
    """A random table of sums in which some classes are told apart better than others."""
    rng = np.random.default_rng([seed, n_classes])
    T = 10.0 ** rng.uniform(-decades, 0, (2, n_classes, n_classes)) * np.exp(
        rng.normal(size=(2, n_classes, 1))
    )
    T[:, range(n_classes), range(n_classes)] = 0
    return T


def exponential(T, constant, nu, w):
    """Eq. 13, its gradient, and the sum of the sizes of the gradient's terms."""
    h = np.array([-1, 1])[:, None, None]
    terms = T * np.exp(-h * (w[:, None] - w[None, :]))
    total = constant + terms.sum()
    ascent = (h * terms).sum(axis=0)
    gradient = (ascent.sum(axis=0) - ascent.sum(axis=1)) / total + nu
    size = (terms.sum(axis=(0, 1)) + terms.sum(axis=(0, 2))) / total
    return np.log(total) + nu * w.sum(), gradient, size


def projected(gradient, w):
    """What is left of the gradient where w may move: 0 at the minimum over [0, LIMIT]^K."""
    gradient = np.where(w <= 0, np.minimum(gradient, 0), gradient)
    return np.where(w >= LIMIT - 1e-8, np.maximum(gradient, 0), gradient)


class RowsOfOneLearner:
    """Rows with their E, and the passes over them."""

    def __init__(self, E, y, h):
        self.E, self.y, self.h = E, y, h
        self.own = np.arange(E.shape[1]) == y[:, None]
        self.passes = 0

    def evaluate(self, centre, nodes):
        self.passes += 1
        n_classes = self.E.shape[1]
        U = np.zeros((2, n_classes, n_classes, len(nodes)))
        d = self.h[:, None] * (centre[self.y][:, None] - centre)
        x = self.E[:, :, None] * np.exp(-(d[:, :, None] + nodes))
        np.add.at(U, ((self.h + 1) // 2, self.y), x / (1 + x))
        return U

    def objective(self, w, nu):
        """Eq. 14, its gradient, and the sum of the sizes of the gradient's terms."""
        x = self.E * np.exp(-self.h[:, None] * (w[self.y][:, None] - w))
        u = np.where(self.own, 0, x / (1 + x))
        V = np.where(self.own, u.sum(axis=1, keepdims=True), -u)
        return np.log1p(x).sum() + nu * w.sum(), nu - self.h @ V, np.abs(V).sum(axis=0)


def rows(seed, n_classes, noise=0.5, spread=1.0, n=400):
    """Rows with random margins and a weak learner that tells some classes from others, but for a fraction `noise` of rows."""
    rng = np.random.default_rng([seed, n_classes])
    y = rng.integers(0, n_classes, n)
    h = np.where(np.arange(n_classes) % 2 == 0, 1, -1)[y]
    h = np.where(rng.random(n) < noise, rng.choice([-1, 1], n), h)
    F = rng.normal(0, spread, (n, n_classes))
    return RowsOfOneLearner(np.exp(F - F[np.arange(n), y][:, None]), y, h)


def balanced(A):
    """w that makes rows and columns of A[a, b] exp(w_b - w_a) add up to the same, by coordinate descent (Osborne, 1960).

    The stationarity of eq. 13 for nu = 0.
    """
    w = np.zeros(len(A))
    for _ in range(10000):
        before = w.copy()
        for k in range(len(A)):
            fall, rise = A[k] @ np.exp(w - w[k]), A[:, k] @ np.exp(w[k] - w)
            w[k] += np.log(fall / rise) / 2
        if np.abs(w - before).max() < 1e-14:
            return w - w.min()
    raise AssertionError("coordinate descent does not converge")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_classes", [2, 3, 5, 26])
def test_exponential_without_norm_balances_the_table(seed, n_classes):
    T = table(seed, n_classes)
    found = exponential_coefficients(T, 7.0, 0.0, LIMIT)
    assert not found.unbounded
    assert found.w.min() == 0
    np.testing.assert_allclose(found.w, balanced(T[1] + T[0].T), atol=1e-11)


@pytest.mark.parametrize("nu", [1e-9, 1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("constant", [0.0, 30.0, 1e6])
@pytest.mark.parametrize("n_classes", [2, 3, 5, 26])
def test_exponential_is_the_minimiser(n_classes, constant, nu):
    for seed in range(4):
        T = table(seed, n_classes, decades=[0.5, 2, 6, 12][seed])
        w = exponential_coefficients(T, constant, nu, LIMIT).w
        value, gradient, size = exponential(T, constant, nu, w)
        assert (np.abs(projected(gradient, w)) <= 1e-12 * size).all()
        assert w.min() == 0
        rng = np.random.default_rng(seed)
        for start in [np.zeros(n_classes), rng.uniform(0, 3, n_classes)]:
            oracle = minimize(
                lambda w, T=T: exponential(T, constant, nu, w)[:2],
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, LIMIT)] * n_classes,
            )
            assert value <= oracle.fun + 1e-13 * abs(oracle.fun)


def test_two_classes_have_the_step_of_adaboost():
    """w_1 - w_0 = 1/2 ln((1 - eps) / eps) (eq. 16)."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 100)
    h = np.where(rng.random(100) < 0.8, 2 * y - 1, 1 - 2 * y)
    E = rng.exponential(size=100)
    T = np.zeros((2, 2, 2))
    np.add.at(T, ((h + 1) // 2, y, 1 - y), E)
    eps = E[h != 2 * y - 1].sum() / E.sum()
    for constant in (0.0, 100.0):
        w = exponential_coefficients(T, constant, 0.0, LIMIT).w
        assert w[0] == 0
        assert w[1] == pytest.approx(np.log((1 - eps) / eps) / 2, rel=1e-13)


@pytest.mark.parametrize("factor", [2.0**-300, 2.0**200])
def test_a_common_factor_changes_nothing(factor):
    T = table(0, 5)
    w = exponential_coefficients(T, 3.0, 1e-3, LIMIT).w
    scaled = exponential_coefficients(factor * T, factor * 3.0, 1e-3, LIMIT).w
    np.testing.assert_allclose(scaled, w, rtol=1e-12)


def test_the_norm_makes_coefficients_zero():
    T = table(3, 26)
    zeros = [np.sum(exponential_coefficients(T, 100.0, nu, LIMIT).w == 0) for nu in (0.0, 1e-3, 1e-2, 3e-2)]
    assert zeros[0] == 1
    assert zeros == sorted(zeros)
    assert 3 < zeros[2] < 26
    # No coefficient at all where the largest edge is at most nu: the stopping rule.
    edge = -exponential(T, 100.0, 0.0, np.zeros(26))[1].min()
    assert not exponential_coefficients(T, 100.0, edge * 1.001, LIMIT).w.any()
    assert exponential_coefficients(T, 100.0, edge * 0.999, LIMIT).w.any()


def test_a_weak_learner_without_errors_on_a_class_goes_to_the_limit():
    T = table(0, 3)
    T[0, 1] = 0  # it says +1 for all of class 1 ...
    T[1, [0, 2], 1] = 0  # ... and for no row of another class
    for constant in (0.0, 10.0):
        found = exponential_coefficients(T, constant, 0.0, LIMIT)
        assert found.unbounded
        assert found.w[1] == pytest.approx(LIMIT, rel=1e-12)
        # With class 1 out of the way, classes 0 and 2 have the closed form of two classes.
        α = np.log((T[1, 0, 2] + T[0, 2, 0]) / (T[1, 2, 0] + T[0, 0, 2])) / 2
        assert found.w[0] - found.w[2] == pytest.approx(α, abs=1e-6)
    assert not exponential_coefficients(T, 10.0, 0.01, LIMIT).unbounded


def test_bounds_that_push_each_other_are_found():
    """A table for which the sets of bounded coefficients go in circles when all change at once."""
    A = [[0, 4e-2, 2e-7, 1e-10], [2e-7, 0, 6e-6, 1], [6e-8, 3e-12, 0, 6e-6], [1e-9, 3e-5, 2.5e-8, 0]]
    T = np.array([np.zeros((4, 4)), A])
    found = exponential_coefficients(T, 0.0, 0.03, 0.5)
    np.testing.assert_array_equal(found.w, [0.5, 0.5, 0, 0])
    assert found.unbounded


def test_classes_without_losses_have_no_coefficient():
    T = np.zeros((2, 6, 6))
    T[:, :3, :3] = table(1, 3)
    T[:, 4:, 4:] = table(1, 2)  # another component, with a shift of its own
    for nu in (0.0, 1e-9):
        w = exponential_coefficients(T, 5.0, nu, LIMIT).w
        assert w[3] == 0
        assert w[:3].min() == w[4:].min() == 0
        np.testing.assert_allclose(w[:3], balanced(T[1, :3, :3] + T[0, :3, :3].T), atol=1e-6)
        np.testing.assert_allclose(w[4:], balanced(T[1, 4:, 4:] + T[0, 4:, 4:].T), atol=1e-6)
    found = exponential_coefficients(np.zeros((2, 4, 4)), 1.0, 0.0, LIMIT)
    assert not found.w.any()
    assert not found.unbounded


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("nu", [0.0, 1e-9, 5.0])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_logistic_is_the_minimiser_over_the_rows(n_classes, nu, seed):
    data = rows(seed, n_classes, noise=[0.8, 0.5, 0.2, 0.05][seed], spread=[0.0, 0.5, 1.0, 2.0][seed])
    found = logistic_coefficients(data.evaluate, n_classes, nu, LIMIT)
    assert found.passes == data.passes
    _, gradient, size = data.objective(found.w, nu)
    assert (np.abs(projected(gradient, found.w)) <= 1e-9 * size).all()
    oracle = minimize(
        lambda w: data.objective(w, nu)[:2],
        np.zeros(n_classes),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, LIMIT)] * n_classes,
        options={"ftol": 0, "gtol": 1e-9, "maxiter": 2000, "maxls": 50},
    )
    np.testing.assert_allclose(found.w, oracle.x - oracle.x.min(), atol=1e-7)


def test_logistic_of_even_margins_has_a_closed_form():
    """All E = 1: right rows against wrong rows is ln(right / wrong), near or far."""
    for wrong in (400, 100, 10, 1):
        y = np.arange(1000) % 2
        h = np.where(np.arange(1000) < wrong, 1 - 2 * y, 2 * y - 1)
        data = RowsOfOneLearner(np.ones((1000, 2)), y, h)
        found = logistic_coefficients(data.evaluate, 2, 0.0, LIMIT)
        np.testing.assert_allclose(found.w, [0, np.log((1000 - wrong) / wrong)], rtol=1e-8)
        assert found.passes == data.passes
        assert (found.passes == 1) == (found.w[1] < 2)


def test_one_pass_over_the_rows_is_typical():
    passes = [
        logistic_coefficients(rows(seed, 10, noise=0.7).evaluate, 10, 1e-9, LIMIT).passes
        for seed in range(20)
    ]
    assert passes.count(1) >= 18
    assert max(passes) == 2


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_logistic_without_errors_goes_to_the_limit(n_classes):
    data = rows(0, n_classes, noise=0.0)
    found = logistic_coefficients(data.evaluate, n_classes, 0.0, LIMIT)
    assert found.unbounded
    assert found.w.max() == pytest.approx(LIMIT, rel=1e-9)
    assert found.passes <= 8
    _, gradient, size = data.objective(found.w, 0.0)
    assert (np.abs(projected(gradient, found.w)) <= 1e-6 * size.max()).all()


def test_logistic_with_absent_classes():
    data = rows(2, 3)
    E = np.column_stack([data.E, np.zeros(len(data.y))])
    w = logistic_coefficients(RowsOfOneLearner(E, data.y, data.h).evaluate, 4, 1e-9, LIMIT).w
    assert w[3] == 0
    np.testing.assert_array_equal(w[:3], logistic_coefficients(data.evaluate, 3, 1e-9, LIMIT).w)


def test_the_same_sums_give_the_same_bits():
    T, data = table(4, 26), rows(4, 6)
    for _ in range(2):
        again = exponential_coefficients(T, 1.0, 1e-9, LIMIT).w
        assert again.tobytes() == exponential_coefficients(T.copy(), 1.0, 1e-9, LIMIT).w.tobytes()
        again = logistic_coefficients(data.evaluate, 6, 1e-9, LIMIT).w
        assert again.tobytes() == logistic_coefficients(data.evaluate, 6, 1e-9, LIMIT).w.tobytes()
