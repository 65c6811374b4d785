"""Probabilities are those that minimise the expected loss at the scores."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from distboost import (
    registry,
)
from distboost.algorithms.adaboost_mm import AdaBoostMM


def lead(F: np.ndarray, y: int) -> np.ndarray:
    """By how much the scores of the other classes exceed that of class y."""
    return np.delete(F, y, axis=-1) - F[..., y : y + 1]


# What scores that sum to 0 cost a row of class y.
EXPECTED = {
    "cd-mcboost": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "gd-mcboost": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "cd-mcboost, logistic": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "gd-mcboost, logistic": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "adaboost-mm": ({}, lambda F, y: np.exp(lead(F, y)).sum()),
    "stagewise": ({"loss": "exponential"}, lambda F, y: np.exp(lead(F, y)).sum()),
    "stagewise, logistic": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "multiboost": ({"loss": "logistic"}, lambda F, y: np.log1p(np.exp(lead(F, y))).sum()),
    "gamble": ({}, lambda F, y: np.exp(-F[y] / (len(F) - 1))),
    "adaboost-ecc": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "samme": ({}, lambda F, y: np.exp(-F[y])),
    "samme-r": ({}, lambda F, y: np.exp(-F[y] / (len(F) - 1))),
    "adaboost-m2": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "adaboost-mr": ({}, lambda F, y: np.exp(lead(F, y) / 2).sum()),
    "logitboost": ({}, lambda F, y: np.log1p(np.exp(lead(F, y)).sum())),
    "aoso-logitboost": ({}, lambda F, y: np.log1p(np.exp(lead(F, y)).sum())),
    "gradboost": ({}, lambda F, y: np.log1p(np.exp(lead(F, y)).sum())),
}
SCORES = np.array([1.5, -0.7, 0.4, 0.1, -1.3])


@pytest.mark.parametrize("name", EXPECTED)
def test_scores_minimise_the_loss_that_their_probabilities_expect(name):
    parameters, loss = EXPECTED[name]
    algorithm = registry.algorithm(name.partition(",")[0])(n_classes=5, **parameters)
    [P] = algorithm.probabilities(SCORES[np.newaxis])
    centred = np.eye(5) - 1 / 5
    step = 1e-5
    slopes = [
        sum(p * (loss(SCORES + step * to, y) - loss(SCORES - step * to, y)) for y, p in enumerate(P))
        / (2 * step)
        for to in centred
    ]
    assert_allclose(slopes, 0, atol=1e-8)


@pytest.mark.parametrize("name", ["one-vs-all", "adaboost-mh", "gentle-adaboost", "jointboost", "rebel"])
def test_probabilities_of_a_binary_problem_for_each_class(name):
    """A score of F has the odds e^(2 F) that the exponential loss gives it; the classes' probabilities are made to sum to 1."""
    [P] = registry.algorithm(name)(n_classes=5).probabilities(SCORES[np.newaxis])
    alone = 1 / (1 + np.exp(-2 * SCORES))
    assert_allclose(P, alone / alone.sum())


def test_probabilities_of_a_code():
    """Of K classes, two have different bits in 2^(K-2) columns: each moves their scores apart by 2 committees' scores."""
    [P] = registry.algorithm("adaboost-mo")(n_classes=5).probabilities(8 * SCORES[np.newaxis])
    assert_allclose(P, np.exp(SCORES) / np.exp(SCORES).sum())


@pytest.mark.parametrize(
    ("name", "decoding"),
    [("all-pairs", {"decoding": "sum"}), ("all-pairs", {"decoding": "votes"}), ("output-code", {})],
)
def test_probabilities_of_columns(name, decoding):
    """A column between two groups has half of the logarithm of their odds; of pairs, that is a difference of scores."""
    algorithm = registry.algorithm(name)(n_classes=5, **decoding)
    code = algorithm.weighting.code
    group = np.exp(SCORES) @ np.stack([code > 0, code < 0])
    F = algorithm.decoded(np.log(group[0] / group[1])[np.newaxis] / 2)
    [P] = algorithm.probabilities(F)
    if decoding == {"decoding": "sum"}:
        assert_allclose(P, np.exp(SCORES) / np.exp(SCORES).sum())
    assert_array_equal(np.argsort(P), np.argsort(SCORES))


def test_probabilities_of_votes():
    P = AdaBoostMM(n_classes=5, n_estimators=4, strategy="os-exponential").probabilities(
        np.array([[3.0, 1, 0, 0, 0], [0] * 5])
    )
    assert_allclose(P, [[3 / 4, 1 / 4, 0, 0, 0], [1 / 5] * 5])
