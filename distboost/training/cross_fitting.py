"""The calibration of a training run on few rows, by runs of fewer rounds, each of which leaves out another share of the rows.

A fifth of a few hundred rows has too few to find a temperature. So each row is left out once, and all of them tell one
temperature. The runs share the rounds of one more run. The scores that each gives to the rows that it has left out are
divided by their spread in the rows that it has learned from: one *relative* temperature (`calibration`) belongs to all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm
from distboost.data.axes import spans
from distboost.data.contents import Contents, values_of
from distboost.data.profile import Profile
from distboost.evaluation.calibrate import ScoreSums, fit_calibration
from distboost.evaluation.temperature import HIGHEST, LOWEST, fit_temperature, moments
from distboost.model.calibration import Calibration
from distboost.model.ensemble import Ensemble
from distboost.threads import Threads
from distboost.training.calibration import growth

Sums = Callable[[ScoreSums], np.ndarray]

PIECE_ROWS = 128  # whose values are in memory at a time


class LeftOut(NamedTuple):
    """Rows that a training run has left out, with their scores (n, n_classes).

    Attributes
    ----------
    now, earlier : ndarray
        By the ensemble of this run, and by the first half of its rounds, relative to the spread of each in the rows that
        it has learned from.
    later : ndarray
        By the ensemble that has learned from all rows.
    labels : ndarray of shape (n,)
    weights : ndarray of shape (n,), float64
    """

    now: np.ndarray
    earlier: np.ndarray
    later: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def sums(self, F: np.ndarray) -> Sums:
        """Return the function of the sums over these rows with the scores F."""
        return lambda wanted: wanted(F, self.labels, self.weights)


class Scorer(NamedTuple):
    """What computes the scores of contents."""

    algorithm: Algorithm
    profile: Profile
    threads: Threads

    def left_out(self, left_out: Contents, seen: Contents, part: Ensemble, whole: Ensemble) -> LeftOut:
        """Return rows `left_out` of the training of the `part` of an ensemble, which has learned from those `seen`."""
        half = part.copy(len(part) // 2)
        now, earlier = (
            self._scores(each, left_out) / (self._spread(each, seen) or 1.0) for each in (part, half)
        )
        return LeftOut(now, earlier, self._scores(whole, left_out), left_out.labels, left_out.weights)

    def _scores(self, ensemble: Ensemble, contents: Contents) -> np.ndarray:
        edges, categories = self.profile.edges, self.profile.categories
        pieces = [
            ensemble.scores(values_of(contents.selected(slice(a, b)), edges, categories), self.threads)
            for a, b in spans(0, len(contents.labels), PIECE_ROWS)
        ]
        return self.algorithm.decoded(np.concatenate(pieces))

    def _spread(self, ensemble: Ensemble, contents: Contents) -> float:
        F = self._scores(ensemble, contents)
        return moments(lambda wanted: wanted(F, contents.labels, contents.weights)).spread


def cross_fitted(method: str, found: Sequence[LeftOut], n_rounds: int, all_rounds: int) -> Calibration:
    """Return the calibration, by a method, of an ensemble of `all_rounds`, from rows left out of runs of `n_rounds`."""
    now = _sums_of(found, [one.now for one in found])
    earlier = _sums_of(found, [one.earlier for one in found])
    spread = moments(_sums_of(found, [one.later for one in found])).spread
    calibration = fit_calibration(method, now, found[0].now.shape[1])
    if not min(spread, moments(now).spread) > 0:  # all scores are equal
        return calibration
    relative = calibration.temperature
    if moments(earlier).spread > 0:
        relative *= growth(relative / fit_temperature(earlier)[0], math.log2(all_rounds / n_rounds))
    return replace(calibration, temperature=min(max(relative * spread, LOWEST), HIGHEST))


def _sums_of(found: Sequence[LeftOut], scores: Sequence[np.ndarray]) -> Sums:
    """Return the function of the sums over all rows that were left out, with these scores."""
    parts = [one.sums(F) for one, F in zip(found, scores, strict=True)]

    def sums(wanted: ScoreSums) -> np.ndarray:
        total: np.ndarray = np.sum([part(wanted) for part in parts], axis=0)
        return total

    return sums
