"""Vector arithmetic on neighbouring channels: eight, or four of the 64-bit sums of histograms, so that these take less memory.

Numba does not vectorise the short loop over channels inside the loop over rows. So these intrinsics emit vector operations
explicitly. LLVM translates them to the instructions that the processor has. The results are the same on all processors.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels.lanes import (
    BYTE_POINTER,
    F64,
    FLOATS,
    I32,
    I64,
    INDEX,
    LANES,
    SUM_LANES,
    constant,
    i64,
    lanes_of,
    load,
    of_lanes,
    place_of,
    prefetched,
    require_contiguous,
    row_of,
    spread,
    store,
)

_SUMS = ir.VectorType(I64, SUM_LANES)
_LINE = 64  # bytes of a line of the cache


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


def _flush_lanes(adds):
    """Return an intrinsic that adds tile[j, column:column+4] to total[i, column:column+4], or stores it there, and sets it to 0.

    total (m, channels) is int64, tile (n, channels) int32, both C-contiguous.
    """

    def flush_lanes(typingctx, total, i, column, tile, j):
        require_contiguous(total, tile)
        signature = types.void(total, INDEX, INDEX, tile, INDEX)

        def codegen(context, builder, signature, args):
            total_value, i, column, tile_value, j = args
            target = place_of(context, builder, signature.args[0], total_value, i, column)
            source = place_of(context, builder, signature.args[3], tile_value, j, column)
            value = builder.sext(load(builder, source, SUM_LANES), _SUMS)
            if adds:
                value = builder.add(load(builder, target, SUM_LANES), value)
            store(builder, value, target)
            store(builder, spread(builder, ir.Constant(I32, 0), SUM_LANES), source)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(flush_lanes)


flush_adding: Any = _flush_lanes(adds=True)
flush_storing: Any = _flush_lanes(adds=False)


def _flush_rest(adds):
    """Return an intrinsic that does for n bins what `_flush_lanes` does: total[i:i+n, :] and tile[j:j+n, :].

    One of these bins, `rest`, is 0 in the tile: it gets what tile[0, :] has more than the others together.
    total (m, channels) is int64, channels a multiple of four, tile (n, as many or more) int32, both C-contiguous.
    """

    def flush_rest(typingctx, total, i, rest, tile, j, n):
        require_contiguous(total, tile)
        signature = types.void(total, INDEX, INDEX, tile, INDEX, INDEX)

        def codegen(context, builder, signature, args):
            total_value, first, rest, tile_value, from_, n = args
            kind, none = ir.VectorType(I32, SUM_LANES), spread(builder, ir.Constant(I32, 0), SUM_LANES)
            left = cgutils.alloca_once(builder, kind)

            def target(row, c):
                return place_of(context, builder, signature.args[0], total_value, row, c)

            def source(row, c):
                return place_of(context, builder, signature.args[3], tile_value, row, c)

            def flush(value, address):
                value = builder.sext(value, _SUMS)
                if adds:
                    value = builder.add(load(builder, address, SUM_LANES), value)
                store(builder, value, address)

            width = row_of(context, builder, signature.args[0], total_value, first)[2]
            with lanes_of(builder, width, SUM_LANES) as (c, _):
                builder.store(load(builder, source(i64(0), c), SUM_LANES), left)
                with cgutils.for_range(builder, n) as loop:
                    own = source(builder.add(from_, loop.index), c)
                    value = load(builder, own, SUM_LANES)
                    builder.store(builder.sub(builder.load(left), value), left)
                    flush(value, target(builder.add(first, loop.index), c))
                    store(builder, none, own)
                found = builder.load(left)
                address = target(rest, c)
                value = builder.add(load(builder, address, SUM_LANES), builder.sext(found, _SUMS))
                store(builder, value, address)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(flush_rest)


rest_adding: Any = _flush_rest(adds=True)
rest_storing: Any = _flush_rest(adds=False)


def _advance_lanes(typingctx, left, sums, j, column, parent, X, Y, t):
    """Move a threshold past bin j, for four channels: lanes = column:column+4.

    left[0, lanes] += sums[j, lanes]; X[t, lanes] = left[0, lanes]; Y[t, lanes] = parent[0, lanes] - left[0, lanes].
    left (1, channels), sums (bins, channels) and parent (1, channels) are int64, X and Y (thresholds, channels) float64, all
    C-contiguous.
    """
    require_contiguous(left, sums, parent, X, Y)
    signature = types.void(left, sums, INDEX, INDEX, parent, X, Y, INDEX)

    def codegen(context, builder, signature, args):
        left_value, sums_value, j, column, parent_value, X_value, Y_value, t = args

        def place(position, value, row):
            return place_of(context, builder, signature.args[position], value, row, column)

        own = place(0, left_value, i64(0))
        L = builder.add(load(builder, own, SUM_LANES), load(builder, place(1, sums_value, j), SUM_LANES))
        store(builder, L, own)
        R = builder.sub(load(builder, place(4, parent_value, i64(0)), SUM_LANES), L)
        for position, value, side in ((5, X_value, L), (6, Y_value, R)):
            numbers = builder.sitofp(side, ir.VectorType(F64, SUM_LANES))
            store(builder, numbers, place(position, value, t))
        return context.get_dummy_value()

    return signature, codegen


advance_lanes: Any = intrinsic(_advance_lanes)


def _add_squares(typingctx, rows, i, column, n, out):
    """Add the squares of rows[i + l, column:column+8], one after another, to out[i + l], for l = 0 .. 7. Columns from n on are 0.

    rows (m, channels) and out (m,) are float64 and C-contiguous; m and the channels are multiples of eight.
    """
    require_contiguous(rows, out)
    signature = types.void(rows, INDEX, INDEX, INDEX, out)

    def codegen(context, builder, signature, args):
        rows_value, i, column, n, out_value = args
        lanes = []
        for row in range(LANES):
            source = place_of(
                context, builder, signature.args[0], rows_value, builder.add(i, i64(row)), column
            )
            lanes.append(load(builder, source))
        # Transpose, by swaps between vectors at the distances 1, 2 and 4: then vector k holds number k of each row.
        for step in (1, 2, 4):
            low = [m if not m & step else LANES + m - step for m in range(LANES)]
            high = [m + step if not m & step else LANES + m for m in range(LANES)]
            for k in (k for k in range(LANES) if not k & step):
                pair = lanes[k], lanes[k + step]
                for target, order in ((k, low), (k + step, high)):
                    mask = ir.Constant(ir.VectorType(I32, LANES), order)
                    lanes[target] = builder.shuffle_vector(*pair, mask)
        target = builder.gep(row_of(context, builder, signature.args[4], out_value)[0], [i])
        total = load(builder, target)
        for k, lane in enumerate(lanes):
            used = builder.icmp_signed("<", builder.add(column, i64(k)), n)
            total = builder.fadd(total, builder.select(used, builder.fmul(lane, lane), constant(0.0)))
        store(builder, total, target)
        return context.get_dummy_value()

    return signature, codegen


add_squares: Any = intrinsic(_add_squares)


def _add_rounded_lanes(typingctx, total, i, column, weight, factor, terms, j):
    """Add rint(weight rint(factor terms[j, lanes])) to total[i, lanes]: lanes = column:column+8.

    total (m, terms) and terms (n, terms) are float64, both C-contiguous.
    """
    require_contiguous(total, terms)
    signature = types.void(total, INDEX, INDEX, types.float64, types.float64, terms, INDEX)

    def codegen(context, builder, signature, args):
        total_value, i, column, weight, factor, terms_value, j = args
        target = place_of(context, builder, signature.args[0], total_value, i, column)
        terms = load(builder, place_of(context, builder, signature.args[5], terms_value, j, column))
        assert terms.type == FLOATS
        rounded = of_lanes(builder, "rint", builder.fmul(spread(builder, factor), terms))
        addend = of_lanes(builder, "rint", builder.fmul(spread(builder, weight), rounded))
        store(builder, builder.fadd(load(builder, target), addend), target)
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
    """Begin to bring array[i, column] into the cache, if the array is C-contiguous."""
    signature = types.void(array, INDEX, INDEX)

    def codegen(context, builder, signature, args):
        if array.layout == "C":
            prefetched(builder, place_of(context, builder, signature.args[0], *args))
        return context.get_dummy_value()

    return signature, codegen


prefetch: Any = intrinsic(_prefetch)


def _prefetch_row(typingctx, array, i):
    """Begin to bring the row array[i] into the cache. array (n, K) is C-contiguous."""
    require_contiguous(array)
    signature = types.void(array, INDEX)

    def codegen(context, builder, signature, args):
        typ = signature.args[0]
        row, _, width = row_of(context, builder, typ, args[0], args[1])
        first = builder.bitcast(row, BYTE_POINTER)
        end = builder.bitcast(builder.gep(row, [width]), BYTE_POINTER)
        size = builder.sub(builder.ptrtoint(end, I64), builder.ptrtoint(first, I64))
        with cgutils.for_range_slice(builder, i64(0), size, i64(_LINE), inc=True) as (at, _):
            prefetched(builder, builder.gep(first, [at]))
        prefetched(builder, builder.gep(end, [i64(-1)]))  # a row that is not aligned ends in one line more
        return context.get_dummy_value()

    return signature, codegen


prefetch_row: Any = intrinsic(_prefetch_row)
