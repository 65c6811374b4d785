"""Sums of rows, eight lanes at a time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels.lanes import (
    F64,
    I32,
    I64,
    INDEX,
    INTS,
    LANES,
    change_row,
    constant,
    i64,
    lanes_of,
    like,
    load,
    numbered,
    of_lanes,
    require_contiguous,
    row_of,
    spread,
    store,
    sum_of,
    times_as_ints,
)


def _rounded(builder, u, factor, fraction):
    """Return rint(fraction rint(u factor)), of lanes or of one number; `factor` may be lanes."""
    factor = factor if factor.type == u.type else like(builder, factor, u)
    q = of_lanes(builder, "rint", builder.fmul(u, factor))
    return of_lanes(builder, "rint", builder.fmul(q, like(builder, fraction, u)))


def _times(context, builder, u, factor, multiple, fraction):
    """Return int(rint(fraction rint(u factor))) multiple, of lanes or of one number."""
    return times_as_ints(context, builder, _rounded(builder, u, factor, fraction), multiple)


def _put_row(typingctx, out, i, u, t, factor, multiple, fraction):
    """Set out[i, k] = -q[k], q[k] = int(rint(fraction rint(u[t, k] factor))) multiple, for k < K; return the sum of q.

    The numbers behind them, up to the next multiple of eight, become 0. out (n, padded(K) or more) is int32 or int64, u (m, K)
    float64, with seven numbers behind row t; both are C-contiguous.
    """
    require_contiguous(out, u)
    signature = types.int64(out, INDEX, u, INDEX, types.float64, types.int64, types.float64)

    def codegen(context, builder, signature, args):
        target, _, _ = row_of(context, builder, signature.args[0], *args[:2])
        source, _, width = row_of(context, builder, signature.args[2], *args[2:4])
        factor, multiple, fraction = args[4:]
        total = cgutils.alloca_once_value(builder, constant(0))
        with lanes_of(builder, width) as (column, _):
            row = load(builder, builder.gep(source, [column]))
            used = builder.icmp_signed("<", numbered(builder, column, row), spread(builder, width))
            q = builder.select(used, _rounded(builder, row, factor, fraction), constant(0.0))
            if target.type.pointee == I64:
                q = wide = times_as_ints(context, builder, q, multiple)
            else:  # int32 holds the products, and so does float64
                weight = spread(builder, builder.sitofp(multiple, F64))
                q = builder.fptosi(builder.fmul(q, weight), ir.VectorType(I32, LANES))
                wide = builder.sext(q, INTS)
            builder.store(builder.add(builder.load(total), wide), total)
            store(builder, builder.neg(q), builder.gep(target, [column]))
        return sum_of(builder, builder.load(total))

    return signature, codegen


put_row: Any = intrinsic(_put_row)


def _add_times_row(typingctx, out, g, y, u, t, factor, multiple, fraction):
    """Add q[k], q[k] = int(rint(fraction rint(u[t, k] factor))) multiple, to out[g, y, k]; return the sum of q.

    out (groups, _, K) is int64, u (m, K) float64; both are C-contiguous.
    """
    require_contiguous(out, u)
    signature = types.int64(out, INDEX, INDEX, u, INDEX, types.float64, types.int64, types.float64)

    def codegen(context, builder, signature, args):
        target, _, width = row_of(context, builder, signature.args[0], *args[:3])
        source, _, _ = row_of(context, builder, signature.args[3], *args[3:5])
        in_lanes, in_tail = (cgutils.alloca_once_value(builder, zero) for zero in (constant(0), i64(0)))

        def added(old, k, load):
            u = load(builder, builder.gep(source, [k]))
            q = _times(context, builder, u, *args[5:])
            total = in_lanes if old.type == INTS else in_tail
            builder.store(builder.add(builder.load(total), q), total)
            return builder.add(old, q)

        change_row(builder, target, width, added)
        return builder.add(sum_of(builder, builder.load(in_lanes)), builder.load(in_tail))

    return signature, codegen


add_times_row: Any = intrinsic(_add_times_row)


def _add_value_row(typingctx, scores, i, values, leaf):
    """Add values[leaf, k] to scores[i, k]. scores (n, K) is float32 or float64, values (leaves, K) float64."""
    require_contiguous(scores, values)
    signature = types.void(scores, INDEX, values, INDEX)

    def codegen(context, builder, signature, args):
        target, _, width = row_of(context, builder, signature.args[0], args[0], args[1])
        source, _, _ = row_of(context, builder, signature.args[2], args[2], args[3])

        def added(old, k, load):
            v = load(builder, builder.gep(source, [k]))
            if old.type == v.type:
                return builder.fadd(old, v)
            return builder.fptrunc(builder.fadd(builder.fpext(old, v.type), v), old.type)

        change_row(builder, target, width, added)
        return context.get_dummy_value()

    return signature, codegen


add_value_row: Any = intrinsic(_add_value_row)


def _add_slopes(typingctx, out, e, t, own, z, zv, y, v, units, multiple, fraction):
    """Add a row's slopes after eight steps, one in each lane c, to out[c]: int(rint(fraction rint(slope units[c]))) multiple.

    The slope is (sum_k e[t, k] zv[k, c] - v sum_k e[t, k] z[k, c]) / (own z[y, c] + sum_k e[t, k] z[k, c]). out (8 or more,) is
    int64; e (m, K), z and zv (K or more, 8), units (8,) are float64; all are C-contiguous.
    """
    require_contiguous(out, e, z, zv, units)
    f64 = types.float64
    signature = types.void(out, e, INDEX, f64, z, zv, INDEX, f64, units, types.int64, f64)

    def codegen(context, builder, signature, args):
        def lanes(position, *index):
            return row_of(context, builder, signature.args[position], args[position], *index)[0]

        row, _, n_classes = row_of(context, builder, signature.args[1], *args[1:3])
        places = lanes(4, i64(0)), lanes(5, i64(0))
        sums = [cgutils.alloca_once_value(builder, constant(0.0)) for _ in places]
        with cgutils.for_range(builder, n_classes) as loop:
            e = spread(builder, builder.load(builder.gep(row, [loop.index])))
            first = builder.mul(loop.index, i64(LANES))
            for place, total in zip(places, sums, strict=True):
                term = builder.fmul(e, load(builder, builder.gep(place, [first])))
                builder.store(builder.fadd(builder.load(total), term), total)
        others, moved = (builder.load(total) for total in sums)
        mean = builder.fsub(moved, builder.fmul(spread(builder, args[7]), others))
        own = builder.fmul(spread(builder, args[3]), load(builder, lanes(4, args[6])))
        slope = builder.fdiv(mean, builder.fadd(own, others))
        added = _times(context, builder, slope, load(builder, lanes(8)), *args[9:])
        target = lanes(0)
        store(builder, builder.add(load(builder, target), added), target)
        return context.get_dummy_value()

    return signature, codegen


add_slopes: Any = intrinsic(_add_slopes)


def _project_row(typingctx, out, i, V, signs):
    """Set out[i, c] to the sum of V[k] signs[k, c] for all c of a row of signs, a multiple of eight; all are int32."""
    require_contiguous(out, V, signs)
    signature = types.void(out, INDEX, V, signs)

    def codegen(context, builder, signature, args):
        target, _, _ = row_of(context, builder, signature.args[0], *args[:2])
        numbers, _, n_classes = row_of(context, builder, signature.args[2], args[2])
        first, _, width = row_of(context, builder, signature.args[3], args[3], i64(0))
        nothing = spread(builder, ir.Constant(I32, 0))
        total = cgutils.alloca_once_value(builder, nothing)
        with lanes_of(builder, width) as (column, _):
            builder.store(nothing, total)
            with cgutils.for_range(builder, n_classes) as loop:
                v = spread(builder, builder.load(builder.gep(numbers, [loop.index])))
                row = builder.add(builder.mul(loop.index, width), column)
                product = builder.mul(v, load(builder, builder.gep(first, [row])))
                builder.store(builder.add(builder.load(total), product), total)
            store(builder, builder.load(total), builder.gep(target, [column]))
        return context.get_dummy_value()

    return signature, codegen


project_row: Any = intrinsic(_project_row)
