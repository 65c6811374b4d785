"""Every split of a node, by the formulas of the gains: what the search must find."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from distboost.kernels import gains
from distboost.rows.messages import BestSplits
from distboost.splits.tree_histograms import Histograms


class Split(NamedTuple):
    gain: float
    value: float
    feature: int
    bin: int
    missing_left: bool
    n_left: int
    n_right: int


def codeword(S):
    return float(max(S))


def direction(S):
    total = 0.0
    for x in S:
        total += float(x) * float(x)
    return math.sqrt(total)


def least_squares(L, R):
    """W_L W_R / (W_L + W_R) |c_L - c_R|^2."""
    W_L, W_R = 0.0, 0.0
    for a, b in zip(L, R, strict=True):
        W_L, W_R = W_L + float(a), W_R + float(b)
    if W_L == 0.0 or W_R == 0.0:
        return 0.0
    distance = 0.0
    for a, b in zip(L, R, strict=True):
        d = float(a) / W_L - float(b) / W_R
        distance += d * d
    return W_L / (W_L + W_R) * W_R * distance


def on_grid(x):
    """The nearest multiple of the grid, halves to even ones."""
    return round(x / gains.GRID) * gains.GRID


def class_stump(L, R):
    return max(abs(float(r) - float(x)) for x, r in zip(L, R, strict=True))


def direction_stump(L, R):
    total = 0.0
    for x, r in zip(L, R, strict=True):
        total += (float(r) - float(x)) * (float(r) - float(x))
    return math.sqrt(total)


def sides(S):
    """(N, P) of each class."""
    return [(float(a), float(b)) for a, b in zip(S[: len(S) // 2], S[len(S) // 2 :], strict=True)]


def votes(S):
    total = 0.0
    for against, own in sides(S):
        total += abs(own - against)
    return total


def votes_stump(L, R):
    total = 0.0
    for (N_L, P_L), (N_R, P_R) in zip(sides(L), sides(R), strict=True):
        total += abs((P_R - N_R) - (P_L - N_L))
    return total


def label_votes(S):
    return max(own - against for against, own in sides(S))


def real_votes(S):
    total = 0.0
    for against, own in sides(S):
        total += math.sqrt(own * against)
    return -2.0 * total


def whole_tree(L, R, context):
    """The better of the two ways to sign the children, beside leaves that are right and wrong about the context's sums."""
    rising, falling = 0.0, 0.0
    for right, wrong, (N_L, P_L), (N_R, P_R) in zip(*context[:, :-1], sides(L), sides(R), strict=True):
        rising += math.sqrt((right + N_L + P_R) * (wrong + P_L + N_R))  # - on the left
        falling += math.sqrt((right + P_L + N_R) * (wrong + N_L + P_R))
    return -2.0 * min(rising, falling)


def newton(S, context):
    """The sums are followed by the mass, the number of rows or their weight, whose unit is in the context beside l2."""
    *S, mass = S
    total = 0.0
    for x in S:
        total += float(x) * float(x)
    return total / (max(mass, 1) * float(context[1, 1]) + float(context[0, 0]))


def plausible(S):
    total = 0.0
    for x in S:
        total += max(float(x), 0.0)
    return total


def between(C_L, d_L, C_R, d_R):
    """How much less the weighted squared error is around the means d / C of both sides."""
    if C_L <= 0 or C_R <= 0:
        return 0.0
    C_L, C_R = float(C_L), float(C_R)
    d = d_L / C_L - d_R / C_R
    return C_L / (C_L + C_R) * C_R * d * d


