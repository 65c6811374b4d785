"""Multiclass boosting as a game (Mukherjee & Schapire, *A theory of multiclass boosting*, NIPS 2010).

| paper | here |
| --- | --- |
| k labels, m examples | K, the rows |
| f_t(i, l) | F[i, l]: weighted votes for label l; with the OS strategies, the number of votes |
| C_t, cost matrix | C[i, l], negative only for l = y_i; `Residuals` are -C up to a factor |
| 1_h | the labels that the weak learner gives: c*, the label of least cost in each leaf |
| U_gamma, edge-over-random | a learner of edge gamma gives the right label more often than each other one, by gamma |
| delta_t | the edge of the weak learner of an adaptive round, eq. 7 |
| kappa, phi | eq. 6 and the potentials of the 0-1 loss, `weights/potential.py` |

Departure: the index j in the first case of eq. 6 and 7 is read as l, a misprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from distboost.algorithms.base import (
    LARGEST_RATIO,
    LEARNING_RATE,
    SEPARATED,
    Algorithm,
    Learner,
    Round,
    Shares,
    Softmax,
    bounded_log_ratio,
    parameter,
    size,
)
from distboost.algorithms.constraints import Interval, StrOptions
from distboost.errors import DataError
from distboost.kernels import gains
from distboost.kernels.gains import Gain
from distboost.rows.messages import Losses, Rows, Step
from distboost.rows.sums import Weighting
from distboost.trees.grower import Tree, TreeGrower
from distboost.weights.margin import MarginWeights, Residuals
from distboost.weights.potential import check_computable, potentials
from distboost.weights.votes import PotentialGains, Votes


@dataclass(kw_only=True, eq=False)
class AdaBoostMM(Algorithm):
    """AdaBoost.MM and the optimal strategies of the boosting game.

    Mukherjee & Schapire, *A theory of multiclass boosting*, NIPS 2010.

    Parameters
    ----------
    strategy : {"adaptive", "fixed", "os-exponential", "os-zero-one"}, default="adaptive"
        "adaptive" is AdaBoost.MM (eq. 7): it measures each round's edge. "fixed" (eq. 6) assumes the edges that `edge` gives.
        The OS strategies play the game optimally against weak learners of one given edge: "os-exponential" for the exponential
        loss with a step `eta`, "os-zero-one" for the 0-1 loss after exactly `n_estimators` rounds.
    edge : float or sequence of float, default=0.1
        Edge over random of the weak learners, 0 < edge < 1; "fixed" also takes one for each round. Not used by "adaptive".
    alphas : float, sequence of float or None, default=None
        Steps of "fixed"; None: the best steps for the edges.
    eta : float, default=0.1
        Step of "os-exponential".
    max_depth : int or None, default=6
        The largest depth of a tree; None: no limit.
    max_leaf_nodes : int or None, default=None
        Trees grow best first up to this number of leaves; None: level by level.

    Attributes
    ----------
    edge_ : ndarray of shape (`n_iter_`,)
        The edge over random of each round's weak learner on the round's costs: delta_t of an adaptive round. The weak learner
        meets the edge-over-random condition of a strategy if this is at least `edge`.
    loss_bound_ : ndarray of shape (`n_iter_`,)
        The theory's upper bound on the loss. "adaptive": (K - 1) prod sqrt(1 - delta_t^2), or more
        where steps are shrunk or cut off. "fixed" and "os-exponential": (K - 1) prod kappa, with each round's edge and step,
        while the edges are met. "os-zero-one": the potential before the first round, which bounds the last loss.
    """

    strategy: str = parameter("adaptive", StrOptions({"adaptive", "fixed", "os-exponential", "os-zero-one"}))
    edge: Any = parameter(0.1, Interval(Real, 0, 1, closed="neither"), "array-like")
    alphas: Any = parameter(None, Interval(Real, 0, None, closed="neither"), "array-like", None)
    eta: float = parameter(0.1, Interval(Real, 0, None, closed="neither"))
    max_depth: int | None = size(6)
    max_leaf_nodes: int | None = size(None, 2)
    n_estimators: int = parameter(100, Interval(Integral, 1, None, closed="left"))
    learning_rate: float = parameter(1.0, LEARNING_RATE)

    name: ClassVar[str] = "adaboost-mm"
    gain: ClassVar[Gain] = gains.CODEWORD
    notes: ClassVar[tuple[str, ...]] = ("edge", "loss_bound")

    def __post_init__(self) -> None:
        margins = MarginWeights(self.eta if self.strategy == "os-exponential" else 1.0)
        self.weighting: Weighting = Votes() if self.strategy == "os-zero-one" else margins
        self.margins = margins
        self.bound = self.following_bound = self.n_classes - 1.0

    @property
    def fixed_parameters(self) -> tuple[str, ...]:
        # The potentials are those of a game of n_estimators rounds.
        return ("n_estimators",) if self.strategy == "os-zero-one" else ()

    def check(self) -> None:
        """Raise an error for parameters that void a strategy's guarantee, and for games too large to compute."""
        if self.strategy != "adaptive" and self.learning_rate != 1.0:
            raise DataError(
                f"``learning_rate`` is {self.learning_rate}, but ``strategy={self.strategy!r}`` has fixed votes.",
                value=self.strategy,
                remedy="Set it to 1, or use ``strategy='adaptive'``.",
            )
        for name in ("edge", "alphas"):
            value = getattr(self, name)
            if np.ndim(value) and self.strategy != "fixed":
                raise DataError(
                    f"``{name}`` has {len(value)} numbers, but ``strategy={self.strategy!r}`` takes one.",
                    value=self.strategy,
                    remedy="Pass one number, or use ``strategy='fixed'``.",
                )
            if np.ndim(value) and len(value) < self.n_estimators:
                raise DataError(
                    f"``{name}`` has {len(value)} numbers for ``n_estimators={self.n_estimators}`` rounds.",
                    remedy="Pass one per round.",
                )
        if not _lie_between(self.edge, 1.0):
            raise DataError.expected("``edge``", self.edge, remedy="Set numbers above 0 and below 1.")
        if self.alphas is not None and not _lie_between(self.alphas, np.inf):
            raise DataError.expected("``alphas``", self.alphas, remedy="Set finite numbers above 0.")
        if self.strategy == "os-zero-one":
            check_computable(self.n_classes, self.n_estimators, self.edge)

    def statistic(self, round: int) -> Residuals | PotentialGains:
        """The gains C[i, y_i] - C[i, l], divided by a constant of the round."""
        if self.strategy == "os-zero-one":
            # C[i, l] = phi_{T - t - 1}(F_i + e_l), after t rounds
            return PotentialGains(self.edge, self.n_estimators - (round - 1))
        if self.strategy == "adaptive":
            # Eq. 7: C[i, l] = e[i, l], C[i, y_i] = -sum_k e[i, k]
            return Residuals(self.margins, wide=True)
        # Eq. 6: C[i, l] = (e^α - 1) e[i, l], C[i, y_i] = (e^-α - 1) sum_k e[i, k]. Divided by e^α - 1, the cost of the own label
        # is -e^-α sum_k e[i, k].
        return Residuals(self.margins, own=float(np.exp(-self._of_round(round)[1])), wide=True)

    def typical_statistic(self) -> Residuals | PotentialGains:
        # A vector of K wide numbers, whatever the costs; `edge` and `alphas` are not checked yet.
        return Residuals(self.margins, wide=True)

    def _of_round(self, round: int) -> tuple[float, float]:
        """The edge that "fixed" or "os-exponential" assumes in a round, and its step."""
        if self.strategy == "os-exponential":
            return self.edge, self.eta
        γ = _at(self.edge, round - 1)
        return γ, best_step(γ, self.n_classes) if self.alphas is None else _at(self.alphas, round - 1)

    def learn(self, rows: Rows, grow: TreeGrower) -> Round:
        tree = grow(self.statistic(rows.round), self.gain)
        if self.strategy == "adaptive":
            return self._adaptive(rows, tree)
        if self.strategy == "os-zero-one":
            return self._zero_one(rows, tree)
        γ, α = self._of_round(rows.round)
        return self._fixed(rows, tree, γ, α, vote=1.0 if self.strategy == "os-exponential" else α)

    def _adaptive(self, rows: Rows, tree: Tree) -> Round:
        c, won = _labels(tree.sums)
        total = _total(rows)
        # Eq. 7: δ_t = -C . 1_h / sum_i sum_k e[i, k], the edge
        δ = won / total
        # α_t = 1/2 ln((1 + δ_t) / (1 - δ_t))
        α = bounded_log_ratio(total + won, total - won, LARGEST_RATIO) / 2
        # A step a multiplies weights by e^-a if the label is right, by at most e^a if not. If a is α_t, neither shrunk nor
        # cut off, the bound's factor is sqrt(1 - δ_t^2).
        a = self.learning_rate * α
        notes = self._noted(δ, ((1 + δ) * np.exp(-a) + (1 - δ) * np.exp(a)) / 2)
        # `won` and `total` are integers: if they are equal, no label is wrong.
        outcome = SEPARATED if won == total else ""
        return Round([Learner(tree, _votes(c, α, self.n_classes))], outcome, notes)

    def _fixed(self, rows: Rows, tree: Tree, γ: float, α: float, vote: float) -> Round:
        own = float(np.exp(-α))
        c, won = _labels(tree.sums)
        total = _total(rows)
        # The edge for any costs C: (average - C . 1_h) / (average - C . 1_correct), where average = sum_i mean_l C[i, l].
        average = (1 - own) * total / self.n_classes
        δ = (average + won) / (average + own * total)
        notes = self._noted(δ, kappa(γ, α, self.n_classes))
        return Round([Learner(tree, _votes(c, vote, self.n_classes))], notes=notes)

    def _zero_one(self, rows: Rows, tree: Tree) -> Round:
        S = rows.histogram_scale.real(tree.sums)
        c = np.argmax(S, axis=1)
        lost, available = -S[np.arange(len(c)), c].sum(), -S.sum() / self.n_classes
        # The same edge, with costs relative to the cost of the right label.
        δ = (available - lost) / available if available > 0 else 1.0
        if rows.round == 1:
            # phi_T(0), the potential before the first round
            start = np.zeros((1, self.n_classes), int)
            self.bound = potentials(self.n_classes, self.edge, self.n_estimators, start)[0]
        return Round([Learner(tree, _votes(c, 1.0, self.n_classes))], notes=self._noted(δ, 1.0))

    def _noted(self, edge: float, factor: float) -> dict[str, float]:
        """The round's notes; its bound is the last one times `factor`."""
        self.following_bound = float(self.bound) * float(factor)
        return {"edge": float(edge), "loss_bound": self.following_bound}

    def smoothed(self, found: Round) -> Round:
        smaller = super().smoothed(found)
        # Eq. 7 with δ_t = 1: the bound's factor is e^-a. The vote a is the largest value of any leaf.
        a = self.learning_rate * smaller.learners[0].values.max()
        return smaller._replace(notes=self._noted(found.notes["edge"], float(np.exp(-a))))

    def on_steps(self, steps: Sequence[Step]) -> None:
        self.bound = self.following_bound

    def restore_notes(self, notes: Mapping[str, Sequence[float]]) -> None:
        if len(notes["loss_bound"]):
            self.bound = self.following_bound = notes["loss_bound"][-1]

    def loss_of(self, losses: Losses) -> float:
        return losses.mean

    @property
    def objective(self) -> str:
        return "potential of the 0-1 loss" if self.strategy == "os-zero-one" else "exponential loss"

    @property
    def link(self) -> Softmax | Shares:
        return Softmax(1 / 2) if self.strategy in ("adaptive", "fixed") else Shares()


