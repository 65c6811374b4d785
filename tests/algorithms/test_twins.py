"""Algorithms beside naive twins: every stump there is, with the formulas of their papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, islice

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.special import expit

from distboost import CDMCBoostClassifier, GDMCBoostClassifier, StagewiseBoostClassifier, baselines
from distboost.algorithms.classic.output_codes import random_code
from distboost.weights.codes import all_pairs
from tests.reference.saberian_vasconcelos import simplex

ROUNDS = 5
DATA_SETS = range(20)


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, weights): 2 to 12 classes, a tenth of the values missing in every other data set."""
    rng = np.random.default_rng(seed)
    K = 2 + seed % 11
    y = np.concatenate([np.arange(K), rng.integers(0, K, 120)])
    X = np.round(
        np.eye(K, 4)[y] + y[:, None] * rng.normal(size=4) / K + 0.5 * rng.normal(size=(len(y), 4)), 1
    )
    if seed % 2:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, rng.choice([0.5, 1.0, 2.0, 3.0], len(y))


def stumps(X: np.ndarray) -> np.ndarray:
    """Which rows are on the right side of each stump, (stumps, n); rows with a missing value on either side."""
    found = []
    for x in X.T:
        present = np.unique(x[~np.isnan(x)])
        for threshold in present[:-1]:
            right = x > threshold
            found += [right, right | np.isnan(x)] if np.isnan(x).any() else [right]
        if np.isnan(x).any():
            found.append(np.isnan(x))
    return np.array(found, dtype=np.float64)


def sides(right: np.ndarray, statistic: np.ndarray) -> np.ndarray:
    """The sums of a statistic, (n, ..), over the left and the right side of each stump, (stumps, 2, ..)."""
    R = np.tensordot(right, statistic, axes=1)
    return np.stack([statistic.sum(axis=0) - R, R], axis=1)


def one_hot(y: np.ndarray) -> np.ndarray:
    return np.eye(y.max() + 1)[y]


def samme_r(right, y, weights) -> Iterator[np.ndarray]:
    Y = one_hot(y)
    n, K = Y.shape
    F, w = np.zeros((n, K)), weights / weights.sum()
    while True:
        C = sides(right, w[:, None] * Y)
        W = C.sum(axis=2)
        best = np.argmax(((C**2).sum(axis=2) / W).sum(axis=1))
        log_p = np.log(np.maximum(C[best] / W[best][:, None], 1e-5))
        h = (K - 1) * (log_p - log_p.mean(axis=1, keepdims=True))
        F = F + h[right[best].astype(int)]
        coded = np.where(Y > 0, 1.0, -1 / (K - 1))
        w = w * np.exp(-(K - 1) / K * (coded * log_p[right[best].astype(int)]).sum(axis=1))
        w /= w.sum()
        yield F


