"""Random numbers that depend only on seed, stream, round and position, and not on the order of the calls."""

import numpy as np

from distboost.kernels._jit import inlined, kernel

_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 0xFFFFFFFFFFFFFFFF

# Each purpose has its own stream, so that its draws are independent of those for other purposes.
BIN_SAMPLE, ROW_SUBSAMPLE, FEATURE_SUBSAMPLE, COLORING, QUERY, QUERIED_PART, STOP_SET = range(1, 8)
SKETCH_SIGNS, STATISTIC_ROUNDING, FOLDS = 8, 9, 10


def key(seed: int, stream: int, round: int = 0) -> np.uint64:
    """Return the key of the draws of one stream in one round; all positions share it.

    Parameters
    ----------
    seed : int
        The seed of the training.
    stream : int
        The purpose of the draws: one of the constants of this module.
    round : int, default=0

    Examples
    --------
    >>> int(key(0, ROW_SUBSAMPLE, 7)) == int(key(0, ROW_SUBSAMPLE, 7))
    True
    """
    return np.uint64(stream_key(np.uint64(seed & _MASK), np.uint64(stream), np.uint64(round)))


@inlined
def mixed(z):
    """Return the finaliser of SplitMix64 of z, uint64 (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def stream_key(seed, stream, round):
    """Do what `key` does."""
    # IN: seed, stream, round: uint64
    z = mixed(seed + np.uint64(_GOLDEN))
    z = mixed(z + stream * np.uint64(_GOLDEN))
    return mixed(z + round * np.uint64(_GOLDEN))


@inlined
def word(draw, position):
    """Return the 64 random bits of a position under the key `draw`."""
    return mixed(draw + (np.uint64(position) + np.uint64(1)) * np.uint64(_GOLDEN))


@inlined
def number(draw, position):
    """Return the random number in [0, 1) of a position under the key `draw`."""
    return np.float64(word(draw, position) >> np.uint64(11)) * 2.0**-53


@kernel
def uniform(draw, first, out):
    """Set out[j] to the random number in [0, 1) of position first + j under the key `draw`."""
    # OUT: out (n,) float64
    for j in range(out.shape[0]):
        out[j] = number(draw, first + j)


def uniforms(draw: np.uint64, first: int, n: int) -> np.ndarray:
    """Return the random numbers in [0, 1) of positions first .. first + n - 1 under the key `draw`, (n,) float64."""
    out = np.empty(n)
    uniform(draw, first, out)
    return out
