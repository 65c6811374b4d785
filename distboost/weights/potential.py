"""Potentials of the OS strategy for the 0-1 loss: limits on the size of a game, and a cache of the potentials.

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
    """Raise LimitError unless the potentials of a game can be computed.

    Parameters
    ----------
    K : int
        Number of classes.
    n_rounds : int
        Rounds of the game, T.
    gamma : float
        The edge over random that every weak learner must have.
    """
    if not 0.0 <= gamma < 1.0:
        raise LimitError(
            f"edge is {gamma!r}: the potentials of ``strategy='os-zero-one'`` need 0 <= edge < 1.",
            remedy="Set an edge over random that the weak learner can keep up, such as 0.1.",
            where="edge",
            value=gamma,
        )
    if K * n_rounds**3 > MAX_WORK:
        most = max(T for T in range(1001) if K * T**3 <= MAX_WORK)
        raise LimitError(
            f"``n_estimators`` is {n_rounds} with {K} classes: the potentials of ``strategy='os-zero-one'`` are computed for "
            f"at most {most} rounds there (classes * rounds^3 <= {MAX_WORK:.0e}).",
            value=n_rounds,
            remedy="Use fewer rounds, or ``strategy='os-exponential'``.",
        )


class RandomVotes:
    """The weights of vote counts, which all states with t votes to come share.

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
        """phi_t (m,) of canonical gaps (m, K - 1)."""
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
        Votes to come. With 0, the potential is the 0-1 loss itself, where a tie is an error.
    states : ndarray of shape (m, K), int
        Votes so far: for the own class in column 0, for the other classes, in any order, in the other columns.

    Returns
    -------
    phi : ndarray of shape (m,), float64
    """
    return RandomVotes(K, gamma, rounds_left).potentials(canonical(gaps_of(states), rounds_left))


def gaps_of(states: np.ndarray) -> np.ndarray:
    """Gaps (m, K - 1): s_y - s_l of all other classes l, where s_y is column 0 of states (m, K)."""
    gaps: np.ndarray = states[:, :1] - states[:, 1:]
    return gaps


def canonical(gaps: np.ndarray, t: int) -> np.ndarray:
    """Sorted gaps, the same for all rows whose potentials are equal: with t votes to come, -t is lost and t + 1 is safe."""
    gaps = np.sort(np.clip(gaps, -t, t + 1).astype(np.int16), axis=1)
    gaps[gaps[:, 0] <= -t] = -t
    return gaps


def unique_rows(gaps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of an int16 matrix, and the index among them of each row."""
    # Rows are compared as strings of bytes, several times as fast as number by number, as np.unique(axis=0) does.
    keys = np.ascontiguousarray(gaps).view(f"V{2 * gaps.shape[1]}").ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return gaps[first], inverse


class PotentialTable:
    """The potentials of a game. Each state's is computed once, while the number of rounds left stays the same.

    Not thread-safe.

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
        """phi (m,) of states (m, K): see `potentials`."""
        return self.values_of_gaps(rounds_left, gaps_of(states))

    def values_of_gaps(self, rounds_left: int, gaps: np.ndarray) -> np.ndarray:
        """phi (m,) of gaps (m, K - 1), in any order: the votes by which the own class leads each rival."""
        if self._votes is None or self._votes.t != rounds_left:
            # A game moves forward only: potentials of earlier rounds are not needed again.
            self._votes, self._known = RandomVotes(self.K, self.gamma, rounds_left), {}
        states, inverse = unique_rows(canonical(gaps, rounds_left))
        keys = [state.tobytes() for state in states]
        new = [m for m, key in enumerate(keys) if key not in self._known]
        phi = self._votes.potentials(states[new])
        self._known.update(zip([keys[m] for m in new], phi.tolist(), strict=True))
        known: np.ndarray = np.array([self._known[key] for key in keys])[inverse]
        return known


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
    np.put_along_axis(gaps, y, t + 2, axis=1)  # sorts the own class last
    order = np.argsort(gaps, axis=1)  # the order of equal gaps does not matter
    states, inverse = unique_rows(np.take_along_axis(gaps, order, axis=1)[:, :-1])
    phi = np.empty((len(states), K))
    for k in range(K - 1):  # a vote for the k-th nearest rival
        phi[:, k] = table.values_of_gaps(t - 1, states - (np.arange(K - 1) == k))
    phi[:, -1] = table.values_of_gaps(t - 1, states + 1)  # a vote for the own class
    C = np.empty(scores.shape)
    np.put_along_axis(C, order, phi[inverse], axis=1)
    return C
