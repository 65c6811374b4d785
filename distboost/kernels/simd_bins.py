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