def softmax(F):
    e = np.exp(F - F.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def logitboost(right, y, weights) -> Iterator[np.ndarray]:
    Y = one_hot(y)
    n, K = Y.shape
    F = np.zeros((n, K))
    while True:
        p = softmax(F)
        f = np.zeros((n, K))
        for j in range(K):
            w = p[:, j] * (1 - p[:, j])
            z = np.clip((Y[:, j] - p[:, j]) / w, -4, 4)
            w = w * weights
            W, means = sides(right, w), sides(right, w * z) / sides(right, w)
            best = np.argmax((W * means**2).sum(axis=1))
            f[:, j] = means[best][right[best].astype(int)]
        F = F + (K - 1) / K * (f - f.mean(axis=1, keepdims=True))
        yield F


def aoso(right, y, weights) -> Iterator[np.ndarray]:
    Y = one_hot(y)
    n, K = Y.shape
    F = np.zeros((n, K))

    def pair(V, D):
        """The classes that a node sets against each other, from the sums V (K,) and D (K, K)."""
        r = np.argmax(np.round(V, 9))
        values = np.divide((V[r] - V) ** 2, D[r], out=-np.ones(K), where=np.arange(K) != r)
        return r, np.argmax(np.round(values, 9))

    while True:
        p = softmax(F)
        V = weights[:, None] * (Y - p)
        q = p * (1 - p)
        D = weights[:, None, None] * (q[:, :, None] + q[:, None, :] + 2 * p[:, :, None] * p[:, None, :])
        r, s = pair(V.sum(axis=0), D.sum(axis=0))
        best = np.argmax((sides(right, V[:, r] - V[:, s]) ** 2 / sides(right, D[:, r, s])).sum(axis=1))
        F = F.copy()
        for side in (0.0, 1.0):
            inside = right[best] == side
            V_leaf, D_leaf = V[inside].sum(axis=0), D[inside].sum(axis=0)
            r, s = pair(V_leaf, D_leaf)
            step = 0.1 * np.clip((V_leaf[r] - V_leaf[s]) / D_leaf[r, s], -5, 5)
            F[inside, r] += step
            F[inside, s] -= step
        yield F


def ranking(right, y, weights, exact: bool) -> Iterator[np.ndarray]:
    """AdaBoost.M2 or, with the exact step, AdaBoost.MR."""
    Y = one_hot(y)
    n, K = Y.shape
    F, D = np.zeros((n, K)), weights[:, None] * (1 - Y)
    while True:
        V = np.where(Y > 0, D.sum(axis=1, keepdims=True), -D)
        best = np.argmax(np.round(np.maximum(sides(right, V), 0).sum(axis=(1, 2)), 9))
        h = (sides(right, V)[best] > 1e-9)[right[best].astype(int)].astype(float)
        order = h[np.arange(n), y][:, None] - h
        W_right, W_wrong = D[order > 0].sum(), D[order < 0].sum()
        even = 0 if exact else D[order == 0].sum() / 2
        step = np.log((W_right + even) / (W_wrong + even))
        F = F + step * h
        D = D * np.exp(-step * order / 2)
        D /= D.sum()
        yield F


def mh_of_labels(right, y, weights) -> Iterator[np.ndarray]:
    """AdaBoost.MH with h(x, l) = +1 for one label and -1 for all others, until no stump has an edge."""
    Y = 2 * one_hot(y) - 1
    n, K = Y.shape
    F, D = np.zeros((n, K)), weights[:, None] * np.ones((n, K))
    while True:
        D /= D.sum()
        edges = np.einsum("sal,kl->sak", sides(right, D * Y), 2 * np.eye(K) - 1)
        best = np.argmax(edges.max(axis=2).sum(axis=1).round(9))
        r = edges[best].max(axis=1).sum()
        if r < 1e-12:
            return
        h = (2 * np.eye(K) - 1)[edges[best].round(9).argmax(axis=1)][right[best].astype(int)]
        α = np.log((1 + r) / (1 - r)) / 2
        F, D = F + α * h, D * np.exp(-α * Y * h)
        yield F


def adaboost_of_columns(
    right, y, weights, code_of: Callable[[int], np.ndarray], vote: Callable = lambda f: f
) -> Iterator[np.ndarray]:
    """AdaBoost in each column of a code, on the rows whose class is not 0 there; decoded by L(z) = -z, or its votes."""
    M = code_of(y.max() + 1)
    z = M[y]
    F, D = np.zeros(z.shape), weights[:, None] * np.abs(z)
    largest = np.zeros(z.shape[1])
    while True:
        D /= D.sum(axis=0)
        # A stump's sides have opposite signs, which its sum over the right side less that over the left one chooses.
        rise = np.diff(sides(right, D * z), axis=1)[:, 0].round(9)
        best = np.argmax(np.abs(rise), axis=0)
        h = np.where((2 * right[best].T - 1) * rise[best, np.arange(z.shape[1])] < 0, -1.0, 1.0)
        ε = (D * (h != z)).sum(axis=0)
        # Without an error, the least margin of a column becomes that of the error 0.01, if it is smaller; of a pair, that of the
        # mean pair, if it is larger.
        least = np.where(z == 0, np.inf, z * F).min(axis=0)
        enough = max(np.log(99) / 2, largest.mean() if code_of is all_pairs else 0)
        last = np.maximum(enough - least, 0)
        α = np.where(ε == 0, last, np.log((1 - ε) / np.maximum(ε, 1e-300)) / 2)
        F, D, largest = F + α * h, D * np.exp(-α * z * h), largest + np.abs(α)
        yield vote(F) @ M.T


def jointboost(right, y, weights) -> Iterator[np.ndarray]:
    z = 2 * one_hot(y) - 1
    n, K = z.shape
    F = np.zeros((n, K))
    while True:
        w = weights[:, None] * np.exp(-z * F)
        d, W = sides(right, w * z), sides(right, w)
        constant = (w * z).sum(axis=0) / w.sum(axis=0)
        alone = constant * (w * z).sum(axis=0)
        subset, found = [], []  # (value, subset, stump) of each size
        while len(subset) < K:
            grown = []
            for S in ([*subset, c] for c in range(K) if c not in subset):
                stump = (d[:, :, S].sum(axis=2) ** 2 / W[:, :, S].sum(axis=2)).sum(axis=1)
                value = np.round(stump + np.delete(alone, S).sum(), 9)
                grown.append((value.max(), S, value.argmax()))
            found.append(max(grown, key=lambda one: one[0]))
            subset = found[-1][1]
        _, S, stump = max(found, key=lambda one: one[0])
        h = np.tile(constant, (2, 1))
        h[:, S] = (d[stump][:, S].sum(axis=1) / W[stump][:, S].sum(axis=1))[:, None]
        F = F + h[right[stump].astype(int)]
        yield F


def class_steps(right, y, weights, u: Callable[[np.ndarray], np.ndarray]) -> Iterator[np.ndarray]:
    """The stump and the class of steepest descent (eq. 10), where the terms r = y_i cancel; the class moves by 0.2."""
    Y = one_hot(y)
    F = np.zeros(Y.shape)
    while True:
        U = weights[:, None] * (1 - Y) * u(np.exp(F - (F * Y).sum(axis=1, keepdims=True)))
        slopes = np.diff(sides(right, Y * U.sum(axis=1, keepdims=True) - U), axis=1)[:, 0].round(9)
        best, r = np.unravel_index(np.argmax(np.abs(slopes)), slopes.shape)
        F = F.copy()
        F[:, r] += 0.2 * np.sign(slopes[best, r]) * (2 * right[best] - 1)
        yield F


# What a pair of a row and a wrong label weighs by its margin F[i, y_i] - F[i, k], but for a factor: minus the slope of φ.
PAIR_WEIGHTS = {"exponential": lambda margin: np.exp(-margin / 2), "logistic": lambda margin: expit(-margin)}


def mcboost(right, y, weights, loss: str, leaf: str) -> Iterator[np.ndarray]:
    """Both MCBoosts: CD with leaves "sign" and "mean", GD with "codeword" and "direction"."""
    own, Y = one_hot(y), simplex(y.max() + 1)
    n, K = own.shape
    F = np.zeros((n, K))

    def pairs(F):
        return weights[:, None] * (1 - own) * PAIR_WEIGHTS[loss]((F * own).sum(axis=1, keepdims=True) - F)

    def sums(F, columns):
        """Those of <w_i, column> over the sides of each stump, (stumps, 2, columns): w_i = sum_k (own - k) of the pairs."""
        U = pairs(F)
        return sides(right, (own * U.sum(axis=1, keepdims=True) - U) @ columns)

    for t in count():
        if leaf in ("sign", "mean"):
            y_j = Y[:, [t % (K - 1)]]
            S, W = sums(F, y_j), sides(right, weights)[:, :, None]
            if leaf == "sign":
                rise = np.diff(S, axis=1)[:, 0, 0].round(9)
                best = np.argmax(np.abs(rise))
                g = np.sign(rise[best]) * np.array([[-1.0], [1.0]])
            else:
                best = np.argmax((S**2 / W).sum(axis=(1, 2)))
                g = S[best] / W[best]
            V = g @ y_j.T
        elif leaf == "codeword":
            S = sums(F, np.eye(K))
            best = np.argmax(S.max(axis=2).sum(axis=1).round(9))
            V = (Y @ Y.T)[S[best].round(9).argmax(axis=1)]
        else:
            S = sums(F, np.eye(K))
            lengths = np.sqrt((S**2).sum(axis=2, keepdims=True))
            best = np.argmax(lengths.sum(axis=(1, 2)))
            V = S[best] / lengths[best]
        V = V[right[best].astype(int)]
        along = (V * own).sum(axis=1, keepdims=True) - V
        # No step multiplies a weight by more than 2^40.
        largest = np.log(2.0**40) / np.ptp(V, axis=1).max() * (2 if loss == "exponential" else 1)

        def falls(α, F=F, V=V, along=along):
            return (pairs(F + α * V) * along).sum()

        F = F + (largest if falls(largest) > 0 else brentq(falls, 0, largest, xtol=1e-14)) * V
        yield F


def of_mcboost(loss: str, leaf: str) -> tuple[Callable, object]:
    estimator = CDMCBoostClassifier if leaf in ("sign", "mean") else GDMCBoostClassifier
    return partial(mcboost, loss=loss, leaf=leaf), estimator(loss=loss, leaf=leaf, max_depth=1)


def of_class_steps(loss: str) -> StagewiseBoostClassifier:
    return StagewiseBoostClassifier(loss=loss, class_step=0.2, learning_rate=1.0)


TWINS: dict[str, tuple[Callable, object]] = {
    "samme-r": (samme_r, baselines.SAMMERClassifier(max_depth=1)),
    "adaboost-m2": (partial(ranking, exact=False), baselines.AdaBoostM2Classifier(max_depth=1)),
    "adaboost-mr": (partial(ranking, exact=True), baselines.AdaBoostMRClassifier(max_depth=1)),
    "adaboost-mh, label": (mh_of_labels, baselines.AdaBoostMHClassifier(vote="label")),
    "all-pairs": (
        partial(adaboost_of_columns, code_of=all_pairs, vote=lambda f: 2 / (1 + np.exp(-2 * f)) - 1),
        baselines.AllPairsClassifier(),
    ),
    "all-pairs, sum": (
        partial(adaboost_of_columns, code_of=all_pairs),
        baselines.AllPairsClassifier(decoding="sum"),
    ),
    "output-code": (
        partial(adaboost_of_columns, code_of=partial(random_code, seed=0)),
        baselines.OutputCodeClassifier(),
    ),
    "stagewise, class steps": (partial(class_steps, u=lambda E: E), of_class_steps("exponential")),
    "stagewise, logistic class steps": (
        partial(class_steps, u=lambda E: E / (1 + E)),
        of_class_steps("logistic"),
    ),
    "logitboost": (logitboost, baselines.LogitBoostClassifier(max_depth=1)),
    "aoso-logitboost": (aoso, baselines.AOSOLogitBoostClassifier(max_depth=1)),
    "jointboost": (jointboost, baselines.JointBoostClassifier()),
    "cd-mcboost": of_mcboost("exponential", "sign"),
    "cd-mcboost, mean": of_mcboost("exponential", "mean"),
    "cd-mcboost, logistic": of_mcboost("logistic", "sign"),
    "cd-mcboost, logistic mean": of_mcboost("logistic", "mean"),
    "gd-mcboost, logistic": of_mcboost("logistic", "direction"),
    "gd-mcboost, logistic codeword": of_mcboost("logistic", "codeword"),
}


@pytest.mark.filterwarnings("ignore::distboost.errors.TrainingEndedWarning")
@pytest.mark.parametrize("seed", DATA_SETS)
@pytest.mark.parametrize("name", TWINS)
def test_rounds_are_those_of_the_paper(name, seed):
    twin, model = TWINS[name]
    X, y, weights = drawn(seed)
    model.set_params(n_estimators=ROUNDS, calibration=None, n_jobs=1).fit(X, y, sample_weight=weights)
    expected = list(islice(twin(stumps(X), y, weights), ROUNDS))
    assert model.n_iter_ == len(expected) > 0
    assert_allclose(list(model.staged_scores(X)), expected, rtol=1e-6, atol=1e-6)
