"""Rounds in which a weak learner makes no error.

Such a weak learner is not weak: weighted by its own step, the rows would give the same learner in every round that follows. And
unless the algorithm bounds its votes, no finite step is the best one. The papers leave this case open. Here two things happen:

* Trees of one level less are grown until one makes an error or is a stump. So rounds differ, margins widen, and the ensemble
  averages trees. A smaller tree that does not lower the loss, as in the exclusive or of two features, is not used.
* If the learner still makes no error, its step is that of a small error: see `SMOOTHING`.

Both depend only on the rows and the scores, so a resumed training does the same. With on_separation="stop", training ends there;
where votes are bounded, the learner is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from distboost.algorithms.base import SEPARATED, Algorithm, Round
from distboost.rows.messages import Rows
from distboost.trees.grower import TreeGrower


@dataclass(frozen=True)
class Continued:
    """`Algorithm.learn`, for runs that continue after a weak learner without an error."""

    algorithm: Algorithm

    def __call__(self, rows: Rows, grow: TreeGrower) -> Round:
        """Find the round's weak learners. The outcome is never SEPARATED."""
        found = self.algorithm.learn(rows, grow)
        while found.outcome == SEPARATED and (depth := _depth(found)) > 1:
            limits = replace(grow.limits, max_depth=depth - 1)
            smaller = self.algorithm.learn(rows, TreeGrower(rows, limits))
            if not smaller.changes_scores:
                break
            found = smaller
        if found.outcome != SEPARATED:
            return found
        if not self.algorithm.bounded:
            found = self.algorithm.smoothed(found)
        return found._replace(outcome="")


@dataclass(frozen=True)
class AsPublished:
    """`Algorithm.learn`, for runs that take the papers at their word."""

    algorithm: Algorithm

    def __call__(self, rows: Rows, grow: TreeGrower) -> Round:
        """Find the round's weak learners. The outcome SEPARATED means that no finite step is the best one."""
        found = self.algorithm.learn(rows, grow)
        if found.outcome == SEPARATED and self.algorithm.bounded:
            return found._replace(outcome="")
        return found


def _depth(found: Round) -> int:
    """The depth of the round's deepest tree."""
    depths: list[int] = [learner.weak.depth for learner in found.learners]
    return max(depths)
