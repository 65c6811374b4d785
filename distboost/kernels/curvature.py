"""The second derivatives of the multinomial log-loss by a scale and a shift of each class (vector scaling)."""

import numpy as np

from distboost.kernels._jit import kernel
from distboost.kernels.margin import times
from distboost.kernels.memory import integers

SMALL = 2.0**-24  # classes of smaller probability have no products with others


@kernel
def add_curvatures(p, g, weights, factor, out):
    """Add the second derivatives of each row's loss -ln p_y, for p = softmax(s * g + b), to the lower triangle of `out`.

    The derivatives by s_h and s_k, s_h and b_k, b_h and b_k are c g_h g_k, c g_h and c, where c = p_k (1 - p_k) for h = k,
    else -p_h p_k. The sum is positive semidefinite without the products of small p, too.
    """
    # IN: p, g (n, K) float64; weights (n,) float64
    # OUT: out (2 K, 2 K) int64, in units of 1/factor: s_0, .. s_(K - 1), b_0, .. b_(K - 1)
    n, n_classes = p.shape
    large = integers(n_classes)
    for i in range(n):
        n_large = 0
        for k in range(n_classes):
            c = p[i, k] * (1.0 - p[i, k]) * factor
            out[k, k] += times(weights[i], np.rint(c * g[i, k] * g[i, k]))
            out[n_classes + k, k] += times(weights[i], np.rint(c * g[i, k]))
            out[n_classes + k, n_classes + k] += times(weights[i], np.rint(c))
            if p[i, k] >= SMALL:
                large[n_large] = k
                n_large += 1
        for m in range(1, n_large):
            k = large[m]
            for j in range(m):
                h = large[j]
                c = -p[i, h] * p[i, k] * factor
                out[k, h] += times(weights[i], np.rint(c * g[i, h] * g[i, k]))
                out[n_classes + k, h] += times(weights[i], np.rint(c * g[i, h]))
                out[n_classes + h, k] += times(weights[i], np.rint(c * g[i, k]))
                out[n_classes + k, n_classes + h] += times(weights[i], np.rint(c))
