"""The interface of a boosting algorithm."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from distboost.algorithms.constraints import Interval
from distboost.kernels.elementary import log_sigmoid, softmax
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows, Step
from distboost.rows.sums import Statistic, Weighting, vector_bytes
from distboost.trees.grower import TreeGrower


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

# The largest step, also of a weak learner without an error. Rows that weigh less than 2^-40 of the heaviest may be 0 in the
# integer sums: a step that multiplied a weight by more than 2^40 could turn such a row into the heaviest one unnoticed.
LARGEST_RATIO = float(np.log(2.0**40))

# The share of the weight that counts as wrong if a weak learner is right about all of it and training continues. It bounds the
# step, as the smoothing of confidence-rated boosters does (Schapire & Singer 1999): ln((1 - ε) / ε) in place of LARGEST_RATIO. A
# share, not half a row: weights then mean the same in any unit.
SMOOTHING = 0.01

# Shrinkage. Above 10, weights would only diverge.
LEARNING_RATE = Interval(Real, 0, 10, closed="right")

# Why a training run may end before its last round.
# The weak learner makes no error: unless votes are `bounded`, no finite step is the best one, and the step was cut off at
# LARGEST_RATIO. The training ends only with on_separation="stop": see `training.separation`.
SEPARATED = "separated"
# No weak learner lowers the loss.
NO_SPLIT = "no split"
# No weak learner lowers the loss faster than the algorithm's own threshold.
CONVERGED = "converged"
# The weak learner's error is too large to be of use.
NO_BETTER_THAN_CHANCE = "no better than chance"


def parameter(default: Any, *allowed: Any, is_new: bool = False) -> Any:
    """Define a parameter of an algorithm: its default, and the constraints that scikit-learn's parameter validation checks.

    `is_new`: model files store it only if it differs from its default, because files of earlier versions do not have it.
    """
    return field(default=default, metadata={"allowed": list(allowed), "is_new": is_new})


def size(default: int | None, least: int = 1) -> Any:
    """Define a parameter that limits the size of a tree; None: no limit."""
    return parameter(default, Interval(Integral, least, None, closed="left"), None)


class Learner(NamedTuple):
    """A weak learner with its step.

    Attributes
    ----------
    weak : Tree or Similarity
    values : ndarray of shape (n_leaves, n_scores), float64
        The values that it adds to the scores. A similarity has one leaf.
    """

    weak: Any
    values: np.ndarray


class Round(NamedTuple):
    """The result of a round.

    Attributes
    ----------
    learners : sequence of Learner
        The weak learners, the same number in every round. Empty if training ends before this round.
    outcome : str
        Why training ends with this round; empty if it continues.
    notes : mapping of str to float
        Further numbers that the history keeps of the round, besides the losses.
    rewritten : sequence of ndarray of shape (n_leaves, n_scores), float64, or None
        New values of the learners of all earlier rounds, if the algorithm is corrective.
    growth : ndarray of shape (n_shifts,), float64, or None
        Upper bounds on how much the new values raise the weighting's shifts.
    """

    learners: Sequence[Learner]
    outcome: str = ""
    notes: Mapping[str, float] = {}
    rewritten: Sequence[np.ndarray] | None = None
    growth: np.ndarray | None = None

    @property
    def changes_scores(self) -> bool:
        """Whether a learner adds anything to the scores."""
        return any(learner.values.any() for learner in self.learners)


@dataclass(kw_only=True, eq=False)
class Algorithm(ABC):
    """One paper's formulas: the weights of rows, the weak learner and the step of a round, the loss.

    Algorithms are dataclasses. The fields other than `n_classes` are the parameters of the estimator. A field may repeat a
    parameter that all estimators have, to read its value or to give it another default.

    Attributes
    ----------
    name : str
        The algorithm's name on the command line and in model files.
    corrective : bool
        Whether every round rewrites the values of all learners.
    same_every_round : bool
        Whether all rounds after one without improvement would find none either.
    bounded : bool
        Whether the step of a weak learner without an error is finite.
    notes : tuple of str
        The names of a round's notes.
    weighting : Weighting
    """

    n_classes: int

    name: ClassVar[str]
    corrective: ClassVar[bool] = False
    same_every_round: ClassVar[bool] = True
    bounded: ClassVar[bool] = False
    notes: ClassVar[tuple[str, ...]] = ()
    weighting: Weighting = field(init=False)

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The fields that are parameters, by name."""
        return {f.name: f for f in fields(cls) if f.init and f.name != "n_classes"}

    @property
    def learners_per_round(self) -> int:
        """Number of weak learners that a round adds."""
        return 1

    @property
    def fixed_parameters(self) -> tuple[str, ...]:
        """Run parameters, such as n_estimators, that a resumed training must not change."""
        return ()

    @property
    def scores_suffice(self) -> bool:
        """Whether a round depends on earlier rounds only through the scores, so that training can continue on other rows."""
        cls = type(self)
        has_state = cls.on_steps is not Algorithm.on_steps or cls.restore_notes is not Algorithm.restore_notes
        return not (self.corrective or has_state or self.fixed_parameters)

    @property
    def needs_values(self) -> bool:
        """Whether the algorithm needs the raw values of rows besides their bins, to measure distances."""
        return False

    @property
    def compressions(self) -> frozenset[str]:
        """Those of the parameters `sketch` and `statistic_bits` that suit the algorithm.

        Both need a gain that is the Euclidean length of sums of `Residuals`, and a step that follows from reductions alone.
        `statistic_bits` also needs that nothing but the choice of splits depends on the number of rows in a histogram.
        """
        return frozenset()

    @property
    def votes(self) -> np.ndarray | None:
        """The code M, (K, n_scores), of scores M tanh(g), where g are sums over the weak learners; None: scores are such sums."""
        return None

    @property
    def gain(self) -> Gain | None:
        """The gain of the trees, or None if it is not known before the first round.

        If it is known, its search is compiled while the workers of a cluster start. It is read before `check`.
        """
        return None

    @property
    def histogram_sums(self) -> int:
        """The number of sums in each bin of a histogram, without the number of rows; 0 if the algorithm has no histograms."""
        found = self.typical_statistic()
        return self.n_classes if found is None else found.n_sums(self.n_classes)

    def row_bytes(self, n_features: int) -> int:
        """Return the bytes that training keeps of a row besides its bins, scores, label and weight."""
        found = self.typical_statistic()
        return vector_bytes(self.n_classes, wide=True) if found is None else found.row_bytes(self.n_classes)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        """The most numbers that one reduction returns, in trees of at most `n_leaves` leaves and runs of `n_rounds` rounds.

        The memory plan counts them. 0: the steps follow from the sums of the histograms.
        """
        return 0

    def check(self) -> None:  # noqa: B027 (most have nothing to check)
        """Raise DataError if the parameters contradict each other or the number of classes."""

    def statistic(self, round: int) -> Statistic | None:
        """Return the statistic of a round's first tree, or None if it is not known before the round begins.

        If it is known, the update of the previous round also computes it, which saves a pass over the rows.
        """
        return None

    def typical_statistic(self) -> Statistic | None:
        """Return a statistic of the size that all rounds have, for the memory plan. It is called before `check`."""
        return self.statistic(1)

    @abstractmethod
    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        """Find the round's weak learners and their exact steps, before shrinkage."""

    def smoothed(self, found: Round) -> Round:
        """Return a round without an error, whose steps were cut off at LARGEST_RATIO, with those of the error SMOOTHING."""
        factor = float(np.log(1 / SMOOTHING - 1)) / LARGEST_RATIO
        return found._replace(learners=[Learner(weak, factor * values) for weak, values in found.learners])

    def on_steps(self, steps: Sequence[Step]) -> None:  # noqa: B027 (most keep no state but the scores)
        """Receive the steps that each round has added to the scores, after shrinkage.

        A resumed training also calls this for each earlier round. A corrective algorithm gets the steps of all rounds each time.
        """

    def restore_notes(self, notes: Mapping[str, Sequence[float]]) -> None:  # noqa: B027 (most have no notes)
        """Receive the notes of all earlier rounds, before the first round; they are empty in a new run."""

    @abstractmethod
    def loss_of(self, losses: Losses) -> float:
        """Return the algorithm's own loss."""

    @property
    def objective(self) -> str:
        """What `loss_of` returns, in words. Algorithms of other losses override it."""
        return f"{getattr(self, 'loss', 'exponential')} loss"

    @property
    def link(self) -> Link | None:
        """The function that `probabilities` is, if it is one of `algorithms.links`: exported models compute these alone."""
        return None

    def probabilities(self, F: np.ndarray) -> np.ndarray:
        """Return the class probabilities, (n, K) float64, whose expected loss the scores F, (n, K) float64, minimise.

        An algorithm defines either this method or `link`.
        """
        if self.link is None:
            raise NotImplementedError(f"{type(self).__name__} defines neither `link` nor `probabilities`.")
        return self.link(F)

    def decoded(self, G: np.ndarray) -> np.ndarray:
        """Return the scores of the classes, (n, K) float64, from the scores that training keeps, (n, n_scores) float64."""
        return G


def signs(S: np.ndarray) -> np.ndarray:
    """-1 or +1 by the sign of S; +1 for 0."""
    return np.where(S < 0, -1.0, 1.0)


def tree_signs(S: np.ndarray, stump: bool) -> np.ndarray:
    """The sign of each leaf from its sum, S (n_leaves,). A stump's leaves have opposite signs: the larger sum is +1."""
    if not stump or len(S) != 2:
        return signs(S)
    opposite: np.ndarray = np.array([-1.0, 1.0]) * signs(S[1:] - S[:1])
    return opposite


def bounded_log_ratio(A: float, B: float, limit: float) -> float:
    """ln(A / B), clipped to [-limit, limit]; 0 if both are 0."""
    if A <= 0 and B <= 0:
        return 0.0
    if B <= 0 or A <= 0:
        return limit if B <= 0 else -limit
    return float(np.clip(np.log(A / B), -limit, limit))
