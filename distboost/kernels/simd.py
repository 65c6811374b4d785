"""Vector arithmetic on neighbouring channels: eight, or four of the 64-bit sums of histograms, so that these take less memory.

Numba does not vectorise the short loop over channels inside the loop over rows. So these intrinsics emit vector operations
explicitly. LLVM translates them to the instructions that the processor has. The results are the same on all processors.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
SUM_LANES = 4  # of 64-bit sums


def padded(n_channels: int) -> int:
    """Return the number of channels of a row's statistic: a multiple of eight.

    >>> padded(11)
    16
    """
    return -(-n_channels // LANES) * LANES


def padded_sums(n_channels: int) -> int:
    """Return the number of channels of a histogram: a multiple of four.

    >>> padded_sums(11)
    12
    """
    return -(-n_channels // SUM_LANES) * SUM_LANES


def _pointer(context, builder, typ, array, row, column, lane_type, n=LANES):
    """Return the address of array[row, column] as a pointer to a vector of n lanes. The array must be C-contiguous."""
    view = cgutils.create_struct_proxy(typ)(context, builder, array)
    width = cgutils.unpack_tuple(builder, view.shape)[1]
    offset = builder.add(builder.mul(row, width), column)
    return builder.bitcast(builder.gep(view.data, [offset]), ir.VectorType(lane_type, n).as_pointer())


def _flush_lanes(adds):
    """Return an intrinsic that adds tile[j, column:column+4] to total[i, column:column+4], or stores it there, and sets it to 0.

    total (m, channels) is int64, tile (n, channels) int32, both C-contiguous.
    """

    def flush_lanes(typingctx, total, i, column, tile, j):
        index = types.uintp
        signature = types.void(total, index, index, tile, index)

        def codegen(context, builder, signature, args):
            total_value, i_value, column_value, tile_value, j_value = args
            i64, i32 = ir.IntType(64), ir.IntType(32)
            n = SUM_LANES
            target = _pointer(context, builder, signature.args[0], total_value, i_value, column_value, i64, n)
            source = _pointer(context, builder, signature.args[3], tile_value, j_value, column_value, i32, n)
            value = builder.sext(builder.load(source, align=4), ir.VectorType(i64, n))
            if adds:
                value = builder.add(builder.load(target, align=8), value)
            builder.store(value, target, align=8)
            builder.store(ir.Constant(ir.VectorType(i32, n), [0] * n), source, align=4)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(flush_lanes)


flush_adding: Any = _flush_lanes(adds=True)
flush_storing: Any = _flush_lanes(adds=False)


def _advance_lanes(typingctx, left, sums, j, column, parent, X, Y, t):
    """Move a threshold past bin j, for four channels: lanes = column:column+4.

    left[0, lanes] += sums[j, lanes]; X[t, lanes] = left[0, lanes]; Y[t, lanes] = parent[0, lanes] - left[0, lanes].
    left (1, channels), sums (bins, channels) and parent (1, channels) are int64, X and Y (thresholds, channels) float64, all
    C-contiguous.
    """
    index = types.uintp
    signature = types.void(left, sums, index, index, parent, X, Y, index)

    def codegen(context, builder, signature, args):
        left_value, sums_value, j_value, column_value, parent_value, X_value, Y_value, t_value = args
        types_ = signature.args
        i64, f64 = ir.IntType(64), ir.DoubleType()

        def lanes(position, value, row, lane_type):
            return _pointer(
                context, builder, types_[position], value, row, column_value, lane_type, SUM_LANES
            )

        zero = ir.Constant(ir.IntType(context.get_value_type(index).width), 0)
        left_lanes = lanes(0, left_value, zero, i64)
        L = builder.add(
            builder.load(left_lanes, align=8), builder.load(lanes(1, sums_value, j_value, i64), align=8)
        )
        builder.store(L, left_lanes, align=8)
        R = builder.sub(builder.load(lanes(4, parent_value, zero, i64), align=8), L)
        for position, value, side in ((5, X_value, L), (6, Y_value, R)):
            numbers = builder.sitofp(side, ir.VectorType(f64, SUM_LANES))
            builder.store(numbers, lanes(position, value, t_value, f64), align=8)
        return context.get_dummy_value()

    return signature, codegen


advance_lanes: Any = intrinsic(_advance_lanes)


def _add_squares(typingctx, rows, i, column, n, out):
    """Add the squares of rows[i + l, column:column+8], one after another, to out[i + l], for l = 0 .. 7. Columns from n on are 0.

    rows (m, channels) and out (m,) are float64 and C-contiguous; m and the channels are multiples of eight.
    """
    index = types.uintp
    signature = types.void(rows, index, index, index, out)

    def codegen(context, builder, signature, args):
        rows_value, i_value, column_value, n_value, out_value = args
        f64, size = ir.DoubleType(), context.get_value_type(index)
        vector = ir.VectorType(f64, LANES)
        lanes = []
        for n in range(LANES):
            row = builder.add(i_value, ir.Constant(size, n))
            source = _pointer(context, builder, signature.args[0], rows_value, row, column_value, f64)
            lanes.append(builder.load(source, align=8))
        # Transpose, by swaps between vectors at the distances 1, 2 and 4: then vector k holds number k of each row.
        for step in (1, 2, 4):
            low = [m if not m & step else LANES + m - step for m in range(LANES)]
            high = [m + step if not m & step else LANES + m for m in range(LANES)]
            for n in (n for n in range(LANES) if not n & step):
                pair = lanes[n], lanes[n + step]
                for target, order in ((n, low), (n + step, high)):
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), order)
                    lanes[target] = builder.shuffle_vector(*pair, mask)
        view = cgutils.create_struct_proxy(signature.args[4])(context, builder, out_value)
        target = builder.bitcast(builder.gep(view.data, [i_value]), vector.as_pointer())
        total = builder.load(target, align=8)
        for n, lane in enumerate(lanes):
            used = builder.icmp_unsigned("<", builder.add(column_value, ir.Constant(size, n)), n_value)
            square = builder.select(used, builder.fmul(lane, lane), ir.Constant(vector, [0.0] * LANES))
            total = builder.fadd(total, square)
        builder.store(total, target, align=8)
        return context.get_dummy_value()

    return signature, codegen


add_squares: Any = intrinsic(_add_squares)


def _add_rounded_lanes(typingctx, total, i, column, weight, factor, terms, j):
    """Add rint(weight rint(factor terms[j, lanes])) to total[i, lanes]: lanes = column:column+8.

    total (m, terms) and terms (n, terms) are float64, both C-contiguous.
    """
    index = types.uintp
    signature = types.void(total, index, index, types.float64, types.float64, terms, index)

    def codegen(context, builder, signature, args):
        total_value, i_value, column_value, weight_value, factor_value, terms_value, j_value = args
        f64 = ir.DoubleType()
        vector = ir.VectorType(f64, LANES)
        rint = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(vector, [vector]), f"llvm.rint.v{LANES}f64"
        )

        def spread(number):
            first = builder.insert_element(
                ir.Constant(vector, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)

        target = _pointer(context, builder, signature.args[0], total_value, i_value, column_value, f64)
        source = _pointer(context, builder, signature.args[5], terms_value, j_value, column_value, f64)
        rounded = builder.call(rint, [builder.fmul(spread(factor_value), builder.load(source, align=8))])
        addend = builder.call(rint, [builder.fmul(spread(weight_value), rounded)])
        builder.store(builder.fadd(builder.load(target, align=8), addend), target, align=8)
        return context.get_dummy_value()

    return signature, codegen


add_rounded_lanes: Any = intrinsic(_add_rounded_lanes)


def _pointer_to(typingctx, address, number):
    """Return the address, an integer, as a pointer to numbers of this type."""
    kind = types.CPointer(number)
    signature = kind(address, number)

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(kind))

    return signature, codegen


pointer: Any = intrinsic(_pointer_to)


def _prefetch(typingctx, array, i, column):
    """Load the cache line of array[i, column], which is used soon, while other work goes on. The array must be C-contiguous."""
    index = types.uintp
    signature = types.void(array, index, index)

    def codegen(context, builder, signature, args):
        view = cgutils.create_struct_proxy(signature.args[0])(context, builder, args[0])
        width = cgutils.unpack_tuple(builder, view.shape)[1]
        address = builder.gep(view.data, [builder.add(builder.mul(args[1], width), args[2])])
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, i32, i32, i32]), "llvm.prefetch.p0i8"
        )
        for_reading, keep, data = 0, 3, 1
        constants = [ir.Constant(i32, n) for n in (for_reading, keep, data)]
        builder.call(function, [builder.bitcast(address, byte), *constants])
        return context.get_dummy_value()

    return signature, codegen


prefetch: Any = intrinsic(_prefetch)
