"""Copies of the rows of nodes, which lie scattered over a block."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.simd import prefetch

AHEAD = 8  # rows: they are loaded into the cache in advance
LINE = 64  # bytes


@kernel
def gather(bins, order, spans, statistics, is_taken, ends, out_bins, out_statistics):
    """Copy the rows of the nodes m with is_taken[m] to the rows ends[m], ends[m] + 1, .. of `out`, and raise ends[m].

    In NumPy, for one node: ``rows = order[a:b]; out_bins[e : e + b - a] = bins[rows]``, and so on for the statistics.
    """
    # IN: bins (n, D) uint8; order (r,) int32; spans (m, 2) int32: node m has the rows order[spans[m, 0]:spans[m, 1]];
    #     statistics (n, channels) int32; is_taken (m,) bool
    # OUT: ends (m,) int64; out_bins (n_out, D) uint8; out_statistics (n_out, channels) int32
    n_features, n_channels = np.uintp(bins.shape[1]), np.uintp(statistics.shape[1])
    for m in range(spans.shape[0]):
        if not is_taken[m]:
            continue
        start, stop = np.uintp(spans[m, 0]), np.uintp(spans[m, 1])
        e = np.uintp(ends[m])
        for j in range(start, stop):
            i = np.uintp(order[j])
            ahead = np.uintp(order[min(j + np.uintp(AHEAD), stop - np.uintp(1))])
            prefetch(statistics, ahead, np.uintp(0))
            for d in range(np.uintp(0), n_features, np.uintp(LINE)):
                prefetch(bins, ahead, d)
            for d in range(n_features):
                out_bins[e, d] = bins[i, d]
            for c in range(n_channels):
                out_statistics[e, c] = statistics[i, c]
            e += np.uintp(1)
        ends[m] = e
