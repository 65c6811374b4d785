"""Rows in leaves for the tests of kernels, and the arithmetic of their twins.

The twins work on Python's integers, so that nothing can overflow in them.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from distboost.data.blocks import BinnedRows
from distboost.kernels import tiles
from distboost.kernels.exponential import exponentials
from distboost.rows.sums import Scale
from distboost.runtime.block import Block
from tests.pairs import in_pairs

WEIGHTS = {
    "ones": lambda rng, n: np.ones(n),
    "whole": lambda rng, n: rng.integers(0, 5, n).astype(float),  # some of them 0
    "fractions": lambda rng, n: rng.choice([0.0, 0.3, 1.7, 255.9], n),
}
UNIT = 2.0**20

# Rows, classes, type of the scores, weights.
SHAPES = [
    *in_pairs(itertools.product([40], [2, 3, 9], ["float64", "float32"], WEIGHTS)),
    (0, 3, "float64", "ones"),
    (1, 2, "float64", "whole"),
    (12, 70, "float64", "fractions"),
]


def exp(x):
    """The library's exponential of any array, which its own test compares with NumPy's."""
    x = np.asarray(x, np.float64)
    out = np.empty((1, x.size))
    exponentials(x.reshape(1, -1), out)
    return out.reshape(x.shape)


def whole_weights(scores, labels, s, link, shift, factor):
    """The weights of all rows, (n, K), rounded to integers in units of 1/factor of e^shift."""
    n, n_classes = scores.shape
    u = np.zeros((n + tiles.WIDE, n_classes))
    labels, order = np.asarray(labels, np.int32), np.arange(n, dtype=np.int32)
    tiles.weigh(np.ascontiguousarray(scores), labels, order, 0, n, s, link, shift, u)
    return np.rint(u[:n] * tiles.unit_of(link, shift, factor))


def read_only(X):
    """What the library gives to kernels that read the user's numbers: they are compiled for these types."""
    X = np.ascontiguousarray(X)[:]
    X.flags.writeable = False
    return X


def times(weight, q):
    """weight * q as an integer; exact for a whole weight."""
    return int(weight) * int(q) if weight == int(weight) else round(float(weight) * float(q))


def in_order(numbers):
    """The sum of floats, from the first to the last."""
    total = 0.0
    for x in numbers:
        total += float(x)
    return total


class Case(NamedTuple):
    block: Block
    leaves: np.ndarray  # nodes 3, 1, 2 of the partition; node 2 is empty
    shift: float

    def rows(self, leaf):
        a, b = self.block.spans[self.leaves[leaf]]
        return self.block.order[a:b].tolist()

    def in_leaves(self):
        """(leaf, row) of all rows in leaves."""
        return [(leaf, i) for leaf in range(len(self.leaves)) for i in self.rows(leaf)]

    def scale(self, bits):
        return Scale(self.shift, bits)

    def sums(self, reduction, bits=40, shift=None):
        """The reduction's sums over the leaves."""
        out = np.zeros(reduction.shape(len(self.leaves), self.block.n_classes), np.int64)
        scale = Scale(self.shift if shift is None else shift, bits)
        reduction.add(self.block, self.leaves, scale, out)
        return out

    def e(self, i, s):
        """e[i, k] = exp(-s (F[i, y] - F[i, k]) - shift), and 0 for the row's own class."""
        F, y = self.block.scores[i], self.block.labels[i]
        e = exp(s * (F - F[y]).astype(np.float64) - self.shift)
        e[y] = 0.0
        return e

    def w(self, i, s):
        """w_i = exp(-s F[i, y_i] - shift)."""
        return float(exp(-s * float(self.block.scores[i, self.block.labels[i]]) - self.shift))


def case_of(n, n_classes, dtype="float64", weights="ones", spread=2.0, n_scores=None):
    rng = np.random.default_rng([n, n_classes])
    rows = BinnedRows(
        0,
        rng.integers(0, 6, (n, 3)).astype(np.uint8),
        rng.integers(0, n_classes, n).astype(np.int32),
        WEIGHTS[weights](rng, n),
    )
    block = Block(rows, n_classes, n_scores or n_classes, score_dtype=dtype)
    block.scores[:] = rng.normal(scale=spread, size=block.scores.shape)
    block.start_tree(None)
    rng.shuffle(block.order)
    used = len(block.order)
    block.spans[:4] = [(0, used), (0, used // 3), (used // 3, used // 3), (used // 3, used)]
    return Case(block, np.array([3, 1, 2]), float(2 * spread * 4 + math.log(n_classes)))


def case_name(shape):
    return f"{shape[0]} rows, {shape[1]} classes, {shape[2]}, {shape[3]}"


def prepared(case, statistic, bits, unit, shift=None):
    """The statistic of every row, (n, channels); 0 for rows that are not in use."""
    statistic.buffer(case.block, unit)[:] = 0
    scale = Scale(case.shift if shift is None else shift, bits)
    statistic.prepare(case.block, case.block.order, scale, unit)
    return statistic.buffer(case.block, unit)