def kappa(γ: float, η: float, K: int) -> float:
    """Eq. 6: the factor by which a round with edge γ and step η lowers the bound of the exponential loss."""
    return float(1 + (1 - γ) / K * (np.exp(η) + np.exp(-η) - 2) - (1 - np.exp(-η)) * γ)


def best_step(γ: float, K: int) -> float:
    """1/2 ln(1 + K γ / (1 - γ)), the step η that minimises kappa."""
    return float(np.log1p(K * γ / (1 - γ)) / 2)


def _lie_between(values: Any, limit: float) -> bool:
    """Whether this is a number above 0 and below the limit, or a sequence of such numbers."""
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return False
    return found.ndim < 2 and bool(np.all((found > 0) & (found < limit)))


def _at(values: Any, t: int) -> float:
    """Element t of a sequence, or the number that holds for all rounds."""
    return float(values[t]) if np.ndim(values) else float(values)


def _labels(S: np.ndarray) -> tuple[np.ndarray, int]:
    """c* = argmax_l S[l] of each leaf (n_leaves,), and the gain of these labels, -C . 1_h."""
    # As float64, sums that differ only in the last of their 61 bits are ties.
    c = np.argmax(S.astype(np.float64), axis=1)
    return c, int(S[np.arange(len(c)), c].sum())


def _total(rows: Rows) -> int:
    """sum_i sum_k e[i, k] in the histograms' units; at least 1, because all rows of a sample may be too light to count."""
    return max(int(rows.totals[0]), 1)


def _votes(c: np.ndarray, vote: float, K: int) -> np.ndarray:
    """`vote` for the label of each leaf, 0 for the others: (n_leaves, K)."""
    values: np.ndarray = vote * np.eye(K)[c]
    return values
