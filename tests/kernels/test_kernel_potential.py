"""Potentials of the 0-1 loss against the recursion that defines them, and against the closed formula in exact fractions."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, factorial

import numpy as np
import pytest

from distboost.errors import DistboostError, LimitError
from distboost.weights import potential
from distboost.weights.potential import PotentialTable, check_computable, potentials, zero_one_costs

pytestmark = pytest.mark.pairwise


def vote_probabilities(K, gamma):
    """The own class is class 0."""
    return np.full(K, (1 - gamma) / K) + gamma * np.eye(K)[0]


def by_recursion(K, gamma):
    """phi(t, s) = E over the random vote l of phi(t - 1, s + e_l); phi(0, s) = 0 if s_0 is above all others, else 1."""
    p = vote_probabilities(K, gamma)

    @cache
    def phi(t, s):
        if t == 0:
            return float(s[0] <= max(s[1:]))
        return sum(p[k] * phi(t - 1, (*s[:k], s[k] + 1, *s[k + 1 :])) for k in range(K))

    return phi


def in_fractions(K, gamma, t, s):
    """The closed formula of the paper's potential, without rounding."""
    b = (1 - Fraction(gamma)) / K
    won = Fraction(0)
    for j in range(t + 1):
        polynomial = [Fraction(1)] + [Fraction(0)] * (t - j)
        for votes in s[1:]:
            m_max = s[0] + j - 1 - votes
            polynomial = [
                sum((polynomial[n - m] / factorial(m) for m in range(min(m_max, n) + 1)), Fraction(0))
                for n in range(t - j + 1)
            ]
        ways = comb(t, j) * factorial(t - j) * polynomial[t - j]
        won += ways * (b + Fraction(gamma)) ** j * b ** (t - j)
    return 1 - won


def after_a_vote(states, k):
    return states + np.eye(states.shape[1], dtype=states.dtype)[k]


@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("K", [2, 3, 4])
def test_equals_the_recursion(K, gamma):
    states = np.array(list(product(range(4), repeat=K)))
    phi = by_recursion(K, gamma)
    for t in range(8):
        expected = [phi(t, tuple(s)) for s in states.tolist()]
        np.testing.assert_allclose(potentials(K, gamma, t, states), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("K", "gamma", "t", "state"),
    [
        (2, 0.1, 60, (0, 0)),
        (2, 0.9, 60, (5, 1)),  # phi = 1e-25
        (3, 0.05, 30, (2, 9, 4)),
        (4, 0.5, 20, (6, 0, 1, 0)),
        (4, 0.999, 12, (0, 0, 0, 0)),
        (9, 0.0, 12, (3, 0, 2, 2, 1, 0, 4, 0, 0)),
    ],
)
def test_keeps_all_digits_of_the_closed_formula(K, gamma, t, state):
    value = Fraction(float(potentials(K, gamma, t, np.array([state]))[0]))
    exact = in_fractions(K, gamma, t, state)
    assert exact > 0
    assert abs(value - exact) <= exact * Fraction(1, 10**14)


@pytest.mark.parametrize("gamma", [0.0, 0.02, 0.3, 0.95])
@pytest.mark.parametrize(("K", "t"), [(2, 793), (3, 200), (5, 120), (26, 60), (200, 30)])
def test_long_games_are_consistent_with_one_step_of_the_recursion(K, t, gamma):
    states = np.random.default_rng(0).integers(0, 6, (5, K))
    states[0] = 0
    now = potentials(K, gamma, t, states)
    p = vote_probabilities(K, gamma)
    next_round = sum(p[k] * potentials(K, gamma, t - 1, after_a_vote(states, k)) for k in range(K))
    assert np.isfinite(now).all()
    np.testing.assert_allclose(now, next_round, rtol=1e-12, atol=0)


