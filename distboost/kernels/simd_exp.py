"""Exponentials of the scores of rows, many lanes at a time.

Every lane gives the same bits as `exponential.exp`: its operations are emitted in its order, and LLVM neither contracts nor
reorders them. So a result depends neither on its lane nor on whether it was computed in a lane at all.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels import exponential
from distboost.kernels.lanes import (
    I64,
    INDEX,
    LANES,
    as_float64,
    change_row,
    constant,
    each_score,
    i64,
    lanes_of,
    like,
    load,
    numbered,
    of_lanes,
    require_contiguous,
    row_of,
    store,
)

# Lanes of the exponentials: so many that their operations need not wait for each other.
WIDE = 4 * LANES


def _exp(builder, x):
    """Emit the operations of `exponential.exp`."""

    def all_(number):
        return constant(number, x.type.count)

    c = exponential
    x = builder.select(builder.fcmp_ordered(">", all_(c.LOWEST), x), all_(c.LOWEST), x)
    shifted = of_lanes(builder, "fma", x, all_(c.LOG2_E), all_(c.ROUND))
    n = builder.fsub(shifted, all_(c.ROUND))
    r = of_lanes(builder, "fma", n, all_(-c.LN2_HIGH), x)
    r = of_lanes(builder, "fma", n, all_(-c.LN2_LOW), r)
    p = all_(c.TAYLOR[0])
    for coefficient in c.TAYLOR[1:]:
        p = of_lanes(builder, "fma", p, r, all_(coefficient))
    e_r = builder.fadd(of_lanes(builder, "fma", builder.fmul(p, r), r, r), all_(1.0))
    # The lowest bits of `shifted` are n: so 2^n takes no conversion, for which few processors have lanes.
    bits = builder.add(builder.bitcast(shifted, ir.VectorType(I64, x.type.count)), all_(1023))
    return builder.fmul(e_r, builder.bitcast(builder.shl(bits, all_(52)), x.type))


def _change_all(change):
    """Return the code of an intrinsic that sets u[t, k] = change(builder, u[t, k])."""

    def change_all(context, builder, signature, args):
        u, _, width = row_of(context, builder, signature.args[0], args[0], i64(0))
        with lanes_of(builder, builder.mul(args[1], width), WIDE) as (j, _):
            place = builder.gep(u, [j])
            store(builder, change(builder, load(builder, place, WIDE)), place)
        return context.get_dummy_value()

    return change_all


def _exp_rows(typingctx, u, n):
    """Set u[t, k] = exp(u[t, k]) in the rows t < n, and in up to WIDE - 1 numbers behind them.

    u (m, K) is float64 and C-contiguous.
    """
    require_contiguous(u)
    return types.void(u, INDEX), _change_all(_exp)


exp_rows: Any = intrinsic(_exp_rows)


def _logistic(builder, x):
    """Return e^x / (1 + e^x), without an exponential above 1."""
    one = constant(1.0, x.type.count)
    t = _exp(builder, builder.fneg(of_lanes(builder, "fabs", x)))
    above = builder.select(builder.fcmp_ordered(">", x, constant(0.0, x.type.count)), one, t)
    return builder.fdiv(above, builder.fadd(one, t))


def _logistic_rows(typingctx, u, n):
    """Set u[t, k] = e / (1 + e), e = exp(u[t, k]), where `exp_rows` would set e."""
    require_contiguous(u)
    return types.void(u, INDEX), _change_all(_logistic)


logistic_rows: Any = intrinsic(_logistic_rows)


def _log1p(builder, x):
    """Emit the operations of `exponential.log1p`."""
    c, count = exponential, x.type.count
    one, two = constant(1.0, count), constant(2.0, count)
    u = builder.fadd(one, x)
    lost = builder.fdiv(builder.fsub(x, builder.fsub(u, one)), u)
    bits = builder.bitcast(u, ir.VectorType(I64, count))
    exponent = builder.ashr(builder.sub(bits, constant(c.SQRT_HALF, count)), constant(52, count))
    m = builder.bitcast(builder.sub(bits, builder.shl(exponent, constant(52, count))), x.type)
    n = builder.sitofp(exponent, x.type)
    f = builder.fsub(m, one)
    t = builder.fdiv(f, builder.fadd(two, f))
    z = builder.fmul(t, t)
    p = constant(1 / 21, count)
    for odd in range(19, 1, -2):
        p = of_lanes(builder, "fma", p, z, constant(1 / odd, count))
    twice = builder.fmul(two, t)
    low = of_lanes(builder, "fma", n, constant(c.LN2_LOW, count), lost)
    small = of_lanes(builder, "fma", builder.fmul(twice, z), p, low)
    return of_lanes(builder, "fma", n, constant(c.LN2_HIGH, count), builder.fadd(small, twice))


def _log1p_rows(typingctx, u, n):
    """Set u[t, k] = ln(1 + u[t, k]), where `exp_rows` would set exp(u[t, k])."""
    require_contiguous(u)
    return types.void(u, INDEX), _change_all(_log1p)


log1p_rows: Any = intrinsic(_log1p_rows)


def _subtract_row(typingctx, scores, i, other, s, shift, u, t):
    """Set u[t, k] = s (scores[i, k] - other) - shift, and overwrite up to seven numbers behind the row.

    scores (n, K) is float32 or float64, other of the same type, u (m, K) float64; both arrays are C-contiguous.
    """
    require_contiguous(scores, u)
    f64 = types.float64
    signature = types.void(scores, INDEX, scores.dtype, f64, f64, u, INDEX)

    def codegen(context, builder, signature, args):
        source, n_left, width = row_of(context, builder, signature.args[0], *args[:2])
        target, _, _ = row_of(context, builder, signature.args[5], *args[5:])

        def set_differences(k, F):
            other, s, shift = (like(builder, number, F) for number in args[2:5])
            x = as_float64(builder, builder.fsub(F, other))
            store(builder, builder.fsub(builder.fmul(s, x), shift), builder.gep(target, [k]))

        each_score(builder, source, n_left, width, set_differences)
        return context.get_dummy_value()

    return signature, codegen


subtract_row: Any = intrinsic(_subtract_row)


def _is_beaten(typingctx, scores, i, y):
    """Return whether scores[i, k] > scores[i, y] for a class k, or scores[i, k] = scores[i, y] for a k < y."""
    require_contiguous(scores)
    signature = types.boolean(scores, INDEX, INDEX)

    def codegen(context, builder, signature, args):
        row, n_left, width = row_of(context, builder, signature.args[0], *args[:2])
        own = builder.load(builder.gep(row, [args[2]]))
        beaten = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(LANES), 0))

        def compare(first, F):
            y, end, k = like(builder, args[2], F), like(builder, width, F), numbered(builder, first, F)
            own_ = like(builder, own, F)
            tie = builder.and_(builder.fcmp_ordered("==", F, own_), builder.icmp_signed("<", k, y))
            above = builder.or_(builder.fcmp_ordered(">", F, own_), tie)
            found = builder.and_(builder.icmp_signed("<", k, end), above)
            is_lanes = isinstance(F.type, ir.VectorType)
            bits = (builder.bitcast if is_lanes else builder.zext)(found, ir.IntType(LANES))
            builder.store(builder.or_(builder.load(beaten), bits), beaten)

        each_score(builder, row, n_left, width, compare)
        bits = builder.load(beaten)
        return builder.zext(
            builder.icmp_signed("!=", bits, ir.Constant(bits.type, 0)), context.get_value_type(types.boolean)
        )

    return signature, codegen


is_beaten: Any = intrinsic(_is_beaten)


def _divide_row(typingctx, u, t, divisor):
    """Set u[t, k] = u[t, k] / divisor. u is float64 and C-contiguous."""
    require_contiguous(u)
    signature = types.void(u, INDEX, types.float64)

    def codegen(context, builder, signature, args):
        row, _, width = row_of(context, builder, signature.args[0], *args[:2])
        change_row(builder, row, width, lambda old, k, load: builder.fdiv(old, like(builder, args[2], old)))
        return context.get_dummy_value()

    return signature, codegen


divide_row: Any = intrinsic(_divide_row)
