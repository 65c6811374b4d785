"""Losses and stumps of boosting with direct multiclass margins, stage-wise (`stagewise.py`) or totally corrective (MultiBoost).

| paper | here |
| --- | --- |
| k classes, m rows | K, the rows |
| rho[i, r], eq. 2 | F[i, y_i] - F[i, r]; E[i, r] = exp(-rho[i, r]), r = y_i included |
| U, eq. 11, 12 | u[i, r] = E / sum E (exponential), E / (1 + E) (logistic) |
| sum_i U (delta - 1) h, eq. 10 | sum_i h(x_i) V[i, r], where V[i, r] = 1[r = y_i] sum_l u[i, l] - u[i, r] |

The equations are those of Paisitkriangkrai, Shen & van den Hengel, *A scalable stage-wise approach*. Departure: the "u" of eq. 14
is read as E.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import ClassVar, NamedTuple

import numpy as np

from distboost.algorithms.base import Algorithm, Softmax, parameter, signs
from distboost.algorithms.constraints import Interval, StrOptions
from distboost.algorithms.tables import side_table, table_size
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import EXPONENTIAL, LOGISTIC, ClassPairs, MarginWeights, Residuals

# A slope this small is rounding.
ε = 1e-12


class SignedTree(NamedTuple):
    """A tree whose leaves are -1 or +1.

    Attributes
    ----------
    tree : Tree
    h : ndarray of shape (n_leaves,), float64
        The leaves' signs.
    T : ndarray of shape (2, K, K), float64
        T[h, y, r]: the sum of E[i, r] (exponential loss) or u[i, r] (logistic loss) over the rows of class y != r on side h:
        -1, then +1.
    """

    tree: Tree
    h: np.ndarray
    T: np.ndarray

    def slopes(self) -> np.ndarray:
        """sum_i V[i, r] h(x_i) for each class r, (K,)."""
        S = self.T.sum(axis=2) - self.T.sum(axis=1)
        slopes: np.ndarray = S[1] - S[0]
        return slopes


@dataclass(kw_only=True, eq=False)
class LargeMargin(Algorithm):
    """The two losses, and the stump of steepest descent.

    Parameters
    ----------
    loss : {"exponential", "logistic"}, default="exponential"
        The loss that training lowers.
    nu : float, default=1e-9
        Weight of the l1 norm of the coefficients.
    nu_unit : {"sum", "mean"}, default="sum"
        Whether the logistic loss beside `nu` is the sum over the rows, as in the paper, or their mean. Beside a sum, the same
        `nu` means less the more rows there are. The exponential loss is a logarithm, beside which `nu` has one meaning.
    """

    loss: str = parameter("exponential", StrOptions({"exponential", "logistic"}))
    nu: float = parameter(1e-9, Interval(Real, 0, None, closed="left"))
    nu_unit: str = parameter("sum", StrOptions({"sum", "mean"}), is_new=True)

    gain: ClassVar[Gain] = gains.CLASS_STUMP
    weighting: MarginWeights = field(init=False)

    def __post_init__(self) -> None:
        self.weighting = MarginWeights(1.0, EXPONENTIAL if self.loss == "exponential" else LOGISTIC)

    def statistic(self, round: int) -> Residuals:
        return Residuals(self.weighting, wide=True)

    def reduction_size(self, n_leaves: int, n_rounds: int) -> int:
        return table_size(n_leaves, self.n_classes)

    def steepest_stump(self, rows: Rows, grow: TreeGrower) -> SignedTree:
        """Eq. 10: the stump of steepest descent, over all classes r. It has one leaf if no split lowers the loss."""
        tree = grow(self.statistic(rows.round), self.gain, max_depth=1, sums=False)
        if tree.n_leaves == 1:
            return SignedTree(tree, np.ones(1), np.zeros((2, self.n_classes, self.n_classes)))
        return SignedTree(tree, *side_table(rows, tree, self.weighting, _rising))

    def penalty(self, tree: Tree) -> float:
        """ν, beside a loss that is a sum over the rows of the tree."""
        return self.nu * tree.weight if (self.loss, self.nu_unit) == ("logistic", "mean") else self.nu

    def slope(self, rows: Rows, found: SignedTree) -> float:
        """How fast the loss falls along the weak learner: the largest of its slopes, normalised as in eq. 11 or 12."""
        largest = float(found.slopes().max())
        if self.loss == "logistic":
            return largest * float(np.exp(rows.shift_of(ClassPairs(self.weighting))))
        # NumPy divides by 0 where all weights have become 0: the slope is then no number, and passes any threshold.
        return float(largest / (found.T.sum() + self.own_terms(rows, found)))

    def own_terms(self, rows: Rows, found: SignedTree) -> float:
        """The sum of the terms r = y_i of the exponential loss, each of which is 1, in the unit of T."""
        return found.tree.weight * float(np.exp(-rows.shift_of(ClassPairs(self.weighting))))

    def loss_of(self, losses: Losses) -> float:
        log_n, log_total = np.log(losses.n), losses.log_weights[0]
        if self.loss == "exponential":
            # log sum_{i,r} E[i, r], where the terms r = y_i are 1
            return float(np.logaddexp(log_n, log_total))
        # sum_{i,r} log(1 + E[i, r]), where the terms r = y_i are log 2
        return float(losses.n * np.log(2) + np.exp(log_total))

    @property
    def objective(self) -> str:
        return "logarithm of the exponential loss" if self.loss == "exponential" else "sum of logistic losses"

    @property
    def link(self) -> Softmax:
        return Softmax(1 / 2 if self.loss == "exponential" else 1.0)


def _rising(S: np.ndarray) -> np.ndarray:
    """The signs of a stump's two sides for which the slope of largest size is positive; S (2, K) holds the sides' residuals."""
    D = S[1] - S[0]
    h: np.ndarray = np.array([-1.0, 1.0]) * signs(D[np.argmax(np.abs(D))])
    return h
