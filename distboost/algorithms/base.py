"""What every boosting algorithm supplies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import log_expit, softmax
from sklearn.utils._param_validation import Interval

from distboost.kernels import simd
from distboost.rows.interface import Rows
from distboost.rows.messages import Losses, Step
from distboost.trees.grower import TreeGrower
from distboost.weights.base import Statistic, Weighting

# Rows too light for the integer sums weigh less than 2^-40 of the heaviest. A step that multiplies a weight by more than that
# could lift one from nothing to the top: the largest step, also where there is no error to stop it.
LARGEST_RATIO = float(np.log(2.0**40))

# Shrinkage: what enlarges steps by more than this only sends the weights to infinity.
LEARNING_RATE = Interval(Real, 0, 10, closed="right")

# How a training may end besides having done its rounds.
SEPARATED = (
    "separated"  # the weak learner makes no error, so that no finite step is the best one: it was cut off
)
NO_SPLIT = "no split"  # no weak learner improves on one that changes nothing
CONVERGED = "converged"  # no weak learner has a slope that the algorithm's own threshold lets pass
NO_BETTER_THAN_CHANCE = "no better than chance"  # the weak learner errs too often to be of use


def parameter(default: Any, *allowed: Any) -> Any:
    """A parameter of an algorithm: its default and what scikit-learn's parameter validation is to allow."""
    return field(default=default, metadata={"allowed": list(allowed)})


def size(default: int | None, least: int = 1) -> Any:
    """A parameter that limits a tree; None is no limit."""
    return parameter(default, Interval(Integral, least, None, closed="left"), None)


class Learner(NamedTuple):
    """A weak learner with its step."""

    weak: Any  # a `weak.tree.Tree` or a `weak.similarity.Similarity`
    values: (
        np.ndarray
    )  # what it adds to the scores: (n_leaves, n_scores) of a tree, (1, n_scores) of a similarity


class Round(NamedTuple):
    """What a round found.

    Attributes
    ----------
    learners : sequence of Learner
        As many in every round; none if training ends without this round.
    outcome : str
        Why training ends with this round; empty if it goes on.
    notes : mapping of str to float
        What is kept of the round beside the losses.
    rewritten : sequence of ndarray or None
        New values for the learners of all earlier rounds, of an algorithm that corrects them.
    growth : ndarray or None
        How far the rewriting can raise the weighting's shifts.
    """

    learners: Sequence[Learner]
    outcome: str = ""
    notes: Mapping[str, float] = {}
    rewritten: Sequence[np.ndarray] | None = None
    growth: np.ndarray | None = None


@dataclass(kw_only=True, eq=False)
class Algorithm(ABC):
    """One paper's formulas: how rows are weighted, how a round finds its weak learner and its step, what the loss is.

    A dataclass whose fields, `n_classes` apart, are the parameters of its estimator: those of every estimator may be named
    again to see their value, or to give them another default.
    """

    n_classes: int

    name: ClassVar[str]
    corrective: ClassVar[bool] = False  # every round rewrites the values of all learners
    same_every_round: ClassVar[bool] = (
        True  # where one round finds nothing to gain, the next finds nothing either
    )
    notes: ClassVar[tuple[str, ...]] = ()  # the names of a round's notes
    weighting: Weighting = field(init=False)

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The fields that are parameters, by name."""
        return {f.name: f for f in fields(cls) if f.init and f.name != "n_classes"}

    @property
    def learners_per_round(self) -> int:
        return 1

    @property
    def fixed(self) -> tuple[str, ...]:
        """Parameters that must stay as they were when a training is resumed, n_estimators among them."""
        return ()

    @property
    def known_by_scores(self) -> bool:
        """Whether the scores of rows are all that a round needs to know of those before it: then other rows may join."""
        cls = type(self)
        remembers = cls.on_steps is not Algorithm.on_steps or cls.restore_notes is not Algorithm.restore_notes
        return not (self.corrective or remembers or self.fixed)

    @property
    def needs_values(self) -> bool:
        """Whether it measures distances between rows: bins are not enough."""
        return False

    @property
    def histogram_sums(self) -> int:
        """Sums in each bin of its histograms, beside the number of rows; 0 if it makes none."""
        return self.n_classes

    def row_bytes(self, n_features: int) -> int:
        """Bytes that training keeps of a row beside its bins, scores, label and weight: those of the statistics."""
        return statistic_bytes(self.n_classes, wide=True)

    def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raises DataError if the parameters do not go together, or not with so many classes."""

    def statistic(self, round: int) -> Statistic | None:
        """What the histograms of a round's first tree sum, if that is known before the round begins: it saves a pass."""
        return None

    @abstractmethod
    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        """The round's weak learners and their exact steps, before shrinkage."""

    def on_steps(self, steps: Sequence[Step]) -> None:  # noqa: B027 (most carry nothing from round to round but the scores)
        """Told of what each round added to the scores, after shrinkage, also when a training is resumed."""

    def restore_notes(self, notes: Mapping[str, Sequence[float]]) -> None:  # noqa: B027 (most have no notes)
        """Told of the notes of all earlier rounds when a training is resumed."""

    @abstractmethod
    def loss_of(self, losses: Losses) -> float:
        """The algorithm's own loss."""

    @abstractmethod
    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Class probabilities of which the scores (n, K) are the population minimiser."""

    def decoded(self, G: np.ndarray) -> np.ndarray:
        """The scores (n, K) of the classes, from those that training keeps (n, n_scores)."""
        return G


def statistic_bytes(n_sums: int, wide: bool) -> int:
    """Bytes of a row's statistic of so many numbers, with a row count and a row weight."""
    return (8 if wide else 4) * simd.padded(n_sums + 2)


def signs(S: np.ndarray) -> np.ndarray:
    """-1 or +1 by the sign of S; +1 for 0."""
    return np.where(S < 0, -1.0, 1.0)


def tree_signs(S: np.ndarray, stump: bool) -> np.ndarray:
    """Which leaves are +1: those with a positive sum; of a stump's two, the one with the larger sum."""
    return np.array([-1.0, 1.0]) * signs(S[1:] - S[:1]) if stump and len(S) == 2 else signs(S)


def normalised_sigmoids(F: np.ndarray) -> np.ndarray:
    """The sigmoids of 2 F, divided by their sum: the probabilities of K binary problems under the exponential loss.

    By logarithms, as all of a row may be too small for a number.
    """
    return softmax(log_expit(2 * F), axis=1)


def bounded_log_ratio(A: float, B: float, limit: float) -> float:
    """ln(A / B), at most `limit` in size; 0 where both are 0."""
    if A <= 0 and B <= 0:
        return 0.0
    if B <= 0 or A <= 0:
        return limit if B <= 0 else -limit
    return float(np.clip(np.log(A / B), -limit, limit))
