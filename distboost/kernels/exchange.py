"""Histograms on their way from one process to another. Bins without rows do not travel."""

import numpy as np

from distboost.kernels._jit import kernel


@kernel
def pack(sums, features, offsets, occupied, packed):
    """Copy the sums of the bins that are not all zero; return their number, or -1 if the type of `packed` cannot hold a sum.

    In NumPy, with ``bins = np.concatenate([sums[:, offsets[d] : offsets[d + 1], :C] for d in features], axis=1)``:
    ``occupied[:] = bins.any(axis=2); packed[:n] = bins[occupied]``.
    """
    # IN: sums (nodes, total bins, padded channels) int64; features (f,) int64; offsets (D + 1,) int64
    # OUT: occupied (nodes, bins of the features) bool; packed (nodes * bins of the features, C) int32 or int64
    n_channels = np.uintp(packed.shape[1])
    n, lost = np.uintp(0), np.int64(0)
    for m in range(occupied.shape[0]):
        source, full = sums[m], occupied[m]
        b = np.uintp(0)
        for d in features:
            for j in range(np.uintp(offsets[d]), np.uintp(offsets[d + 1])):
                found = np.int64(0)
                for c in range(n_channels):
                    value = source[j, c]
                    found |= value
                    packed[n, c] = value
                    lost |= value ^ np.int64(packed[n, c])
                full[b] = found != 0
                b += np.uintp(1)
                if found != 0:
                    n += np.uintp(1)
    return np.int64(n) if lost == 0 else np.int64(-1)


@kernel
def add_packed(occupied, packed, slots, pool, fresh):
    """pool[slots, :, :C][occupied] += packed, where the content of `fresh` slots is arbitrary, and is replaced."""
    # IN: occupied (nodes, bins) bool; packed (n, C) int32 or int64, contiguous; slots (nodes,) int64
    # OUT: pool (slots, bins, padded channels) int64; fresh (nodes,) bool: set to False
    n_channels, n_padded = np.uintp(packed.shape[1]), np.uintp(pool.shape[2])
    n = np.uintp(0)
    for m in range(occupied.shape[0]):
        full, target = occupied[m], pool[slots[m]]
        is_fresh, fresh[m] = fresh[m], False
        for b in range(np.uintp(occupied.shape[1])):
            if is_fresh:
                for c in range(n_padded):
                    target[b, c] = 0
            if full[b]:
                for c in range(n_channels):
                    target[b, c] += packed[n, c]
                n += np.uintp(1)


@kernel
def add_features(sums, features, offsets, slots, pool, fresh):
    """Add the bins of some features, in their order: pool[slots] += np.concatenate([sums[:, first:stop], ...], axis=1).

    The content of `fresh` slots is arbitrary, and is replaced.
    """
    # IN: sums (nodes, total bins, padded channels) int64; features (f,) int64; offsets (D + 1,) int64; slots (nodes,) int64
    # OUT: pool (slots, bins of the features, padded channels) int64; fresh (nodes,) bool: set to False
    n_channels = np.uintp(sums.shape[2])
    for m in range(slots.shape[0]):
        source, target = sums[m], pool[slots[m]]
        is_fresh, fresh[m] = fresh[m], False
        b = np.uintp(0)
        for d in features:
            for j in range(np.uintp(offsets[d]), np.uintp(offsets[d + 1])):
                if is_fresh:
                    for c in range(n_channels):
                        target[b, c] = source[j, c]
                else:
                    for c in range(n_channels):
                        target[b, c] += source[j, c]
                b += np.uintp(1)
