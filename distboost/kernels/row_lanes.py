"""Vector operations on some rows together, and on neighbouring scores of one row, to find the leaves that rows fall into.

Numba does not vectorise these short loops. So the intrinsics emit vector operations explicitly. LLVM translates them to the
instructions that the processor has. The results are the same on all processors.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROW_LANES = 64  # rows that take a decision of a tree together
MOST_LEAVES = (
    256  # of their tree: a lane may have one byte for the leaf, and to descend a larger tree is faster
)
SCORE_LANES = 8
COLUMN_LANES = 16  # columns of bins that are transposed together
SET_BITS = 32  # splits of categories that one look-up decides

COLUMN, BOUND, LEFT, RIGHT = range(4)  # the numbers of a node's record
SHIFT_BITS = 8  # of a bound


def _at(context, builder, typ, array, row, column):
    """Return the address of array[row, column]. The array must be C-contiguous."""
    view = cgutils.create_struct_proxy(typ)(context, builder, array)
    width = cgutils.unpack_tuple(builder, view.shape)[1]
    return builder.gep(view.data, [builder.add(builder.mul(row, width), column)])


def _spread(builder, number, vector):
    """Return a vector of equal numbers."""
    nothing, number_type = ir.Constant(vector, ir.Undefined), ir.IntType(32)
    first = builder.insert_element(nothing, number, ir.Constant(number_type, 0))
    zeros = ir.Constant(ir.VectorType(number_type, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, nothing, zeros)


def _choose(is_right):
    """Return an intrinsic function(chosen, to, rows, first, nodes, node) that takes the decision of a node for ROW_LANES rows.

    It sets chosen[to] to chosen[RIGHT] for the rows that go right, and to chosen[LEFT] for the others. The node is nodes[node]:
    (COLUMN, BOUND, LEFT, RIGHT). What is known of the rows is rows[first + COLUMN], and is_right(builder, known, bound) tells
    which go right: known is a vector, and bound a number.

    nodes (m, 4) is uint32; chosen (c, ROW_LANES) and rows (r, ROW_LANES) are of the same unsigned type. All are C-contiguous.
    """

    def choose(typingctx, chosen, to, rows, first, nodes, node):
        index = types.uintp
        signature = types.void(chosen, index, rows, index, nodes, index)

        def codegen(context, builder, signature, args):
            chosen_value, to_value, rows_value, first_value, nodes_value, node_value = args
            n_bytes = signature.args[2].dtype.bitwidth // 8
            vector = ir.VectorType(ir.IntType(8 * n_bytes), ROW_LANES)
            zero = ir.Constant(first_value.type, 0)

            def number(name):
                place = ir.Constant(first_value.type, name)
                return builder.load(_at(context, builder, signature.args[4], nodes_value, node_value, place))

            def lanes(position, array, row):
                address = _at(context, builder, signature.args[position], array, row, zero)
                return builder.bitcast(address, vector.as_pointer())

            def read(position, array, row):
                return builder.load(lanes(position, array, row), align=n_bytes)

            column, bound, left, right = (number(name) for name in (COLUMN, BOUND, LEFT, RIGHT))
            known = read(2, rows_value, builder.add(first_value, builder.zext(column, first_value.type)))
            goes_right = is_right(builder, known, bound)
            sides = [read(0, chosen_value, builder.zext(side, first_value.type)) for side in (right, left)]
            chosen_sides = builder.select(goes_right, *sides)
            builder.store(chosen_sides, lanes(0, chosen_value, to_value), align=n_bytes)
            return context.get_dummy_value()

        return signature, codegen

    return intrinsic(choose)


def bound_of(limit: Any, shift: Any) -> Any:
    """Return the BOUND at which `choose_rows` sends ranks above `limit` to the right, after it has added `shift` to both.

    The shift, below 256, is such that the rank of missing values overflows to 0, and no other rank overflows: they go left.
    """
    return (limit + shift) << SHIFT_BITS | shift


def _is_above(builder, ranks, bound):
    """Return where the ranks, plus the lowest bits of BOUND, are above its other bits."""
    lane, vector = ranks.type.element, ranks.type
    mask = ir.Constant(bound.type, (1 << SHIFT_BITS) - 1)
    shift = builder.trunc(builder.and_(bound, mask), lane)
    limit = builder.trunc(builder.lshr(bound, ir.Constant(bound.type, SHIFT_BITS)), lane)
    shifted = builder.add(ranks, _spread(builder, shift, vector))
    return builder.icmp_unsigned(">", shifted, _spread(builder, limit, vector))


def _lacks_bit(builder, members, bit):
    """Return where members do not have the bit BOUND."""
    lane, vector = members.type.element, members.type
    found = builder.and_(members, _spread(builder, builder.trunc(bit, lane), vector))
    return builder.icmp_unsigned("==", found, ir.Constant(vector, [0] * vector.count))


choose_rows: Any = _choose(_is_above)  # rows: ranks
choose_members: Any = _choose(_lacks_bit)  # rows: at which splits each row goes left


def _divide_words(typingctx, words, members, first):
    """Set members[first + i] to the bits i * b .. (i + 1) * b - 1 of words[0], where b are the bits of a lane of members.

    words (1, ROW_LANES) is uint32, members (m, ROW_LANES) of a smaller unsigned type. Both are C-contiguous.
    """
    index = types.uintp
    signature = types.void(words, members, index)

    def codegen(context, builder, signature, args):
        words_value, members_value, first_value = args
        n_bits = signature.args[1].dtype.bitwidth
        word = ir.VectorType(ir.IntType(SET_BITS), ROW_LANES)
        lane = ir.VectorType(ir.IntType(n_bits), ROW_LANES)
        zero = ir.Constant(first_value.type, 0)
        source = _at(context, builder, signature.args[0], words_value, zero, zero)
        found = builder.load(builder.bitcast(source, word.as_pointer()), align=4)
        for i in range(SET_BITS // n_bits):
            row = builder.add(first_value, ir.Constant(first_value.type, i))
            target = _at(context, builder, signature.args[1], members_value, row, zero)
            bits = builder.lshr(found, ir.Constant(word, [i * n_bits] * ROW_LANES))
            builder.store(
                builder.trunc(bits, lane), builder.bitcast(target, lane.as_pointer()), align=n_bits // 8
            )
        return context.get_dummy_value()

    return signature, codegen


divide_words: Any = intrinsic(_divide_words)


def _add_scores(typingctx, scores, row, column, values, leaf, lane, n_trees):
    """Add values[leaf[t, lane], lanes] to scores[row, lanes] for t = 0 .. n_trees - 1: lanes = column:column + SCORE_LANES.

    scores (n, width) and values (leaves, width) are float64, leaf (trees, rows) is uint32. All are C-contiguous.
    """
    index = types.uintp
    signature = types.void(scores, index, index, values, leaf, index, index)

    def codegen(context, builder, signature, args):
        scores_value, row_value, column_value, values_value, leaf_value, lane_value, n_value = args
        lanes = ir.VectorType(ir.DoubleType(), SCORE_LANES).as_pointer()

        def vector(position, array, row):
            address = _at(context, builder, signature.args[position], array, row, column_value)
            return builder.bitcast(address, lanes)

        target = vector(0, scores_value, row_value)
        total = cgutils.alloca_once_value(builder, builder.load(target, align=8))
        with cgutils.for_range(builder, n_value) as loop:
            number = builder.load(
                _at(context, builder, signature.args[4], leaf_value, loop.index, lane_value)
            )
            source = vector(3, values_value, builder.zext(number, row_value.type))
            builder.store(builder.fadd(builder.load(total), builder.load(source, align=8)), total)
        builder.store(builder.load(total), target, align=8)
        return context.get_dummy_value()

    return signature, codegen


add_scores: Any = intrinsic(_add_scores)


def _interleave(builder, a, b, half):
    """Return the bytes of a and b in turn, from the lower or upper half of every COLUMN_LANES of each."""
    n, places = a.type.count, range(half * COLUMN_LANES // 2, (half + 1) * COLUMN_LANES // 2)
    order = [of + i + k for i in range(0, n, COLUMN_LANES) for k in places for of in (0, n)]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), n), order))


def _joined(builder, parts):
    """Return one vector of all lanes of these, whose number is a power of two."""
    while len(parts) > 1:
        n = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(ir.IntType(32), n), list(range(n)))
        parts = [builder.shuffle_vector(a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _transpose_bins(typingctx, bins, rows, first, column, lanes, to):
    """Set lanes[to + c, j] = bins[rows[first + j], column + c] for c < COLUMN_LANES, j < ROW_LANES.

    Columns beyond the last are read from the row behind. bins (n, D) and lanes (m, ROW_LANES) are uint8, rows (r,) is int32. All
    are C-contiguous.
    """
    index = types.uintp
    signature = types.void(bins, rows, index, index, lanes, index)

    def codegen(context, builder, signature, args):
        bins_value, rows_value, first_value, column_value, lanes_value, to_value = args
        size, byte = first_value.type, ir.IntType(8)
        zero = ir.Constant(size, 0)
        order = cgutils.create_struct_proxy(signature.args[1])(context, builder, rows_value)

        def of_row(j):
            row = builder.load(builder.gep(order.data, [builder.add(first_value, ir.Constant(size, j))]))
            place = _at(
                context, builder, signature.args[0], bins_value, builder.zext(row, size), column_value
            )
            return builder.load(
                builder.bitcast(place, ir.VectorType(byte, COLUMN_LANES).as_pointer()), align=1
            )

        # Vector k has the rows k, k + 16, .. . To interleave each vector of the first half with one of the second, four times,
        # transposes the 16 x 16 bytes that lie at the same place of all vectors.
        n, half = COLUMN_LANES, COLUMN_LANES // 2
        vectors = [_joined(builder, [of_row(j) for j in range(k, ROW_LANES, n)]) for k in range(n)]
        for _ in range(n.bit_length() - 1):
            vectors = [_interleave(builder, vectors[k // 2], vectors[k // 2 + half], k % 2) for k in range(n)]
        for c, vector in enumerate(vectors):
            row = builder.add(to_value, ir.Constant(size, c))
            target = _at(context, builder, signature.args[4], lanes_value, row, zero)
            builder.store(vector, builder.bitcast(target, vector.type.as_pointer()), align=1)
        return context.get_dummy_value()

    return signature, codegen


transpose_bins: Any = intrinsic(_transpose_bins)
