"""A digest of rows. It is a sum of hashes, so that it does not depend on how rows are divided into blocks."""

import numpy as np

from distboost.kernels._jit import inlined, kernel

_MISSING = np.uint64(0x7FF8000000000000)  # stands for every NaN


@inlined
def _mixed(z):
    # The finaliser of SplitMix64, as in random.py.
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def add_rows(bins, values, labels, weights, first, factors, out):
    """Add the hashes of rows of weight above 0, modulo 2^64: of the content to out[0], of row number and content to out[1].

    A row of integer weight w adds the same to out[0] as w rows of weight 1.
    """
    # IN: bins (n, D) uint8; values (n, D) float64, or (0, D) to leave them out; labels (n,) int32; weights (n,) float64;
    #     first: number of row 0; factors (2 D,) uint64, odd
    # OUT: out (2,) uint64
    n, n_features = bins.shape
    bits = values.view(np.uint64)
    content, exact = np.uint64(0), np.uint64(0)
    for i in range(n):
        if weights[i] > 0:
            h = np.uint64(labels[i] + 1)
            for d in range(n_features):
                h += factors[d] * np.uint64(bins[i, d] + 1)
            if len(values):
                for d in range(n_features):
                    x = values[i, d]
                    known = _MISSING if np.isnan(x) else np.uint64(0) if x == 0.0 else bits[i, d]
                    h += factors[n_features + d] * _mixed(known)
            h = _mixed(h)
            whole = np.floor(weights[i])
            part = np.uint64((weights[i] - whole) * 2.0**53)
            content += np.uint64(whole) * h
            if part:
                content += _mixed(h + part)
            exact += _mixed(h + _mixed(np.uint64(first + i + 1)) + part + _mixed(np.uint64(whole)))
    out[0] += content
    out[1] += exact


def digest_of(bins, values, labels, weights, first: int) -> tuple[int, int]:
    """The digests of some rows, of content and of number and content. The digests of parts of the rows add up modulo 2^64."""
    n_features = bins.shape[1]
    with np.errstate(over="ignore"):
        factors = np.arange(1, 2 * n_features + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        factors = (factors ^ (factors >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) | np.uint64(1)
    out = np.zeros(2, np.uint64)
    if values is None:
        values = np.empty((0, n_features))
    add_rows(bins, values, labels, weights, first, factors, out)
    return int(out[0]), int(out[1])