def class_pair(L, R):
    """Of the pair of classes that is best for both sides together: sums V, then those of the pairs (0, 1), (0, 2), (1, 2), .."""
    L, R = [float(x) for x in L], [float(x) for x in R]
    S = [on_grid(a + b) for a, b in zip(L, R, strict=True)]
    K = next(K for K in range(2, 100) if len(S) == K * (K + 1) // 2)
    pairs = {frozenset(rs): K + m for m, rs in enumerate((r, s) for s in range(K) for r in range(s))}
    r = max(range(K), key=lambda k: S[k])

    def value(s):
        d, c = S[r] - S[s], S[pairs[frozenset((r, s))]]
        return d * d / c if c > 0 else 0.0

    s = max((k for k in range(K) if k != r), key=value)
    m = pairs[frozenset((r, s))]
    return between(L[m], L[r] - L[s], R[m], R[r] - R[s])


def shared_stump(L, R, context):
    """The best class to join those that share a stump: d^2 / w on each side of the stump, and `alone` for each other class."""
    shares, alone = context.tolist()
    best = 0.0
    for c in (k for k, share in enumerate(shares) if not share):
        value = 0.0
        for side in (sides(L), sides(R)):
            d = w = 0.0
            for N, P in [*(pair for pair, share in zip(side, shares, strict=True) if share), side[c]]:
                d, w = d + (float(P) - float(N)), w + (float(P) + float(N))
            value += d * d / w if w > 0 else 0.0
        value += sum(a for a, share in zip(alone, shares, strict=True) if not share)
        best = max(best, value - alone[c])
    return best


PAIR = {
    gains.SHARED_STUMP: shared_stump,
    gains.PLAUSIBLE: lambda L, R, _: on_grid(plausible(L) + plausible(R)),
    gains.RESPONSES: lambda L, R, _: between(L[1], float(L[0]), R[1], float(R[0])),
    gains.CLASS_PAIR: lambda L, R, _: class_pair(L, R),
    gains.CODEWORD: lambda L, R, _: on_grid(codeword(L) + codeword(R)),
    gains.DIRECTION: lambda L, R, _: direction(L) + direction(R),
    gains.LEAST_SQUARES: lambda L, R, _: least_squares(L, R),
    gains.CLASS_STUMP: lambda L, R, _: on_grid(class_stump(L, R)),
    gains.DIRECTION_STUMP: lambda L, R, _: direction_stump(L, R),
    gains.VOTES: lambda L, R, _: on_grid(votes(L) + votes(R)),
    gains.VOTES_STUMP: lambda L, R, _: on_grid(votes_stump(L, R)),
    gains.LABEL_VOTES: lambda L, R, _: on_grid(label_votes(L) + label_votes(R)),
    gains.REAL_VOTES: lambda L, R, _: real_votes(L) + real_votes(R),
    gains.WHOLE_TREE: whole_tree,
    gains.NEWTON: lambda L, R, context: newton(L, context) + newton(R, context),
}
# What a node is worth unsplit, and what a split must add to it to be more than rounding.
OWN = {
    gains.SHARED_STUMP: lambda S, _: (0.0, 0.0),
    gains.PLAUSIBLE: lambda S, _: (on_grid(plausible(S)), 0.0),
    gains.RESPONSES: lambda S, _: (0.0, 0.0),
    gains.CLASS_PAIR: lambda S, _: (0.0, 0.0),
    gains.CODEWORD: lambda S, _: (on_grid(codeword(S)), 0.0),
    gains.DIRECTION: lambda S, _: (direction(S), direction(S) * 2.0**-40),
    gains.LEAST_SQUARES: lambda S, _: (0.0, 0.0),
    gains.CLASS_STUMP: lambda S, _: (0.0, 0.0),
    gains.DIRECTION_STUMP: lambda S, _: (0.0, 0.0),
    gains.VOTES: lambda S, _: (on_grid(votes(S)), 0.0),
    gains.VOTES_STUMP: lambda S, _: (0.0, 0.0),
    gains.LABEL_VOTES: lambda S, _: (on_grid(label_votes(S)), 0.0),
    gains.REAL_VOTES: lambda S, _: (real_votes(S), -real_votes(S) * 2.0**-40),
    gains.WHOLE_TREE: lambda S, context: (float(context[0, -1]), -float(context[0, -1]) * 2.0**-40),
    gains.NEWTON: lambda S, context: (newton(S, context), newton(S, context) * 2.0**-40),
}
NAMES = {
    "codeword": gains.CODEWORD,
    "direction": gains.DIRECTION,
    "least squares": gains.LEAST_SQUARES,
    "class stump": gains.CLASS_STUMP,
    "direction stump": gains.DIRECTION_STUMP,
    "votes": gains.VOTES,
    "votes stump": gains.VOTES_STUMP,
    "label votes": gains.LABEL_VOTES,
    "real votes": gains.REAL_VOTES,
    "whole tree": gains.WHOLE_TREE,
    "newton": gains.NEWTON,
}
# Those of sums in which two classes of one unit each are no example.
FURTHER = {
    "plausible": gains.PLAUSIBLE,
    "responses": gains.RESPONSES,
    "class pair": gains.CLASS_PAIR,
    "shared stump": gains.SHARED_STUMP,
}
KINDS = pytest.mark.parametrize("kind", (NAMES | FURTHER).values(), ids=NAMES | FURTHER)
ON_GRID = {
    gains.CODEWORD,
    gains.PLAUSIBLE,
    gains.CLASS_STUMP,
    gains.VOTES,
    gains.VOTES_STUMP,
    gains.LABEL_VOTES,
}
TWO_SIDED = {
    gains.VOTES,
    gains.VOTES_STUMP,
    gains.LABEL_VOTES,
    gains.REAL_VOTES,
    gains.WHOLE_TREE,
    gains.SHARED_STUMP,
}  # of sums (N, P)


def naive_best_split(
    nodes, offsets, features, n_sums, kind, min_rows, min_weight=0, weighted=False, context=gains.NO_CONTEXT
):
    """Every feature, then every threshold above a bin that has rows, then missing values to the left, then to the right.

    The first of the largest value wins, if that is larger than the node's own. `nodes`: (total bins, channels) sums.
    """
    total = [int(x) for x in nodes[offsets[features[0]] : offsets[features[0] + 1]].sum(axis=0)]
    weight = n_sums + weighted

    def read(S):
        """What the gain reads of a side."""
        return [*S[:n_sums], S[weight]] if kind == gains.NEWTON else S[:n_sums]

    own, noise = OWN[kind](read(total), context)
    best, found = own + noise, Split(0.0, 0.0, 0, 0, False, 0, 0)
    for d in features:
        bins, missing = nodes[offsets[d] : offsets[d + 1] - 1], nodes[offsets[d + 1] - 1]
        for b in np.flatnonzero(bins[:, n_sums]):
            for missing_left in (True, False) if missing[n_sums] else (None,):
                L = [int(x) for x in bins[: b + 1].sum(axis=0) + (missing if missing_left else 0)]
                R = [p - x for p, x in zip(total, L, strict=True)]
                if min(L[n_sums], R[n_sums]) < min_rows or min(L[weight], R[weight]) < min_weight:
                    continue
                value = PAIR[kind](read(L), read(R), context)
                if value > best:
                    best = value
                    side = L[weight] >= R[weight] if missing_left is None else missing_left
                    found = Split(value - own, value, int(d), int(b), side, L[n_sums], R[n_sums])
    return found


def histogram_of(statistics, bins, n_bins):
    """Sums of the rows' statistics by feature and bin."""
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    out = np.zeros((offsets[-1], statistics.shape[1]), np.int64)
    for d in range(bins.shape[1]):
        np.add.at(out, offsets[d] + bins[:, d], statistics)
    return out


def statistics_of(rng, n, n_classes, kind, weighted, largest):
    """Rows as the statistics make them: residuals that sum to 0, one number in the channel of the class, or sides (N, P)."""
    y = rng.integers(0, n_classes, n)
    curvatures = {gains.RESPONSES: 1, gains.CLASS_PAIR: n_classes * (n_classes - 1) // 2}.get(kind, 0)
    n_classes = 1 if kind == gains.RESPONSES else n_classes
    n_sums = n_classes * (2 if kind in TWO_SIDED else 1) + curvatures
    out = np.zeros((n, n_sums + 1 + weighted), np.int64)
    if kind == gains.LEAST_SQUARES:
        out[np.arange(n), y] = rng.integers(0, largest, n)
    elif kind in TWO_SIDED:
        own = y[:, None] == np.arange(n_classes)
        w = rng.integers(0, largest, (n, n_classes))
        out[:, :n_sums] = np.concatenate([w * ~own, w * own], axis=1)
    else:
        out[:, :n_classes] = -rng.integers(0, largest, (n, n_classes))
        out[np.arange(n), y % n_classes] = 0
        out[np.arange(n), y % n_classes] = -out[:, :n_classes].sum(axis=1)
    out[:, n_classes : n_classes + curvatures] = rng.integers(0, largest, (n, curvatures))
    if kind == gains.RESPONSES:
        out[:, 0] = rng.integers(-largest, largest, n)
    out[:, n_sums] = 1
    if weighted:
        out[:, n_sums + 1] = rng.integers(1, 4, n)
    return out


def context_of(rng, kind, n_sums, largest, weighted=False):
    """What the other leaves of a tree are right and wrong about, and what the tree is worth: of random sums."""
    if kind == gains.NEWTON:
        return gains.context_of(
            (rng.choice([0.0, 0.5, 30.0]),), n_sums + weighted, 2.0**-20 if weighted else 1.0
        )
    if kind == gains.SHARED_STUMP:
        alone = rng.integers(0, 20 * largest, n_sums // 2)
        return np.array([rng.permutation(n_sums // 2) < rng.integers(n_sums // 2), alone], np.float64)
    if kind != gains.WHOLE_TREE:
        return gains.NO_CONTEXT
    others = rng.integers(0, 20 * largest, (2, n_sums // 2)).astype(float)
    worth = -2.0 * np.sqrt(others.sum(axis=0) * others.mean()).sum() * rng.choice([0.5, 1.0, 3.0])
    return np.concatenate([others, np.full((2, 1), worth)], axis=1)


def in_slots(nodes, n_bins):
    """(Histograms, slots) that hold the nodes' sums."""
    histograms = Histograms(n_bins, nodes[0].shape[1])
    slots = histograms.take(len(nodes))
    for slot, sums in zip(slots, nodes, strict=True):
        histograms.pool[slot] = 0
        histograms.pool[slot][:, : sums.shape[1]] = sums
    return histograms, slots


def split_of(found: BestSplits, m: int) -> Split:
    return Split(*(column[m].item() for column in found[:-2]))
