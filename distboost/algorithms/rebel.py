"""REBEL (Appel & Perona, *A simple multi-class boosting framework with theoretical guarantees and empirical proficiency*, 2017).

| paper | here |
| --- | --- |
| K, N | K, the rows |
| H(x), y_n | F[n, k]; the class of row n: +1 for k = y_n, -1 for the others |
| w_n | w[n, k] = 1/2 exp(-F[n, k]) for k = y_n, 1/2 exp(F[n, k]) elsewhere: `CodeWeights`, and the factor 1/2 in `loss_of` |
| s_f^T, s_f^F | `s_T`, `s_F` (K,): sums of w[n, k] over the rows where f is right and wrong about class k |
| a | 1/2 (ln s^T - ln s^F), the best step of each class |
| L_f | 2 sum_k sqrt(s^T s^F), the loss after that step |

Departures: steps are clipped to LARGEST_STEP; `similarity/search.py` says how rows with equal coordinates are treated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    SEPARATED,
    Algorithm,
    Learner,
    NormalisedSigmoids,
    Round,
    parameter,
    size,
)
from distboost.algorithms.constraints import StrOptions
from distboost.errors import DataError
from distboost.kernels import gains
from distboost.kernels import similarity as kernels
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.similarity.search import SEARCH_BYTES, Similarity, SimilaritySearch, largest_sums
from distboost.trees.grower import TreeGrower
from distboost.trees.whole_tree import grow_whole_tree
from distboost.weights.codes import CodeSides, CodeWeights, OneAgainstAll

# A step multiplies one weight by e^a and divides another by it.
LARGEST_STEP = LARGEST_RATIO / 2


@dataclass(kw_only=True, eq=False)
class REBEL(Algorithm):
    """REBEL: multiclass boosting with one vector of votes per weak learner.

    Appel & Perona, *A simple multi-class boosting framework with theoretical guarantees and empirical proficiency*, ICML 2017.
    A weak learner is a tree of -1 and +1, or a similarity to one or two rows. It votes for or against every class, with the best
    step for each.

    The paper's procedure (section 5.2) finds a round's similarity: it splits the rows into two groups, chooses the row that is
    easiest to separate from all others, and tries its nearest neighbours in the other group one by one. This takes 4 passes over
    the rows and one more for each two-point similarity tried. A coordinate that is missing in either row adds nothing to their
    distance. Training keeps the rows' raw values: 8 bytes for each feature and 8 for each class. `max_features` and the limits
    of trees do not apply to similarities.

    Parameters
    ----------
    weak_learner : {"tree", "similarity"}, default="tree"
        "tree": each split is the one that lowers the loss of the whole tree most. "similarity": localized similarities
        (section 5). They measure Euclidean distances: scale the features comparably.
    max_depth : int or None, default=1
        The largest depth of a tree: 1 is a stump.
    similarity : {"two-point", "one-point"}, default="two-point"
        The number of rows whose distances a similarity measures.
    output : {"real", "sign"}, default="real"
        Output of similarities: their value, with steps by exact line searches, or its sign.
    max_candidates : int or None, default=None
        Upper limit of the two-point similarities tried in a round; each costs a pass over the rows. None: no limit, as in the
        paper.

    Attributes
    ----------
    passes_ : ndarray of shape (`n_iter_`,)
        Passes over the rows in each round; on a cluster, each is a round trip. The pass for a tree's root does not count: the
        update of the round before usually computes it.
    """

    weak_learner: str = parameter("tree", StrOptions({"tree", "similarity"}))
    max_depth: int | None = size(1)
    similarity: str = parameter("two-point", StrOptions({"two-point", "one-point"}))
    output: str = parameter("real", StrOptions({"real", "sign"}))
    max_candidates: int | None = size(None)
    sampling: str = parameter("uniform", StrOptions({"uniform", "weight"}))

    name: ClassVar[str] = "rebel"
    notes: ClassVar[tuple[str, ...]] = ("passes",)
    weighting: CodeWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = OneAgainstAll(self.n_classes)

    def check(self) -> None:
        """Raise DataError if similarities are to be found on rows that are drawn by weight."""
        if self.needs_values and self.sampling == "weight":
            raise DataError(
                "sampling is 'weight', but ``weak_learner='similarity'`` measures the loss of the drawn rows, which must be "
                "equally likely.",
                remedy="Pass ``sampling='uniform'``, or ``weak_learner='tree'``.",
            )

    @property
    def needs_values(self) -> bool:
        return self.weak_learner == "similarity"

    @property
    def histogram_sums(self) -> int:
        return 0 if self.needs_values else super().histogram_sums

    def row_bytes(self, n_features: int) -> int:
        if not self.needs_values:
            return super().row_bytes(n_features)
        return 8 * n_features + SEARCH_BYTES + 8 * self.n_classes

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return largest_sums(self.n_classes) if self.needs_values else 0

    @property
    def gain(self) -> Gain | None:
        return None if self.needs_values else gains.WHOLE_TREE

    def statistic(self, round: int) -> CodeSides | None:
        return None if self.needs_values else CodeSides(self.weighting)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        before = rows.calls.total() - rows.roots_asked
        learner, separated = (self._similarity if self.needs_values else self._tree)(rows, grow)
        if learner is None:
            return Round([])
        # The update of the scores counts. A root that this round had to ask for, as the first round does, does not.
        passes = rows.calls.total() - rows.roots_asked - before + 1
        return Round([learner], SEPARATED if separated else "", {"passes": passes})

    def _tree(self, rows: Rows, grow: TreeGrower) -> tuple[Learner, bool]:
        tree, f = grow_whole_tree(grow, CodeSides(self.weighting))
        N, P = np.split(rows.histogram_scale.real(tree.sums), 2, axis=1)
        # f = +1 is right about a row's own class and wrong about the others; f = -1 is the opposite.
        positive = (f > 0)[:, None]
        s_T = np.where(positive, P, N).sum(axis=0)
        s_F = np.where(positive, N, P).sum(axis=0)
        a = best_steps(s_T, s_F)
        # The best step of a class is infinite if f is always right about it, or always wrong.
        return Learner(tree, np.outer(f, a)), not np.minimum(s_T, s_F).any()

    def _similarity(self, rows: Rows, grow: TreeGrower) -> tuple[Learner | None, bool]:
        grow.start()
        sign = self.output == "sign"
        search = SimilaritySearch(rows, self.weighting, sign, sign_steps if sign else real_steps)
        found = search(self.similarity == "two-point", self.max_candidates)
        # A round without a better similarity ends the training, unless the next one draws other rows.
        if found is None and grow.limits.subsample < 1:
            found = Similarity.constant(rows.n_features, sign), np.zeros(self.n_classes)
        if found is None:
            return None, False
        learner, a = found
        # A real-valued similarity may be right about every row and yet change the scores of distant rows very little: its step is
        # cut off, but there is more to learn.
        return Learner(learner, a[None]), sign and bool((np.abs(a) >= LARGEST_STEP).all())

    def loss_of(self, losses: Losses) -> float:
        return losses.mean / 2

    @property
    def link(self) -> NormalisedSigmoids:
        return NormalisedSigmoids()


def best_steps(s_T: np.ndarray, s_F: np.ndarray) -> np.ndarray:
    """a = 1/2 (ln s^T - ln s^F) of each class (K,), clipped to [-LARGEST_STEP, LARGEST_STEP]; 0 if both sums are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (np.log(s_T) - np.log(s_F)) / 2
    a = np.nan_to_num(a, nan=0.0, posinf=np.inf, neginf=-np.inf)
    clipped: np.ndarray = np.clip(a, -LARGEST_STEP, LARGEST_STEP)
    return clipped


def sign_steps(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps and losses (K,) of a similarity of -1 and +1, from the sums S of `Trials`."""
    # The rows that it is right about lie in the first piece, the others in the last.
    s_T, s_F = S[0, :, 0], S[-1, :, 0]
    a = best_steps(s_T, s_F)
    # Eq. 4: the loss after the step
    return a, s_T * np.exp(-a) + s_F * np.exp(a)


def real_steps(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Steps and losses (K,) of a real-valued similarity, by an exact line search for each class."""
    a, losses = np.empty(S.shape[1]), np.empty(S.shape[1])
    kernels.line_search(S, LARGEST_STEP, a, losses)
    return a, losses
