"""Potentials of the OS strategy for the 0-1 loss (Mukherjee & Schapire 2010, theorem 5).

phi_t(s) is the probability that a row with s[k] votes for class k is misclassified after t more votes. Each vote is drawn at
random: for the row's own class y with probability b_1 = (1 - gamma)/K + gamma, for each other class (a rival) with probability
b = (1 - gamma)/K. A tie is an error. With j for the number of votes for y,

    phi_t(s) = 1 - sum_j Binom(t, j) b_1^j b^(t-j) (t-j)! [x^(t-j)] prod_{l != y} sum_{m < j + g_l} x^m/m!,   g_l = s_y - s_l.

The sum is the probability that no rival l gets the j + g_l votes that it needs to draw level with y. The kernels add up the
probability of the opposite, phi_t itself: all of its terms are positive, so that a small potential keeps its digits. The
potential depends on the gaps g_l, but not on their order. The kernels take them in ascending order, the nearest rival first.
"""

from distboost.kernels._jit import inlined, kernel
from distboost.kernels.memory import floats

# A term smaller than this fraction of a sum does not change the sum.
NEGLIGIBLE = 2.0**-60


@kernel
def poisson_weights(rate, out):
    """Set out[m] to rate^m / m!, normalised to sum 1. The largest term comes first, so that no factorial overflows."""
    # IN: 0 <= rate <= t
    # OUT: out (t + 1,) float64
    mode = int(rate)
    out[mode] = 1.0
    for m in range(mode, out.shape[0] - 1):
        out[m + 1] = out[m] * rate / (m + 1)
    for m in range(mode, 0, -1):
        out[m - 1] = out[m] * m / rate
    out /= out.sum()


@kernel
def level_weights(one, level):
    """Set level[c - 1, a, n] to the sum of one[m_1] ... one[m_c] over all m_1 + ... + m_c = n with m_1 >= a.

    This is the weight of all ways to give n votes to c rivals such that the first rival, which needs a votes, draws level.
    """
    # IN: one (t + 1,) float64, the weight of m votes for one rival
    # OUT: level (K - 1, t + 2, t + 1) float64, zero on entry
    t = one.shape[0] - 1
    others = floats(t + 1)  # others[n]: the weight of n votes for the c - 1 others
    others[0] = 1.0
    for c in range(level.shape[0]):
        for a in range(t, -1, -1):
            for n in range(t + 1):
                level[c, a, n] = level[c, a + 1, n]
                if n >= a:
                    level[c, a, n] += one[a] * others[n - a]
        others = level[c, 0]


@inlined
def multiply(ok, n_ok, one, n_one, size, out):
    """Set out[:size] to the first coefficients of the product of the polynomials ok[:n_ok] and one[:n_one]."""
    # IN: ok, one (t + 1,) float64: coefficients in ascending order of degree
    # OUT: out (t + 1,) float64
    for n in range(size):
        out[n] = 0.0
    for m in range(n_one):
        factor = one[m]
        for n in range(min(n_ok, size - m)):
            out[n + m] += factor * ok[n]


@kernel
def lost_weight(gaps, j, one, level, ok, spare):
    """Return the weight of all ways to give t - j votes to the rivals such that at least one draws level; the class y gets j."""
    # IN: gaps (K - 1,) int16, ascending, in votes; one (t + 1,) float64; level (K - 1, t + 2, t + 1) float64;
    #     ok, spare (t + 1,) float64: working memory
    n_rivals, r = gaps.shape[0], one.shape[0] - 1 - j
    # ok[n]: the weight of n votes for the rivals visited so far, if none of them draws level
    ok[0], n_ok = 1.0, 1
    lost = 0.0
    # Visit the nearest rival first.
    for k in range(n_rivals):
        a = max(gaps[k] + j, 0)
        # Neither this rival nor those behind it can draw level.
        if a > r:
            break
        # Rival k is the first that draws level; the votes for the rivals behind it are arbitrary.
        for n in range(n_ok):
            lost += ok[n] * level[n_rivals - 1 - k, a, r - n]
        if a == 0 or k == n_rivals - 1:
            break
        # prod_l sum_{m < j + g_l} x^m/m!, up to x^(t-j)
        size = min(n_ok + a - 1, r + 1)
        multiply(ok, n_ok, one, a, size, spare)
        ok, spare, n_ok = spare, ok, size
    return lost


@kernel
def error_probabilities(gaps, own, one, level, out):
    """Set out[i] to phi_t of a row whose own class is gaps[i] votes ahead of its rivals."""
    # IN: gaps (m, K - 1) int16, each row ascending; own, one (t + 1,) float64: the weight of each number of votes for the own
    #     class and for one rival; level (K - 1, t + 2, t + 1) float64, from `level_weights`
    # OUT: out (m,) float64: probabilities
    t = own.shape[0] - 1
    free = level[gaps.shape[1] - 1, 0]  # free[n]: the weight of n votes for the rivals, in any way
    ok, spare = floats(t + 1), floats(t + 1)
    above = floats(t + 2)  # above[j]: the weight of all outcomes with at least j own votes
    for j in range(t, -1, -1):
        above[j] = above[j + 1] + own[j] * free[t - j]
    for i in range(gaps.shape[0]):
        if gaps[i, 0] <= -t:
            out[i] = 1.0
            continue
        total = 0.0
        for j in range(t + 1):
            # Not even the nearest rival can draw level.
            if gaps[i, 0] + j > t - j:
                break
            lost = lost_weight(gaps[i], j, one, level, ok, spare)
            total += own[j] * lost
            # With more own votes an error is even less likely: P(error | more than j) <= lost / free.
            if lost * above[j + 1] < NEGLIGIBLE * total * free[t - j]:
                break
        # above[0] is the weight of all outcomes. Dividing by it normalises, and cancels most of the rounding of `own` and `one`.
        out[i] = min(total / above[0], 1.0)
