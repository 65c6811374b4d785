"""The squared lengths of both sides of a split, up to rounding, for eight thresholds at a time."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels.lanes import (
    I32,
    INDEX,
    LANES,
    SUM_LANES,
    as_floats,
    constant,
    i64,
    lanes_of,
    load,
    numbered,
    require_contiguous,
    row_of,
    spread,
    store,
)

# Products and sums may be fused, and numbers added in any order: the processor's fastest way.
_ANY_ORDER = ("contract", "reassoc", "nsz")


def _pass_bins(typingctx, left, way, sums, bins, i, parent, n_sums, squares, t):
    """Move a threshold past the bins bins[i:i+8], one after another: left[way] += sums[b].

    After the l-th, squares[0, t + l] = |L|^2 and squares[1, t + l] = |R|^2, with L = left[way, :n_sums] and
    R = parent[0, :n_sums] - L. Their relative error is at most (n_sums + 6) 2^-53.
    left (ways, channels), sums (bins, channels), parent (1, channels) and bins (m,) are int64, squares (2, c) is float64, all are
    C-contiguous; the channels are a multiple of four.
    """
    require_contiguous(left, sums, bins, parent, squares)
    signature = types.void(left, INDEX, sums, bins, INDEX, parent, INDEX, squares, INDEX)

    def codegen(context, builder, signature, args):
        left_value, way, sums_value, bins_value, i, parent_value, n_sums, squares_value, t = args
        kinds = signature.args

        def row(position, array, *index):
            return row_of(context, builder, kinds[position], array, *index)

        before, _, width = row(0, left_value, way)
        parent_row, _, _ = row(5, parent_value, i64(0))
        first, _, _ = row(3, bins_value)
        listed = [builder.load(builder.gep(first, [builder.add(i, i64(n))])) for n in range(LANES)]
        rows = [row(2, sums_value, b)[0] for b in listed]
        nothing = constant(0.0, SUM_LANES)
        totals = [[cgutils.alloca_once_value(builder, nothing) for _ in range(LANES)] for _ in range(2)]

        def add_square(total, sums, used):
            x = builder.select(used, as_floats(context, builder, sums), nothing)
            square = builder.fmul(x, x, flags=_ANY_ORDER)
            builder.store(builder.fadd(builder.load(total), square, flags=_ANY_ORDER), total)

        with lanes_of(builder, width, SUM_LANES) as (column, _):
            place = builder.gep(before, [column])
            L = load(builder, place, SUM_LANES)
            P = load(builder, builder.gep(parent_row, [column]), SUM_LANES)
            used = builder.icmp_signed("<", numbered(builder, column, L), spread(builder, n_sums, SUM_LANES))
            for own, left_total, right_total in zip(rows, *totals, strict=True):
                L = builder.add(L, load(builder, builder.gep(own, [column]), SUM_LANES))
                add_square(left_total, L, used)
                add_square(right_total, builder.sub(P, L), used)
            store(builder, L, place)
        for side, own in enumerate(totals):
            target, _, _ = row(7, squares_value, i64(side))
            lanes = _sums_of(builder, [builder.load(total) for total in own])
            store(builder, lanes, builder.gep(target, [t]))
        return context.get_dummy_value()

    return signature, codegen


def _sums_of(builder, vectors):
    """Return the sums over the four lanes of each of eight vectors."""

    def joined(a, b, order):
        return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(order)), order))

    def added(a, b, low, high):
        return builder.fadd(joined(a, b, low), joined(a, b, high), flags=_ANY_ORDER)

    pairs = [
        added(a, b, [0, 4, 2, 6], [1, 5, 3, 7]) for a, b in zip(vectors[::2], vectors[1::2], strict=True)
    ]
    low, high = [
        added(a, b, [0, 1, 4, 5], [2, 3, 6, 7]) for a, b in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    return joined(low, high, list(range(LANES)))


pass_bins: Any = intrinsic(_pass_bins)
