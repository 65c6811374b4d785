"""Potentials of the OS strategy for the 0-1 loss: which games can be computed, and each state's potential computed once.

`kernels/potential.py` states the formula. A state is the gaps between a row's own class and its rivals, in votes.
"""

from __future__ import annotations

import numpy as np

from distboost.errors import LimitError
from distboost.kernels.potential import error_probabilities, level_weights, poisson_weights

# K T^3 bounds the work for one state in the first round; all states share 8 K T^2 bytes. At this limit (T = 793 for K = 2, 337
# for 26, 100 for 1000) a state takes up to 40 ms, 13 ms with an edge of 0.1, and the shared part up to 85 MB for at most 1000
# classes. Rows share states, but a round may have thousands of distinct ones: far beyond this limit a round takes minutes.
# The potentials are accurate to 1e-14 throughout.
MAX_WORK = 10**9


def check_computable(K: int, n_rounds: int, gamma: float) -> None:
    """Raises LimitError unless the potentials of a game can be computed.

    Parameters
    ----------
    K : int
        Number of classes.
    n_rounds : int
        Rounds of the game, T.
    gamma : float
        The edge over random that every weak learner is to have.
    """
    if not 0.0 <= gamma < 1.0:
        raise LimitError(
            f"edge is {gamma!r}: the potentials of strategy='os-zero-one' need 0 <= edge < 1. Give an edge over random "
            "that the weak learner can keep up, such as 0.1."
        )
    if K * n_rounds**3 > MAX_WORK:
        most = max(T for T in range(1001) if K * T**3 <= MAX_WORK)
        raise LimitError(
            f"n_estimators is {n_rounds} with {K} classes: the potentials of strategy='os-zero-one' are computed for at most "
            f"{most} rounds there (classes * rounds^3 <= {MAX_WORK:.0e}). Use fewer rounds, or strategy='os-exponential'."
        )


class RandomVotes:
    """What all states with t votes to come have in common: the weights of the numbers of votes.

    Given their sum t, independent Poisson numbers of rates b_1 t and b t are multinomial with probabilities b_1 and b.
    """

    def __init__(self, K: int, gamma: float, t: int):
        b = (1.0 - gamma) / K
        self.t = t
        self.own, self.one = np.empty(t + 1), np.empty(t + 1)
        self.level = np.zeros((K - 1, t + 2, t + 1))
        poisson_weights((b + gamma) * t, self.own)
        poisson_weights(b * t, self.one)
        level_weights(self.one, self.level)

    def potentials(self, gaps: np.ndarray) -> np.ndarray:
        """phi_t of rows of gaps in their canonical form."""
        out = np.empty(len(gaps))
        error_probabilities(gaps, self.own, self.one, self.level, out)
        return out


def potentials(K: int, gamma: float, rounds_left: int, states: np.ndarray) -> np.ndarray:
    """The probability phi_t(s) that a state s ends as an error after t = `rounds_left` more votes.

    Parameters
    ----------
    K : int
        Number of classes, at least 2.
    gamma : float
        Edge over random of the votes to come, 0 <= gamma < 1.
    rounds_left : int
        Votes to come; with 0 the potential is the 0-1 loss itself, a tie counting as an error.
    states : ndarray of shape (m, K), int
        Votes so far: for the own class in column 0, for the others, in any order, in the columns behind.

    Returns
    -------
    phi : ndarray of shape (m,), float64
    """
    return RandomVotes(K, gamma, rounds_left).potentials(canonical(gaps_of(states), rounds_left))


def gaps_of(states: np.ndarray) -> np.ndarray:
    """s_y - s_l of all other classes l, where s_y is column 0."""
    return states[:, :1] - states[:, 1:]


def canonical(gaps: np.ndarray, t: int) -> np.ndarray:
    """One row of sorted gaps for all that t more votes cannot tell apart: -t is lost for certain, t + 1 is safe."""
    gaps = np.sort(np.clip(gaps, -t, t + 1).astype(np.int16), axis=1)
    gaps[gaps[:, 0] <= -t] = -t
    return gaps


def unique_rows(gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of an int16 matrix, and for each row its place among them."""
    # Rows compared as strings of bytes: several times as fast as np.unique(axis=0), which compares them number by number.
    keys = np.ascontiguousarray(gaps).view(f"V{2 * gaps.shape[1]}").ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return gaps[first], inverse


class PotentialTable:
    """The potentials of a game, each state's computed once while the same number of rounds is left.

    Not for several threads at a time.

    Parameters
    ----------
    K : int
        Number of classes.
    gamma : float
        Edge over random of the votes to come.
    """

    def __init__(self, K: int, gamma: float):
        self.K, self.gamma = K, gamma
        self._votes: RandomVotes | None = None
        self._known: dict[bytes, float] = {}

    def values(self, rounds_left: int, states: np.ndarray) -> np.ndarray:
        """phi of states (m, K), as `potentials` gives it."""
        return self.values_of_gaps(rounds_left, gaps_of(states))

    def values_of_gaps(self, rounds_left: int, gaps: np.ndarray) -> np.ndarray:
        """phi of rows by what their own class is ahead of each other: gaps (m, K - 1), in any order."""
        if self._votes is None or self._votes.t != rounds_left:
            # A game goes on: what was computed for earlier rounds is not asked for again.
            self._votes, self._known = RandomVotes(self.K, self.gamma, rounds_left), {}
        states, inverse = unique_rows(canonical(gaps, rounds_left))
        keys = [state.tobytes() for state in states]
        new = [m for m, key in enumerate(keys) if key not in self._known]
        phi = self._votes.potentials(states[new])
        self._known.update(zip([keys[m] for m in new], phi.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])[inverse]


def zero_one_costs(
    scores: np.ndarray, labels: np.ndarray, rounds_left: int, table: PotentialTable
) -> np.ndarray:
    """Costs of the OS strategy: C[i, l] = phi_{t-1}(F_i + e_l), with t rounds left.

    Parameters
    ----------
    scores : ndarray of shape (n, K)
        F, whole numbers of votes.
    labels : ndarray of shape (n,), int
        The rows' classes y_i.
    rounds_left : int
        Rounds still to play, the present one included: t >= 1.
    table : PotentialTable
        The potentials of the game.

    Returns
    -------
    C : ndarray of shape (n, K), float64
    """
    K, t = scores.shape[1], rounds_left
    y = labels[:, np.newaxis]
    gaps = np.clip(np.take_along_axis(scores, y, axis=1) - scores, -t, t + 1).astype(np.int16)
    np.put_along_axis(gaps, y, t + 2, axis=1)  # the own class goes behind all others
    order = np.argsort(gaps, axis=1)  # equal gaps in any order: their potentials are equal too
    states, inverse = unique_rows(np.take_along_axis(gaps, order, axis=1)[:, :-1])
    phi = np.empty((len(states), K))
    for k in range(K - 1):  # a vote for the k-th nearest rival
        phi[:, k] = table.values_of_gaps(t - 1, states - (np.arange(K - 1) == k))
    phi[:, -1] = table.values_of_gaps(t - 1, states + 1)  # a vote for the own class
    C = np.empty(scores.shape)
    np.put_along_axis(C, order, phi[inverse], axis=1)
    return C
