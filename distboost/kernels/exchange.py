"""Histograms on their way from one process to another."""

import numpy as np

from distboost.kernels._jit import kernel


@kernel
def narrow(sums, features, offsets, out):
    """Copy the bins of some features; return whether all sums are the same in the type of `out`.

    In NumPy: ``out[m] = np.concatenate([sums[m, offsets[d] : offsets[d + 1], :C] for d in features])``.
    """
    # IN: sums (nodes, total bins, padded channels) int64; features (f,) int64; offsets (D + 1,) int64
    # OUT: out (nodes, bins of the features, C) int32 or int64
    n_channels = np.uintp(out.shape[2])
    lost = np.int64(0)
    for m in range(out.shape[0]):
        source, target = sums[m], out[m]
        b = np.uintp(0)
        for d in features:
            for j in range(np.uintp(offsets[d]), np.uintp(offsets[d + 1])):
                for c in range(n_channels):
                    value = source[j, c]
                    target[b, c] = value
                    lost |= value ^ np.int64(target[b, c])
                b += np.uintp(1)
    return lost == 0


@kernel
def add(piece, slots, pool):
    """pool[slots, :, :C] += piece."""
    # IN: piece (nodes, bins, C) int32 or int64, contiguous; slots (nodes,) int64
    # OUT: pool (slots, bins, padded channels) int64, added to
    n_channels = np.uintp(piece.shape[2])
    for m in range(piece.shape[0]):
        source, target = piece[m], pool[slots[m]]
        for b in range(np.uintp(piece.shape[1])):
            for c in range(n_channels):
                target[b, c] += source[b, c]
