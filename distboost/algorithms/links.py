"""Functions from the scores of the classes to their probabilities: those that exported models can compute, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from distboost.kernels.elementary import log_sigmoid, softmax


@dataclass(frozen=True)
class Softmax:
    """exp(F / temperature) divided by its sum over classes."""

    temperature: float = 1.0

    def __call__(self, F: np.ndarray) -> np.ndarray:
        """Return the probabilities, (n, K) float64, of scores F, (n, K) float64."""
        return softmax(F / self.temperature)


@dataclass(frozen=True)
class NormalisedSigmoids:
    """The sigmoids of 2 F divided by their sum over classes: K binary problems under the exponential loss.

    Computed from logarithms: all sigmoids of a row may underflow.
    """

    def __call__(self, F: np.ndarray) -> np.ndarray:
        """Return the probabilities, (n, K) float64, of scores F, (n, K) float64."""
        return softmax(log_sigmoid(2 * F))


@dataclass(frozen=True)
class Shares:
    """Each class's share of the votes that F counts; equal shares if there are none."""

    def __call__(self, F: np.ndarray) -> np.ndarray:
        """Return the probabilities, (n, K) float64, of scores F, (n, K) float64."""
        total = F.sum(axis=1, keepdims=True)
        shares: np.ndarray = np.divide(F, total, out=np.full(F.shape, 1 / F.shape[1]), where=total > 0)
        return shares


Link = Softmax | NormalisedSigmoids | Shares
