"""JointBoost (Torralba, Murphy & Freeman, *Sharing visual features for multiclass and multiview object detection*, 2007).

| paper | here |
| --- | --- |
| z_i^c, w_i^c | +1 for the row's class, -1 for the others; exp(-z F) (`OneAgainstAll`) |
| S(n) | `shared`: the classes that share the stump of the round |
| a_S, b_S | (P - N) / (P + N) on the two sides of the stump, of sums over the classes in S |
| k_S^c | (P - N) / (P + N) over all rows, for a class c outside S |
| J_wse | the weighted squared error: the sum of all weights less the values of `SHARED_STUMP` |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from distboost.algorithms.base import Algorithm, Learner, NormalisedSigmoids, Round
from distboost.kernels import gains
from distboost.kernels.gains import NOISE, Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import ROOT, TreeGrower
from distboost.weights.codes import CodeSides, CodeWeights, OneAgainstAll


@dataclass(kw_only=True, eq=False)
class JointBoost(Algorithm):
    """JointBoost: Gentle AdaBoost for each class, with one stump per round that a subset of the classes shares.

    Torralba, Murphy & Freeman, *Sharing visual features for multiclass and multiview object detection*, IEEE Transactions on
    Pattern Analysis and Machine Intelligence, 2007. Each other class gets a constant. As in the paper, the search for the subset
    is greedy: it grows by the class that, with the best stump for all in it, lowers the error most. The best of the K subsets
    that it had is taken.

    Attributes
    ----------
    sharing_ : ndarray of shape (`n_iter_`,)
        How many classes share the stump of each round.
    """

    name: ClassVar[str] = "jointboost"
    bounded: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = ("sharing",)
    gain: ClassVar[Gain] = gains.SHARED_STUMP
    weighting: CodeWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = OneAgainstAll(self.n_classes)

    def statistic(self, round: int) -> CodeSides:
        return CodeSides(self.weighting)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        grow.begin(self.statistic(rows.round), self.gain, max_depth=1, search=False)
        shared = self._share(rows, grow)
        if shared.any():
            grow.split(ROOT, last=True)
        else:
            rows.forget(ROOT.tolist())
        tree = grow.finished()
        d, w = _labels_and_weights(tree.sums)
        # k_S^c of each class, then a_S and b_S of those that share the stump
        h = np.tile(_ratio(d.sum(axis=0), w.sum(axis=0)), (tree.n_leaves, 1))
        h[:, shared] = _ratio(d[:, shared].sum(axis=1), w[:, shared].sum(axis=1))[:, None]
        return Round([Learner(tree, h)], notes={"sharing": float(shared.sum())})

    def _share(self, rows: Rows, grow: TreeGrower) -> np.ndarray:
        """Note the best stump of K nested subsets of classes; return which classes share it, (K,) bool.

        None do, if it lowers the error no more than a constant for each class.
        """
        nodes, n = grow.nodes, grow.n_sums
        d, w = _labels_and_weights(nodes.sums[:1, :n])
        alone = _saved(d, w)[0]
        shared = best = np.zeros(self.n_classes, bool)
        least = alone.sum() * (1 + NOISE)
        while not shared.all():
            found = rows.best_split(0, np.array([shared, alone]))
            if not found.gain[0] > 0:
                break
            left = found.left[:, :n]
            sides = _labels_and_weights(np.concatenate([left, nodes.sums[:1, :n] - left]))
            shared = shared | _best_further(shared, alone, *sides)
            if found.value[0] > least:
                least, best = found.value[0], shared
                nodes.note(ROOT, found._replace(gain=found.value - alone.sum()))
        return best

    def loss_of(self, losses: Losses) -> float:
        return losses.mean / self.n_classes

    @property
    def link(self) -> NormalisedSigmoids:
        return NormalisedSigmoids()


def _labels_and_weights(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of w z and of w, (n, K) each, from the sums (N, P), (n, 2 K)."""
    N, P = np.split(sums.astype(np.float64), 2, axis=1)
    return P - N, P + N


def _ratio(d: np.ndarray, w: np.ndarray) -> np.ndarray:
    """d / w, or 0 without rows."""
    ratio: np.ndarray = np.divide(d, w, out=np.zeros(d.shape), where=w > 0)
    return ratio


def _saved(d: np.ndarray, w: np.ndarray) -> np.ndarray:
    """By how much the best constant lowers the squared error: d^2 / w, or 0 without rows."""
    less: np.ndarray = d * _ratio(d, w)
    return less


def _best_further(shared: np.ndarray, alone: np.ndarray, d: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Which class, (K,) bool, should join those that share a stump with the sums d and w, (2, K), on its sides."""
    d_S, w_S = (x[:, shared].sum(axis=1, keepdims=True) for x in (d, w))
    joint = _saved(d_S + d, w_S + w).sum(axis=0) - alone
    joined: np.ndarray = np.arange(len(shared)) == np.where(shared, -np.inf, joint).argmax()
    return joined
