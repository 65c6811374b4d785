"""A digest of rows. It is a sum of one hash per row, so that it does not depend on how the rows are divided into blocks."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.random import mixed

_MISSING = np.uint64(0x7FF8000000000000)  # bits of a NaN: every missing value is hashed as these


@kernel
def add_rows(bins, values, labels, weights, first, factors, out):
    """Add two hashes of each row to `out`, modulo 2^64: that of its content to out[0], that of its number and content to out[1].

    Rows of weight 0 are ignored. A row of integer weight w adds as much to out[0] as w rows of weight 1.
    """
    # IN: bins (n, D) uint8; values (n, D) float64, or (0, D) to leave them out; labels (n,) int32; weights (n,) float64;
    #     first: the global number of row 0; factors (2 D,) uint64: odd random multipliers
    # OUT: out (2,) uint64
    n, n_features = bins.shape
    content, exact = np.uint64(0), np.uint64(0)
    for i in range(n):
        if weights[i] > 0:
            h = np.uint64(labels[i] + 1)
            for d in range(n_features):
                h += factors[d] * np.uint64(bins[i, d] + 1)
            if len(values):
                for d in range(n_features):
                    x = values[i, d]
                    bits = np.float64(x).view(np.uint64)
                    known = _MISSING if np.isnan(x) else np.uint64(0) if x == 0.0 else bits
                    h += factors[n_features + d] * mixed(known)
            h = mixed(h)
            whole = np.floor(weights[i])
            part = np.uint64((weights[i] - whole) * 2.0**53)
            content += np.uint64(whole) * h
            if part:
                content += mixed(h + part)
            exact += mixed(h + mixed(np.uint64(first + i + 1)) + part + mixed(np.uint64(whole)))
    out[0] += content
    out[1] += exact


@kernel
def hash_bins(bins, factors, out):
    """Compute a hash of the bins of each row."""
    # IN: bins (n, D) uint8; factors (D,) uint64: odd random multipliers
    # OUT: out (n,) uint64
    for i in range(len(out)):
        h = np.uint64(0)
        for d in range(bins.shape[1]):
            h += factors[d] * np.uint64(bins[i, d] + 1)
        out[i] = mixed(h)


def hashes_of(bins: np.ndarray) -> np.ndarray:
    """Return a hash of each row, (n,) uint64, that depends on nothing but its bins, (n, D) uint8."""
    hashes = np.empty(len(bins), np.uint64)
    hash_bins(np.ascontiguousarray(bins), _factors(bins.shape[1]), hashes)
    return hashes


def uniforms_of(bins: np.ndarray) -> np.ndarray:
    """Return a number in [0, 1) of each row, (n,) float64, that depends on nothing but its bins, (n, D) uint8."""
    found: np.ndarray = (hashes_of(bins) >> np.uint64(11)) * 2.0**-53
    return found


def _factors(n: int) -> np.ndarray:
    """Return odd random multipliers, (n,) uint64."""
    with np.errstate(over="ignore"):
        factors = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        spread: np.ndarray = (factors ^ (factors >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        return spread | np.uint64(1)


def digest_of(bins, values, labels, weights, first: int) -> tuple[int, int]:
    """Return two digests of some rows: of their content, and of their global numbers and content.

    Modulo 2^64, the digests of parts of the rows add up to the digests of all rows.

    Parameters
    ----------
    bins : ndarray of shape (n, D), uint8
    values : ndarray of shape (n, D), float64, or None
        Raw values, if the rows have them.
    labels : ndarray of shape (n,), int32
    weights : ndarray of shape (n,), float64
        Row weights.
    first : int
        The global number of the first row.
    """
    n_features = bins.shape[1]
    factors = _factors(2 * n_features)
    out = np.zeros(2, np.uint64)
    if values is None:
        values = np.empty((0, n_features))
    add_rows(bins, values, labels, weights, first, factors, out)
    return int(out[0]), int(out[1])
