"""An exponential function and a logarithm that give the same bits everywhere.

A model must not depend on the C library's `exp`, whose last digit differs between versions, nor on whether the compiler
vectorised a loop. These functions are plain IEEE arithmetic in a fixed order, so that a vectorised loop gives the same results.

Polynomials are evaluated by fused multiplications and additions, x y + z rounded once, which IEEE defines too. They halve the
chain of operations that wait for each other. Servers and most PCs since 2013 have instructions for them. Other processors compute
them by a function: the bits are the same, but an exponential takes more than ten times as long.
"""

from math import factorial
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from distboost.kernels._jit import inlined, kernel

LOG2_E = 1.44269504088896338700
LN2_HIGH = 6.93147180369123816490e-01  # the upper 32 bits of ln 2: n * LN2_HIGH is exact for |n| < 2^20
LN2_LOW = 1.90821492927058770002e-10
ROUND = 6755399441055744.0  # 1.5 * 2^52: x + ROUND - ROUND is x rounded to the nearest integer
LOWEST = -700.0  # smaller exponents are raised to it: e^-700 ~ 1e-304 is still a normal float

# Taylor coefficients 1/j!, from j = 13 to 2. For |r| <= ln(2)/2, the first omitted term is below 2^-57.
TAYLOR = tuple(1 / factorial(j) for j in range(13, 1, -1))
SQRT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2 = TAYLOR


def _fma(typingctx, x, y, z):
    """Return x y + z, rounded once. All are float64."""

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return types.float64(*[types.float64] * 3), codegen


fma: Any = intrinsic(_fma)


@inlined
def exp(x):
    """Return e^x for -700 <= x <= 709, within one unit in the last place; for x < -700, return e^-700."""
    x = max(x, LOWEST)
    # x = n ln 2 + r, |r| <= ln(2)/2
    n = fma(x, LOG2_E, ROUND) - ROUND
    r = fma(-n, LN2_LOW, fma(-n, LN2_HIGH, x))
    p = C13
    p = fma(p, r, C12)
    p = fma(p, r, C11)
    p = fma(p, r, C10)
    p = fma(p, r, C9)
    p = fma(p, r, C8)
    p = fma(p, r, C7)
    p = fma(p, r, C6)
    p = fma(p, r, C5)
    p = fma(p, r, C4)
    p = fma(p, r, C3)
    p = fma(p, r, C2)
    e_r = fma(p * r, r, r) + 1.0
    # Build 2^n from the bits of its exponent.
    return e_r * np.int64((np.int64(n) + 1023) << 52).view(np.float64)


@inlined
def log1p(x):
    """Return ln(1 + x) for 0 <= x <= 1e300, within two units in the last place."""
    u = 1.0 + x
    lost = (x - (u - 1.0)) / u  # what rounding removed from 1 + x, as a first-order change of ln u
    # Split u into 2^n m, sqrt(1/2) <= m < sqrt(2), by its bits. Then ln u = n ln 2 + ln m, ln m = 2 artanh((m - 1) / (m + 1)).
    bits = np.float64(u).view(np.int64)
    n = (bits - np.int64(SQRT_HALF)) >> 52
    m = np.int64(bits - (n << 52)).view(np.float64)
    f = m - 1.0
    t = f / (2.0 + f)
    z = t * t
    p = 1 / 21
    p = fma(p, z, 1 / 19)
    p = fma(p, z, 1 / 17)
    p = fma(p, z, 1 / 15)
    p = fma(p, z, 1 / 13)
    p = fma(p, z, 1 / 11)
    p = fma(p, z, 1 / 9)
    p = fma(p, z, 1 / 7)
    p = fma(p, z, 1 / 5)
    p = fma(p, z, 1 / 3)
    return fma(n, LN2_HIGH, fma(2.0 * t * z, p, fma(n, LN2_LOW, lost)) + 2.0 * t)


@kernel
def logarithms(x, out):
    """Set out[i] = ln(1 + x[i]), for tests."""
    # IN: x (n,) float64
    # OUT: out (n,) float64
    for i in range(x.shape[0]):
        out[i] = log1p(x[i])


@kernel
def exponentials(x, out):
    """Set out[i, k] = e^x[i, k], for tests."""
    # IN: x (n, K) float64
    # OUT: out (n, K) float64
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i, k] = exp(x[i, k])
