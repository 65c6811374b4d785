"""StructBoost beside linear programs with a constraint for each row and class, solved at once."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from distboost.baselines import StructBoostClassifier
from tests.algorithms.test_twins import DATA_SETS, ROUNDS, drawn, stumps

C, TOLERANCE = 50.0, 1e-4


def minimum(H: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """min sum W + C mean of the hinge losses, over W >= 0, with the stumps H (n, T)."""
    (n, T), K = H.shape, y.max() + 1
    rows, constraints = [], []
    for i in range(n):
        for k in set(range(K)) - {y[i]}:
            margin = np.zeros((T, K))
            margin[:, y[i]], margin[:, k] = H[i], -H[i]
            rows.append(np.append(-margin.ravel(), -np.eye(n)[i]))
            constraints.append(-1.0)
    cost = np.append(np.ones(T * K), C * weights / weights.sum())
    return linprog(cost, A_ub=np.array(rows), b_ub=constraints).fun


def fitted(X, y, weights, **parameters):
    model = StructBoostClassifier(C=C, tolerance=TOLERANCE, calibration=None, n_jobs=1, **parameters)
    return model.fit(X, y, sample_weight=weights)


def contributions(model, X: np.ndarray) -> np.ndarray:
    """What each stump adds to the scores, (T, n, K)."""
    staged = [np.zeros((len(X), model.n_classes_)), *model.staged_scores(X)]
    return np.diff(staged, axis=0)


def objective(model, X: np.ndarray) -> float:
    return np.abs(contributions(model, X)).max(axis=1).sum() + C * model.train_loss_[-1]


@pytest.mark.parametrize("seed", DATA_SETS)
def test_coefficients_are_the_best_of_their_stumps(seed):
    X, y, weights = drawn(seed)
    model = fitted(X, y, weights, n_estimators=ROUNDS)
    assert model.n_iter_ == ROUNDS
    # Coefficients at the rounding of the scores cannot be told from 0.
    used = [added for added in contributions(model, X) if np.abs(added).max() > 1e-9]
    H = [np.sign(added[:, np.abs(added[0]).argmax()]) for added in used]
    least = minimum(np.reshape(H, (-1, len(y))).T, y, weights)
    assert least * (1 - 1e-6) <= objective(model, X) <= least * (1 + 2 * TOLERANCE)


@pytest.mark.filterwarnings("ignore::distboost.errors.TrainingEndedWarning")
@pytest.mark.parametrize("seed", range(5))
def test_column_generation_ends_with_the_best_of_all_stumps(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(36) % (2 + seed % 3)
    X = np.round(1.5 * np.eye(5, 3)[y] + rng.normal(size=(36, 3)))
    weights = rng.choice([1.0, 2.0], 36)
    model = fitted(X, y, weights, n_estimators=400)
    assert model.outcome_ == "converged"
    H = 2 * stumps(X).T - 1
    least = minimum(np.hstack([H, -H]), y, weights)
    # A dual constraint that is violated by the tolerance may hide as large a share of the objective.
    assert least * (1 - 1e-6) <= objective(model, X) <= least * (1 + 3 * TOLERANCE)
