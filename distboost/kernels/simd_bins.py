"""A row's statistic is added to the sums of its bin of each feature: the innermost loop of histograms.

The statistic stays in registers from the first feature to the last. LLVM would load it for each feature again, because it cannot
know that the sums lie elsewhere.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from distboost.kernels.lanes import I64, LANES, SUM_LANES, i64, load, require_contiguous, row_of, store

LINE = 16  # 32-bit sums in a line of the cache
_MOST_LANES = 8  # times eight channels stay in registers


def _adding(n_lanes, at_once):
    """Return an intrinsic that adds rows[i, c] to sums[bases[f] + bins[i, columns[f]], c] for all f and all channels c of sums.

    sums (m, channels) and rows (n, channels or more) are int32 or int64, sums not the narrower one; its channels a multiple of
    n_lanes. bins (n, D) is uint8; columns and bases (f,) are int64. All are C-contiguous. Up to `at_once` vectors, a power of
    two, stay in registers.
    """

    def add_row(typingctx, sums, rows, i, bins, columns, bases):
        require_contiguous(sums, rows, bins, columns, bases)
        signature = types.void(sums, rows, types.uintp, bins, columns, bases)

        def codegen(context, builder, signature, args):
            def row(position, *index):
                address, _, length = row_of(
                    context, builder, signature.args[position], args[position], *index
                )
                return address, length

            sums, width = row(0, i64(0))
            (statistic, _), (own_bins, _) = row(1, args[2]), row(3, args[2])
            (columns, n_columns), (bases, _) = row(4), row(5)
            lanes = ir.VectorType(sums.type.pointee, n_lanes)

            def vectors(n, first):
                return [builder.gep(first, [i64(n_lanes * v)]) for v in range(n)]

            def read(address):
                found = load(builder, address, n_lanes)
                return found if found.type == lanes else builder.sext(found, lanes)

            def add(n, c):
                """Add n vectors of channels, from c on."""
                addends = [read(address) for address in vectors(n, builder.gep(statistic, [c]))]
                first = builder.gep(sums, [c])
                with cgutils.for_range(builder, n_columns) as loop:
                    base, d = (builder.load(builder.gep(array, [loop.index])) for array in (bases, columns))
                    bin = builder.add(base, builder.zext(builder.load(builder.gep(own_bins, [d])), I64))
                    place = builder.gep(first, [builder.mul(bin, width)])
                    for address, addend in zip(vectors(n, place), addends, strict=True):
                        store(builder, builder.add(read(address), addend), address)

            n_vectors = builder.udiv(width, i64(n_lanes))
            rest = builder.and_(n_vectors, i64(at_once - 1))
            whole = builder.mul(builder.sub(n_vectors, rest), i64(n_lanes))
            with cgutils.for_range_slice(builder, i64(0), whole, i64(n_lanes * at_once), inc=True) as (c, _):
                add(at_once, c)
            n, c = at_once // 2, whole
            while n:
                some = builder.and_(rest, i64(n))
                with builder.if_then(builder.icmp_unsigned("!=", some, i64(0))):
                    add(n, c)
                n, c = n // 2, builder.add(c, builder.mul(some, i64(n_lanes)))
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(add_row)


add_sums: Any = _adding(SUM_LANES, at_once=8)
add_lanes: Any = _adding(LANES, at_once=8)
add_lines: Any = _adding(LINE, at_once=4)


def _add_stored_lanes(typingctx, sums, rows, i, feature, value, first, end, bases, in_first):
    """Add rows[i, :] to sums[bases[feature[k]] + value[k], :] for first <= k < end, unless the base is below 0.

    Add it to sums[0, :], too, if `in_first`. sums (m, channels) and rows (n, channels) are int32, channels a multiple of LANES.
    feature (e,) is uint16, value (e,) uint8, bases (D,) int64. All are C-contiguous. Up to _MOST_LANES times eight channels are
    added in one pass over the bins.
    """
    require_contiguous(sums, rows, feature, value, bases)
    signature = types.void(
        sums, rows, types.uintp, feature, value, types.uintp, types.uintp, bases, types.boolean
    )

    def codegen(context, builder, signature, args):
        def row(position, *index):
            return row_of(context, builder, signature.args[position], args[position], *index)

        (sums, _, width), (statistic, _, _) = row(0, i64(0)), row(1, args[2])
        feature, value, bases = (row(position)[0] for position in (3, 4, 7))

        def parts(n, address):
            """Return the addresses of n times eight lanes, as few vectors, and the lanes of each."""
            firsts = range(0, n * LANES, LINE)
            return [(builder.gep(address, [i64(c)]), min(LINE, n * LANES - c)) for c in firsts]

        def add(n, c):
            addends = [load(builder, *part) for part in parts(n, builder.gep(statistic, [c]))]

            def add_to(place):
                target = builder.gep(sums, [builder.add(builder.mul(place, width), c)])
                for (address, lanes), addend in zip(parts(n, target), addends, strict=True):
                    store(builder, builder.add(load(builder, address, lanes), addend), address)

            with builder.if_then(args[8]):
                add_to(i64(0))
            with cgutils.for_range_slice(builder, args[5], args[6], i64(1), inc=True) as (k, _):
                d = builder.zext(builder.load(builder.gep(feature, [k])), I64)
                base = builder.load(builder.gep(bases, [d]))
                with builder.if_then(builder.icmp_signed(">=", base, i64(0)), likely=True):
                    add_to(builder.add(base, builder.zext(builder.load(builder.gep(value, [k])), I64)))

        most = i64(LANES * _MOST_LANES)
        rest = builder.urem(width, most)
        whole = builder.sub(width, rest)
        with cgutils.for_range_slice(builder, i64(0), whole, most, inc=True) as (c, _):
            add(_MOST_LANES, c)
        for n in range(1, _MOST_LANES):
            with builder.if_then(builder.icmp_unsigned("==", rest, i64(LANES * n))):
                add(n, whole)
        return context.get_dummy_value()

    return signature, codegen


add_stored_lanes: Any = intrinsic(_add_stored_lanes)