def test_without_rounds_left_it_is_the_error_with_ties_as_errors():
    states = np.array([[2, 1, 0], [2, 2, 0], [1, 0, 2], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(potentials(3, 0.1, 0, states), [0, 1, 1, 1, 0])


@pytest.mark.parametrize("t", [1, 7, 40])
def test_decided_rows_have_exactly_0_or_1(t):
    states = np.array([[0, t, 0], [0, t + 5, 3], [t + 1, 0, 0], [3 * t, 1, 0]])
    np.testing.assert_array_equal(potentials(3, 0.1, t, states), [1, 1, 0, 0])
    nearly_safe = np.array([[t, 0, 0]])
    assert potentials(3, 0.1, t, nearly_safe) > 0


def test_probabilities_that_fall_with_own_votes_and_rise_with_others():
    rng = np.random.default_rng(1)
    states = rng.integers(0, 12, (200, 4))
    phi = potentials(4, 0.1, 25, states)
    assert ((phi >= 0) & (phi <= 1)).all()
    assert (potentials(4, 0.1, 25, after_a_vote(states, 0)) <= phi + 1e-15).all()
    for k in range(1, 4):
        assert (potentials(4, 0.1, 25, after_a_vote(states, k)) >= phi - 1e-15).all()


def test_order_of_the_other_classes_and_a_common_shift_change_no_bit():
    rng = np.random.default_rng(2)
    states = rng.integers(0, 9, (100, 5))
    shuffled = np.column_stack([states[:, 0], rng.permuted(states[:, 1:], axis=1)]) + 3
    np.testing.assert_array_equal(potentials(5, 0.2, 30, states), potentials(5, 0.2, 30, shuffled))


def test_table_computes_each_state_once(monkeypatch):
    computed = []
    kernel = potential.error_probabilities

    def counted(gaps, *arrays):
        computed.append(len(gaps))
        kernel(gaps, *arrays)

    monkeypatch.setattr(potential, "error_probabilities", counted)
    table = PotentialTable(3, 0.1)
    states = np.array([[1, 0, 2], [1, 2, 0], [0, 0, 0], [1, 0, 2]])
    first = table.values(20, states)
    again = table.values(20, np.vstack([states, [[5, 1, 1]]]))
    assert computed == [2, 1]
    np.testing.assert_array_equal(first, again[:-1])
    other_round = table.values(19, states)
    assert computed == [2, 1, 2]
    computed.clear()
    np.testing.assert_array_equal(table.values(20, states), first)  # forgotten meanwhile
    assert computed == [2]
    monkeypatch.undo()
    np.testing.assert_array_equal(first, potentials(3, 0.1, 20, states))
    np.testing.assert_array_equal(other_round, potentials(3, 0.1, 19, states))


def test_table_of_no_rows():
    assert PotentialTable(3, 0.1).values(5, np.zeros((0, 3), int)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("K", "rounds_left"), [(2, 6), (3, 1), (4, 9), (7, 15)])
def test_costs_are_the_potentials_after_each_vote(K, rounds_left, dtype):
    rng = np.random.default_rng(3)
    votes, labels = rng.integers(0, 8, (150, K)), rng.integers(0, K, 150).astype(np.int32)
    votes[:3] *= 100  # decided
    C = zero_one_costs(votes.astype(dtype), labels, rounds_left, PotentialTable(K, 0.15))
    assert C.dtype == np.float64
    expected = np.empty((150, K))
    for k in range(K):
        after = after_a_vote(votes, k)
        own = after[np.arange(150), labels]
        others = np.array([np.delete(s, y) for s, y in zip(after, labels, strict=True)])
        expected[:, k] = potentials(K, 0.15, rounds_left - 1, np.column_stack([own, others]))
    np.testing.assert_array_equal(C, expected)
    assert (C[np.arange(150), labels] <= C.min(axis=1) + 1e-15).all()


def test_costs_of_no_rows():
    C = zero_one_costs(np.zeros((0, 3)), np.zeros(0, np.int32), 4, PotentialTable(3, 0.1))
    assert C.shape == (0, 3)


@pytest.mark.parametrize(("K", "n_rounds"), [(2, 793), (3, 693), (26, 337), (1000, 100)])
def test_limit_of_classes_and_rounds(K, n_rounds):
    check_computable(K, n_rounds, 0.1)
    with pytest.raises(
        LimitError, match=rf"n_estimators is {n_rounds + 1} with {K} classes.*at most {n_rounds}"
    ):
        check_computable(K, n_rounds + 1, 0.1)


@pytest.mark.parametrize("gamma", [-0.1, 1.0, 2, float("nan"), float("inf")])
def test_limit_of_the_edge(gamma):
    with pytest.raises(DistboostError, match=r"edge is .*0 <= edge < 1"):
        check_computable(3, 10, gamma)


def test_edges_within_the_limit():
    check_computable(3, 10, 0)
    check_computable(3, 10, np.nextafter(1, 0))
    # Votes for other classes are all but impossible, yet nothing divides by their probability.
    states = np.array([[0, 10, 0], [0, 9, 0], [0, 0, 0]])
    np.testing.assert_allclose(potentials(3, np.nextafter(1, 0), 10, states), [1, 0, 0], rtol=0, atol=1e-14)
